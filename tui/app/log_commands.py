"""The deeds of the log view."""

from typing import TYPE_CHECKING

from tui.app.command import Command
from tui.text.translate import tr_noop

if TYPE_CHECKING:
    from tui.app.app import HerdApp


class _InLog(Command):
    """A deed of the log view."""

    @classmethod
    def available(cls, app: "HerdApp") -> bool:
        """Only there."""
        return app.log_screen is not None


class SearchLog(_InLog):
    """Find text."""

    name = "search"
    keys = ("slash",)
    label = tr_noop("search")
    help = tr_noop("In the log: find a text.")

    @classmethod
    def run(cls, app: "HerdApp") -> None:
        """Open the field."""
        if app.log_screen is not None:
            app.log_screen.open_search()


class NextMatch(_InLog):
    """The next place."""

    name = "next"
    keys = ("n",)
    label = tr_noop("next")
    help = tr_noop("In the log: the next line with the text.")

    @classmethod
    def run(cls, app: "HerdApp") -> None:
        """Go there."""
        if app.log_screen is not None:
            app.log_screen.next_match()


class FirstError(_InLog):
    """Where it began to go wrong."""

    name = "first_error"
    keys = ("e",)
    label = tr_noop("first error")
    help = tr_noop("In the log: the first line that looks like an error.")

    @classmethod
    def run(cls, app: "HerdApp") -> None:
        """Go there."""
        if app.log_screen is not None:
            app.log_screen.first_error()


class FollowLog(_InLog):
    """To the end."""

    name = "follow"
    keys = ("f", "G")
    label = tr_noop("follow")
    help = tr_noop("In the log: go to the end and stay there as it grows.")

    @classmethod
    def run(cls, app: "HerdApp") -> None:
        """Go there."""
        if app.log_screen is not None:
            app.log_screen.follow()


IN_LOG: tuple[type[Command], ...] = (SearchLog, NextMatch, FirstError, FollowLog)
