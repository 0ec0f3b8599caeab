"""``logs JOB [-f]``: a job's console log, harmless to a terminal, with its bars collapsed."""

import argparse
import sys
import time
from collections.abc import Iterable

from tui.cli.context import Context
from tui.cli.documents import LineDocument, emit
from tui.cli.terminal import Terminal
from tui.facts.errors import EXIT_OK
from tui.jobs.client import find_job, is_over
from tui.llamafactory.tail import LogTail
from tui.text.cells import cut
from tui.text.loglines import LogLines

_POLL = 0.2
_ERASE = "\r\x1b[K"


def logs(arguments: argparse.Namespace) -> int:
    """Print what is there; with ``-f`` go on until the job ends."""
    found = find_job(Context.of(arguments).roots, arguments.job)
    printer: _Printer | _JsonPrinter = _JsonPrinter() if arguments.json else _Printer(Terminal.of_stdout())
    with LogTail(found.folder.log) as tail:
        while True:
            # Asked before reading: what was written before the end is then surely read.
            over = not arguments.follow or is_over(found.folder.read_record())
            while (piece := tail.read()).data:
                printer.show(piece.data)
            if over:
                break
            printer.show_unfinished()
            time.sleep(_POLL)
    printer.finish()
    return EXIT_OK


class _JsonPrinter:
    """Prints one document a finished line."""

    def __init__(self) -> None:
        self._lines = LogLines()

    def show(self, data: bytes) -> None:
        self._print(self._lines.feed(data))

    def show_unfinished(self) -> None:
        """A line is shown when it is finished."""

    def finish(self) -> None:
        self._print(filter(None, [self._lines.unfinished]))

    def _print(self, lines: Iterable[str]) -> None:
        for line in lines:
            emit(LineDocument(line))


class _Printer:
    """Prints finished lines; on a terminal the unfinished one, usually a bar, is redrawn in place."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._lines = LogLines()
        self._drawn = ""

    def show(self, data: bytes) -> None:
        finished = self._lines.feed(data)
        if finished:
            self._erase()
            sys.stdout.write("\n".join(finished) + "\n")
            sys.stdout.flush()

    def show_unfinished(self) -> None:
        text = cut(self._lines.unfinished, max(1, self._terminal.width - 1))
        if self._terminal.is_terminal and text != self._drawn:
            self._erase()
            sys.stdout.write(text)
            sys.stdout.flush()
            self._drawn = text

    def finish(self) -> None:
        self._erase()
        if self._lines.unfinished:
            sys.stdout.write(self._lines.unfinished + "\n")
        sys.stdout.flush()

    def _erase(self) -> None:
        if self._drawn:
            sys.stdout.write(_ERASE)
            self._drawn = ""
