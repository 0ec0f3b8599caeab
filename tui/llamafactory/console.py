"""The console log of a training, read as it grows: bytes in any pieces, facts at any time."""

from dataclasses import replace

from tui.facts.training import RunLog
from tui.llamafactory.bars import BarText, split_bars
from tui.llamafactory.flood import worth_reading
from tui.llamafactory.lines import LineReader
from tui.llamafactory.plain import plain

FRAGMENT_LIMIT = 1 << 16
"""Bytes kept between two line ends: a dump of token ids may be megabytes long."""


class ConsoleParser:
    """Feeds on a log and knows the run.

    tqdm ends a bar only when it draws the next one, so lines are cut at carriage returns too, and bars
    are also read from the piece that has no end yet. Any bytes may come; the pieces they come in make
    no difference. Memory is bounded and time is linear in the bytes.
    """

    def __init__(self) -> None:
        self._lines = LineReader()
        self._pending = bytearray()
        self._pending_at = 0.0

    def feed(self, data: bytes, at: float) -> None:
        """The next bytes of the log; ``at``: when they arrived, in seconds on any one clock."""
        # NUL is what a freed part of the file reads as; nothing goes across it.
        first, *others = data.replace(b"\r", b"\n").replace(b"\0", b"\n").split(b"\n")
        self._keep(first, at)
        if not others:
            return
        self._fragment(bytes(self._pending), self._pending_at)
        *whole, last = others
        for fragment in worth_reading([piece for piece in whole if piece and not piece.isspace()]):
            self._fragment(fragment[:FRAGMENT_LIMIT], at)
        self._pending.clear()
        self._keep(last, at)

    def gap(self) -> None:
        """The next bytes do not follow the last ones: the middle of the log is not read."""
        self._pending.clear()
        self._lines.gap()

    def facts(self) -> RunLog:
        """What the log has said so far, its unfinished end included."""
        run = self._lines.preview()
        if self._pending:
            for piece in split_bars(bytes(self._pending)):
                if isinstance(piece, BarText):
                    run.take_bar(piece, self._pending_at, finished=False)
        return replace(run.facts(), told=self._lines.told.facts())

    def _keep(self, piece: bytes, at: float) -> None:
        if not piece:
            return
        # A bar is written at once: it was complete when its first bytes came, whenever its end comes.
        if not self._pending:
            self._pending_at = at
        self._pending += piece[: FRAGMENT_LIMIT - len(self._pending)]

    def _fragment(self, fragment: bytes, at: float) -> None:
        for piece in split_bars(fragment):
            if isinstance(piece, BarText):
                self._lines.run.take_bar(piece, at)
            else:
                self._lines.line(plain(piece), at)
