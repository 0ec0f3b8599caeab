"""A sheet over the screen: some sentences and a list of choices, the harmless one first and chosen."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, NamedTuple, cast

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen

from tui.app.ink import EMPTY, Drawing, Ink, Line, Span, line
from tui.app.scene import Scene
from tui.app.widgets.panel import Panel

if TYPE_CHECKING:
    from tui.app.app import HerdApp


class Choice(NamedTuple):
    """Something that can be chosen; a dangerous one is drawn so."""

    name: str
    label: str
    danger: bool = False


class Sheet(ModalScreen[None]):
    """The base of everything that asks. Esc is always the harmless way out."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "app.pop_screen", show=False),
        Binding("question_mark,f1", "app.deed('help')", show=False),
        Binding("ctrl+c", "app.deed('leave')", show=False),
    ]
    AUTO_FOCUS = "#sheet"
    WIDTH = 76

    @property
    def herd(self) -> "HerdApp":
        """The app, by its own type."""
        return cast("HerdApp", self.app)

    def title_text(self) -> str:
        """What the frame says."""
        raise NotImplementedError

    def sentences(self, scene: Scene, cells: int) -> Sequence[Line]:
        """What is said above the choices."""
        raise NotImplementedError

    def choices(self, scene: Scene) -> Sequence[Choice]:
        """What can be chosen now; the first is chosen by Enter at once."""
        raise NotImplementedError

    def choose(self, name: str) -> None:
        """A choice was made."""
        raise NotImplementedError

    def compose(self) -> ComposeResult:
        """One panel."""
        yield SheetPanel(id="sheet")

    def on_screen_resume(self) -> None:
        """With its right size and what is known from the first frame on."""
        self.show(self.herd.scene)

    def on_resize(self) -> None:
        """Another terminal size."""
        self._resize()

    def show(self, scene: Scene) -> None:
        """Draw anew; the size follows the number of lines."""
        self._resize()
        self.query_one(SheetPanel).show(scene)

    def _resize(self) -> None:
        panel = self.query_one(SheetPanel)
        columns = min(self.WIDTH, self.app.size.width - 4)
        lines = len(panel.draw(self.herd.scene, columns - 6, 0).lines)
        panel.styles.width = columns
        panel.styles.height = min(lines + 4, self.app.size.height - 2)

    def on_panel_chosen(self, message: Panel.Chosen) -> None:
        """Enter, or a click on the choice under the cursor."""
        message.stop()
        self.choose(message.row)


class SheetPanel(Panel):
    """The sentences and, below, the choices, one a line."""

    CURSOR = True

    def draw(self, scene: Scene, width: int, height: int) -> Drawing:
        """Ask the sheet."""
        sheet = cast("Sheet", self.screen)
        said = list(sheet.sentences(scene, width))
        choices = sheet.choices(scene)
        if height:
            said = said[: max(1, height - len(choices) - 1)]  # the choices are never out of sight
        lines = [*said, EMPTY, *[_choice_line(choice, width) for choice in choices]]
        rows = [*[None] * (len(said) + 1), *[choice.name for choice in choices]]
        return Drawing(sheet.title_text(), lines, rows=rows)


def _choice_line(choice: Choice, cells: int) -> Line:
    ink: Ink = "bad" if choice.danger else "accent"
    return line(Span("  " + choice.label, ink))
