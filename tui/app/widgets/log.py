"""The log of a job: all of it in its own screen, the last lines in the overview."""

import re

from tui.app.follow import LogView
from tui.app.ink import Drawing, Ink, Line, Span, clipped, line
from tui.app.scene import Scene
from tui.app.widgets.panel import Panel
from tui.app.widgets.training import job_name
from tui.text.cells import wrap
from tui.text.translate import tr

_ERROR = re.compile(r"\b(?:\w*Error|\w*Exception|Traceback|CUDA out of memory|SIG(?:KILL|SEGV|ABRT)|FATAL)\b")
_WARNING = re.compile(r"\bwarn(?:ing)?\b", re.IGNORECASE)


def log_ink(text: str) -> Ink:
    """Errors and warnings stand out."""
    if _ERROR.search(text):
        return "bad"
    return "warn" if _WARNING.search(text[:200]) else "plain"


def first_error(view: LogView) -> int | None:
    """The index of the first line that looks like an error."""
    return next((at for at, text in enumerate(view.lines) if _ERROR.search(text)), None)


class TailPanel(Panel):
    """The last lines of the log of the job in focus."""

    def draw(self, scene: Scene, width: int, height: int) -> Drawing:
        """As many of the newest lines as there is room for."""
        title = _title(scene)
        view = scene.log
        if view.path is None:
            return Drawing(title, [line(Span(tr("No log here."), "dim"))])
        if view.error:
            return Drawing(title, [_unreadable(view)])
        newest = [*view.lines[-height:], *([view.unfinished] if view.unfinished else [])][-height:]
        return Drawing(title, [_one(text, width) for text in newest])


def _title(scene: Scene) -> str:
    job = scene.main
    return tr("Log") if job is None else tr("Log") + scene.pen.separator + job_name(job)


def _unreadable(view: LogView) -> Line:
    return line(Span(tr("The log cannot be read: {why}.", why=view.error), "warn"))


def _one(text: str, cells: int) -> Line:
    ink = log_ink(text)
    return clipped(line(Span(text, "dim" if ink == "plain" else ink)), cells)


class LogPanel(Panel):
    """A whole log, wrapped; follows its end until somebody scrolls up."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.following = True
        self.sought = ""
        self._wrapped: list[Line] = []
        self._starts: list[int] = []
        self._wrapped_for: tuple[int, int, str, str] = (0, 0, "", "")

    def draw(self, scene: Scene, width: int, height: int) -> Drawing:
        """Every line; the panel's window is scrolled to the end while following."""
        view = scene.log
        title = _title(scene)
        if view.path is None:
            return Drawing(title, [line(Span(part, "dim")) for part in wrap(no_log_text(), width)])
        if view.error:
            return Drawing(title, [_unreadable(view)])
        self._wrap(view, width)
        lines = self._wrapped
        if self.following:
            self._top = max(0, len(lines) - height)
        return Drawing(title, lines, tr("following") if self.following else "")

    def _wrap(self, view: LogView, cells: int) -> None:
        key = (len(view.lines), cells, view.unfinished, self.sought + (view.lines[-1] if view.lines else ""))
        if key == self._wrapped_for:
            return
        self._wrapped_for = key
        self._wrapped, self._starts = [], []
        if view.cut:
            self._wrapped.append(line(Span(tr("(the beginning of this long log is not shown)"), "dim")))
        for text in (*view.lines, *([view.unfinished] if view.unfinished else [])):
            self._starts.append(len(self._wrapped))
            ink: Ink = "key" if self.sought and self.sought.lower() in text.lower() else log_ink(text)
            self._wrapped += [line(Span(part, ink)) for part in wrap(text, cells)]

    def scroll_lines(self, count: int) -> None:
        """Scrolling up stops following; reaching the end follows again."""
        super().scroll_lines(count)
        at_end = self._top >= len(self._lines) - self.size.height
        if self.following != at_end:
            self.following = at_end
            self.show(self._scene)

    def go_to(self, index: int) -> None:
        """Put that line of the log at the top."""
        if index < len(self._starts):
            self.following = False
            super().scroll_lines(self._starts[index] - self._top)

    def at_top(self) -> int:
        """The index of the line of the log at the top of the window."""
        return sum(1 for start in self._starts if start < self._top)


def no_log_text() -> str:
    """Why a run has no log to read."""
    return tr("This run was not started by llamaherd, so its log is where its starter put it.")
