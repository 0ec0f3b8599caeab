"""A training's console log followed from wherever it is: read late or live, facts on one clock."""

from pathlib import Path

from tui.facts.training import RunLog
from tui.llamafactory.console import ConsoleParser
from tui.llamafactory.tail import LogTail, Piece

_PIECES = 4  # of one update; what is left waits for the next one


class LogFollower:
    """Owns the open file and the parser of one log; ``close`` lets go of the file.

    The bytes that lie there at the first update arrived, at the latest, when the file was last written.
    """

    def __init__(self, path: Path) -> None:
        self._tail = LogTail(path)
        self._parser = ConsoleParser()
        self._started = False

    @property
    def missing(self) -> bool:
        """There is no such file now."""
        return self._tail.missing

    @property
    def changed_at(self) -> float | None:
        """When the log was last written, epoch seconds."""
        return self._tail.changed_at

    def close(self) -> None:
        """Let go of the file."""
        self._tail.close()

    def update(self, monotonic: float, epoch: float) -> RunLog:
        """What the log says now; ``monotonic`` is the clock that ``RunLog.changed_at`` is on.

        Raises ``OSError`` when the log is there and cannot be read.
        """
        if not self._started:
            for piece in self._tail.start_late():
                self._feed(piece, self._arrival(monotonic, epoch))
            self._started = not self._tail.missing
        for _ in range(_PIECES):
            piece = self._tail.read()
            if not piece.data:
                break
            self._feed(piece, self._arrival(monotonic, epoch))
        return self._parser.facts()

    def _arrival(self, monotonic: float, epoch: float) -> float:
        changed_at = self._tail.changed_at
        return monotonic - max(0.0, epoch - changed_at) if changed_at is not None else monotonic

    def _feed(self, piece: Piece, at: float) -> None:
        if piece.restarted:
            self._parser = ConsoleParser()
        elif piece.gap:
            self._parser.gap()
        self._parser.feed(piece.data, at)
