"""The owners view: the whole table, with the proof of every row."""

from typing import ClassVar

from textual.app import ComposeResult

from tui.app.command import Command
from tui.app.commands import Back, Leave, ShowHelp, SwitchLanguage
from tui.app.view import View
from tui.app.widgets.lines import FootLine, HeadLine, VerdictLine
from tui.app.widgets.owners import OwnersPanel


class OwnersScreen(View):
    """Every owner of every card."""

    FOOT: ClassVar[tuple[type[Command], ...]] = (Back, SwitchLanguage, ShowHelp, Leave)
    AUTO_FOCUS = "#owners"

    def compose(self) -> ComposeResult:
        """Head, table, foot."""
        yield HeadLine(id="head")
        yield VerdictLine(id="verdict")
        yield OwnersPanel(id="owners")
        yield FootLine(id="foot")
