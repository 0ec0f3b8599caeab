"""The log view: follow, search, jump to the first error."""

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.widgets import Input

from tui.app.command import Command, bindings
from tui.app.commands import Back, Leave, ShowHelp
from tui.app.log_commands import IN_LOG, FirstError, FollowLog, NextMatch, SearchLog
from tui.app.view import View
from tui.app.widgets.lines import FootLine, HeadLine, VerdictLine
from tui.app.widgets.log import LogPanel, first_error
from tui.text.translate import tr


class LogScreen(View):
    """The log of the job in focus."""

    FOOT: ClassVar[tuple[type[Command], ...]] = (
        Back,
        SearchLog,
        NextMatch,
        FirstError,
        FollowLog,
        ShowHelp,
        Leave,
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings(IN_LOG)
    AUTO_FOCUS = "#log"

    def compose(self) -> ComposeResult:
        """Head, log, the field for searching, foot."""
        yield HeadLine(id="head")
        yield VerdictLine(id="verdict")
        yield LogPanel(id="log")
        search = Input(id="search", compact=True, placeholder=tr("search, then Enter"))
        search.display = False
        yield search
        yield FootLine(id="foot")

    @property
    def log_panel(self) -> LogPanel:
        """The log."""
        return self.query_one(LogPanel)

    def open_search(self) -> None:
        """Show the field."""
        field = self.query_one(Input)
        field.value = ""
        field.display = True
        field.focus()

    @on(Input.Submitted)
    def search(self, event: Input.Submitted) -> None:
        """Go to the next line with the text."""
        event.stop()
        self.query_one(Input).display = False
        self.log_panel.focus()
        self.log_panel.sought = event.value.strip()
        self.next_match()

    def next_match(self) -> None:
        """The next line with the text, from the top of the window on, round the end."""
        sought = self.log_panel.sought.lower()
        if not sought:
            self.open_search()
            return
        lines = self.herd.scene.log.lines
        self.log_panel.show(self.herd.scene)
        after = self.log_panel.at_top() + 1
        order = [*range(after, len(lines)), *range(min(after, len(lines)))]
        found = next((at for at in order if sought in lines[at].lower()), None)
        if found is None:
            self.herd.say(tr("Not found: {text}", text=self.log_panel.sought))
        else:
            self.log_panel.go_to(found)

    def first_error(self) -> None:
        """The first line that looks like an error."""
        found = first_error(self.herd.scene.log)
        if found is None:
            self.herd.say(tr("No line looks like an error."))
        else:
            self.log_panel.go_to(found)

    def follow(self) -> None:
        """To the end, and stay there."""
        self.log_panel.scroll_lines(1 << 30)
