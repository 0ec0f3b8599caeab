"""Help: the keys, all from the commands themselves, and what the panel in focus shows."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.widget import Widget

from tui.app.command import Command, key_name
from tui.app.commands import COMMANDS, Back, Leave, SwitchLanguage
from tui.app.ink import EMPTY, Drawing, Line, Span, cell, line
from tui.app.scene import Scene
from tui.app.view import View
from tui.app.widgets.lines import FootLine, HeadLine
from tui.app.widgets.panel import Panel
from tui.text.cells import width as width_of
from tui.text.cells import wrap
from tui.text.translate import tr


class HelpPanel(Panel):
    """Keys and sentences."""

    about: str = ""

    def draw(self, scene: Scene, width: int, height: int) -> Drawing:
        """First the panel that was in focus, then every command."""
        lines: list[Line] = []
        if self.about:
            lines += [line(part) for part in wrap(tr(self.about), width)]
            lines.append(EMPTY)
        for command in COMMANDS:
            lines += _command_lines(command, scene, width)
        lines.append(EMPTY)
        moves = tr("Tab goes to the next panel, arrows and page keys move in it, Enter opens, Esc goes back.")
        lines += [line(Span(part, "dim")) for part in wrap(moves, width)]
        mouse = tr("The mouse works everywhere; hold Shift to select text with it.")
        lines += [line(Span(part, "dim")) for part in wrap(mouse, width)]
        return Drawing(tr("Help"), lines)


def _command_lines(command: type[Command], scene: Scene, cells: int) -> list[Line]:
    if command.name == "fail_demo" and not scene.demo:
        return []
    keys = " ".join(key_name(key) for key in command.keys if not key.startswith("ctrl"))
    blocked = command.changes and scene.readonly
    label = tr(command.label)
    head = 14
    label_cells = max(12, width_of(label) + 1)
    text = tr(command.help) + (" " + tr("(read only: not now)") if blocked else "")
    first, *rest = wrap(text, max(10, cells - head - label_cells))
    lines = [
        line(cell(keys, head, "key"), cell(label, label_cells, "dim" if blocked else "strong"), Span(first))
    ]
    return lines + [line(" " * (head + label_cells) + part) for part in rest]


class HelpScreen(View):
    """One panel of help."""

    FOOT: ClassVar[tuple[type[Command], ...]] = (Back, SwitchLanguage, Leave)
    AUTO_FOCUS = "#helptext"

    def __init__(self, focused: Widget | None) -> None:
        super().__init__()
        self._about = focused.about_text if isinstance(focused, Panel) else ""

    def compose(self) -> ComposeResult:
        """Head, help, foot."""
        yield HeadLine(id="head")
        panel = HelpPanel(id="helptext")
        panel.about = self._about
        yield panel
        yield FootLine(id="foot")
