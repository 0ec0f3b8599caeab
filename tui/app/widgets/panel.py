"""A panel that compares before it paints: a line that is the same again costs nothing.

Textual repaints the whole region of a widget that refreshes. Here only the lines that differ are
marked, nothing on a tick asks for a layout, and a line is a few segments.
"""

from collections.abc import Sequence
from typing import ClassVar

from rich.segment import Segment
from textual import events
from textual.content import Content
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from tui.app.graphs import in_ascii
from tui.app.ink import EMPTY, Drawing, Line, Span, line_width
from tui.app.scene import Scene
from tui.text.cells import cut


class Panel(Widget, can_focus=True):
    """A framed piece of the screen. A subclass says what it draws in ``draw``."""

    CURSOR = False
    """Whether lines can be chosen with the arrow keys or a click."""
    about_text: ClassVar[str] = ""
    """What the panel shows, for the help; a message for ``tr``."""

    class Chosen(Message):
        """A row was chosen with Enter or a second click; ``row`` is its name in ``Drawing.rows``."""

        def __init__(self, panel: "Panel", row: str) -> None:
            self.row = row
            self.panel = panel
            super().__init__()

    class Moved(Message):
        """The cursor stands on another row."""

        def __init__(self, panel: "Panel", row: str) -> None:
            self.row = row
            self.panel = panel
            super().__init__()

    def __init__(self, *, id: str | None = None) -> None:  # Textual's own name for it
        super().__init__(id=id, markup=False)
        self._scene = Scene()
        self._lines: Sequence[Line] = ()
        self._rows: Sequence[str | None] = ()
        self._caption: tuple[str, str] | None = None
        self._top = 0
        self._row: str | None = None

    def draw(self, scene: Scene, width: int, height: int) -> Drawing:
        """What to show in so many cells and lines. More lines than ``height`` can be scrolled to."""
        raise NotImplementedError

    def show(self, scene: Scene) -> None:
        """Draw the scene, and mark what differs from what is shown."""
        self._scene = scene
        if self.size.width > 0 and self.size.height > 0:
            drawing = self.draw(scene, self.size.width, self.size.height)
            self._apply(_plain(drawing) if not scene.pen.braille else drawing)

    @property
    def shown(self) -> str:
        """The text that is shown, for tests and for copying."""
        visible = self._lines[self._top : self._top + self.size.height]
        return "\n".join("".join(span.text for span in spans).rstrip() for spans in visible)

    @property
    def row(self) -> str | None:
        """The row that the cursor stands on."""
        known = self._row is not None and self._row in self._rows
        return self._row if known else self._first_row()

    def _first_row(self) -> str | None:
        return next((row for row in self._rows if row is not None), None)

    def _apply(self, drawing: Drawing) -> None:
        before, top_before, cursor_before = self._lines, self._top, self._cursor_line()
        self._lines, self._rows = drawing.lines, drawing.rows
        self._top = min(self._top, max(0, len(self._lines) - self.size.height))
        self._write_caption(drawing)
        if top_before != self._top:
            self.refresh()
            return
        cursor = self._cursor_line()
        marked = set() if cursor == cursor_before else {cursor, cursor_before}
        for y in range(self.size.height):
            at = self._top + y
            if at in marked or _at(before, at) != _at(self._lines, at):
                self.refresh(Region(0, y, self.size.width, 1))

    def _write_caption(self, drawing: Drawing) -> None:
        hidden = len(self._lines) - self.size.height
        note = drawing.note
        if hidden > 0:
            note = f"{note} {self._top + self.size.height}/{len(self._lines)}".strip()
        caption = (drawing.title, note)
        if caption != self._caption:
            self._caption = caption
            boxed = bool(self.styles.border_bottom[0])
            # A mere rule above has no bottom to write on: there the note follows the title.
            title = drawing.title if boxed or not note else f"{drawing.title}  {note}"
            room = max(0, self.size.width - 4)
            self.border_title = Content(cut(title, room, self._scene.pen.glyphs)) if title else None
            self.border_subtitle = (
                Content(cut(note, room, self._scene.pen.glyphs)) if note and boxed else None
            )

    def render_line(self, y: int) -> Strip:
        """Textual asks for one line."""
        at = self._top + y
        spans = _at(self._lines, at)
        colours = self._scene.colours
        base = self.rich_style
        if self.has_focus and at == self._cursor_line():
            base += colours.cursor
        segments = [Segment(text, base + colours.inks[ink]) for text, ink in spans]
        return Strip(segments, line_width(spans)).adjust_cell_length(self.size.width, base)

    def on_resize(self) -> None:
        """Another width: draw anew."""
        self._caption = None
        self.show(self._scene)
        self.refresh()

    def on_focus(self) -> None:
        """Show the cursor."""
        self.refresh()

    def on_blur(self) -> None:
        """Hide the cursor."""
        self.refresh()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Wheel: three lines down."""
        event.stop()
        self.scroll_lines(3)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Wheel: three lines up."""
        event.stop()
        self.scroll_lines(-3)

    def scroll_lines(self, count: int) -> None:
        """Move the window over the lines; nothing happens at the ends."""
        top = min(max(0, self._top + count), max(0, len(self._lines) - self.size.height))
        if top != self._top:
            self._top = top
            self._caption = None
            self.show(self._scene)
            self.refresh()

    def on_key(self, event: events.Key) -> None:
        """Arrows, pages and ends; Enter chooses."""
        steps = {
            "down": 1,
            "j": 1,
            "up": -1,
            "k": -1,
            "pagedown": max(1, self.size.height - 1),
            "pageup": -max(1, self.size.height - 1),
            "home": -(1 << 30),
            "end": 1 << 30,
        }
        if event.key in steps:
            event.stop()
            self.move(steps[event.key])
        elif event.key == "enter" and self.CURSOR and self.row is not None:
            event.stop()
            self.post_message(self.Chosen(self, self.row))

    def move(self, count: int) -> None:
        """Move the cursor over the rows, or scroll where nothing can be chosen."""
        if not self.CURSOR:
            self.scroll_lines(count)
            return
        places = [at for at, row in enumerate(self._rows) if row is not None]
        if not places:
            self.scroll_lines(count)
            return
        current = self._cursor_line()
        position = places.index(current) if current in places else 0
        self._move_to(places[min(max(0, position + count), len(places) - 1)])

    def _move_to(self, at: int) -> None:
        row = self._rows[at]
        if row is None:
            return
        self._row = row
        if not any(self._rows[:at]):
            self._top = 0  # the first row brings the heading with it
        elif at < self._top:
            self._top = at
        elif at >= self._top + self.size.height:
            self._top = at - self.size.height + 1
        self.refresh()
        self.post_message(self.Moved(self, row))

    def on_click(self, event: events.Click) -> None:
        """A click puts the cursor on a row, a click on the row of the cursor chooses it."""
        offset = event.get_content_offset(self)
        if not self.CURSOR or offset is None:
            return
        at = self._top + offset.y
        row = self._rows[at] if at < len(self._rows) else None
        if row is None:
            return
        if row == self._row:
            self.post_message(self.Chosen(self, row))
        else:
            self._move_to(at)

    def _cursor_line(self) -> int:
        if not self.CURSOR or self.row is None:
            return -1
        return next(at for at, row in enumerate(self._rows) if row == self.row)


def _plain(drawing: Drawing) -> Drawing:
    lines = [tuple(Span(in_ascii(text), ink) for text, ink in spans) for spans in drawing.lines]
    return Drawing(in_ascii(drawing.title), lines, in_ascii(drawing.note), drawing.rows)


def _at(lines: Sequence[Line], index: int) -> Line:
    return lines[index] if index < len(lines) else EMPTY
