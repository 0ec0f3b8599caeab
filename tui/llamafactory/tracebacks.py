"""Python tracebacks in a console log, also of several ranks at once.

In a distributed run the default hook puts ``[rank1]: `` before each line, so every rank is followed by
itself; lines without that prefix share one reader. Lines of other origin in between are passed over.
"""

import re
from dataclasses import dataclass, field

_RANK = re.compile(r"\[(?:rank|default)(\d{1,5})\]: ?")
_HEAD = "Traceback (most recent call last):"
_FRAME = re.compile(r' {1,8}File "[^"]{1,1000}", line \d{1,9}, in (\S{1,200})')
# The last part of the name is a class: that tells ``ValueError: x`` from ``inputs: x``.
_RAISED = re.compile(r"((?:[A-Za-z_]\w{0,80}\.){0,12}[A-Z]\w{0,80})(?:: ?(.*))?")

_FRAMES = 400
_PATIENCE = 400  # lines of other origin between two lines of one traceback
_MESSAGE = 2000
_STREAMS = 64


@dataclass(frozen=True, slots=True)
class Raised:
    """One exception that ended a traceback. ``functions`` go from the outermost frame inwards."""

    rank: int | None
    name: str
    message: str
    functions: tuple[str, ...] = ()

    @property
    def short_name(self) -> str:
        """The class name without its modules."""
        return self.name.rpartition(".")[2]


@dataclass
class _Open:
    functions: list[str] = field(default_factory=list)
    foreign_lines: int = 0


class TracebackReader:
    """Follows the tracebacks of all ranks, line by line."""

    def __init__(self) -> None:
        self._open: dict[int | None, _Open] = {}

    def line(self, text: str) -> tuple[bool, Raised | None]:
        """Whether the line belongs to a traceback, and the exception if it ends one."""
        rank, text = rank_prefix(text)
        head = text.find(_HEAD)
        if head >= 0:
            if rank in self._open or len(self._open) < _STREAMS:
                self._open[rank] = _Open()
            return True, None
        current = self._open.get(rank)
        if current is None:
            return False, None
        frame = _FRAME.match(text)
        if frame is not None:
            current.foreign_lines = 0
            if len(current.functions) < _FRAMES:
                current.functions.append(frame[1])
            return True, None
        if text.startswith("  "):
            return True, None
        raised = _RAISED.fullmatch(text.rstrip()[:_MESSAGE])
        if raised is not None:
            del self._open[rank]
            return True, Raised(rank, raised[1], raised[2] or "", tuple(current.functions))
        current.foreign_lines += 1
        if current.foreign_lines > _PATIENCE:
            del self._open[rank]
        return False, None


def rank_prefix(text: str) -> tuple[int | None, str]:
    """The rank that a line is marked with, and the line without the mark."""
    match = _RANK.match(text) if text.startswith("[") else None
    return (int(match[1]), text[match.end() :]) if match else (None, text)
