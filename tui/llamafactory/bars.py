"""tqdm bars inside a fragment of a console log.

A bar without a description may be the training's or an evaluation's; which one is decided where the
run's plan is known. tqdm writes a nested bar as newline, bar, cursor up: so the ``ESC [ A`` right after
it tells that it is nested, which the evaluation's bar is as long as the training bar exists.
Every repeat in the patterns is bounded, so that any text is searched in linear time.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from tui.facts.training import BarKind
from tui.llamafactory.clocktext import duration
from tui.llamafactory.plain import plain

_BAR = re.compile(
    rb"\d{1,3}%(?:\|[^|]{0,2048}\|)? {0,8}(\d{1,12})/(\d{1,12}) "
    rb"\[([\d:]{4,14})<[^,\]]{1,24}, {0,8}([^\],]{1,32})[^\]]{0,200}\](\x1b\[A)?"
)
_COUNT = re.compile(rb"(\d{1,12}) examples \[([\d:]{4,14}),")
_RATE = re.compile(rb"(\d{1,12}\.\d{1,4})(it/s|s/it)")

_DESCRIBED: tuple[tuple[str, BarKind], ...] = (
    ("Running tokenizer on dataset", "tokenize"),
    ("Loading checkpoint shards", "load"),
    ("Loading weights", "load"),
    ("Converting format of dataset", "dataset"),
    ("Generating", "dataset"),
)


@dataclass(frozen=True, slots=True)
class BarText:
    """One bar as printed. ``elapsed`` is whole seconds; ``rate`` is tqdm's text for its smoothed speed."""

    description: str
    done: int
    total: int | None
    elapsed: float | None
    rate: bytes = b""
    nested: bool = False

    @property
    def described_kind(self) -> BarKind | None:
        """What the description says, ``None`` for one that is not known here."""
        return next((kind for start, kind in _DESCRIBED if self.description.startswith(start)), None)


def split_bars(fragment: bytes) -> Iterator[BarText | bytes]:
    """The bars and the texts between them, in order; texts of blanks only are left out."""
    if b"%" not in fragment and b" examples [" in fragment:
        counted = _COUNT.search(fragment)
        if counted is not None:
            done, elapsed = counted.groups()
            yield BarText(_description(fragment[: counted.start()]), int(done), None, _seconds(elapsed))
            return
    end = 0
    if b"%" in fragment:
        for match in _BAR.finditer(fragment):
            before = fragment[end : match.start()].strip(b" ")
            # A line that a log call left unfinished may stand before a bar; a description ends in ": ".
            described = before.endswith(b":")
            if before and not described:
                yield before
            done, total, elapsed, rate, nested = match.groups()
            description = _description(before) if described else ""
            yield BarText(description, int(done), int(total), _seconds(elapsed), rate, nested is not None)
            end = match.end()
    rest = fragment[end:]
    if rest and not rest.isspace():
        yield rest


def seconds_per_step(rate: bytes) -> float | None:
    """The rate text ``3.62s/it`` or ``5.13it/s`` in seconds, ``None`` for ``?it/s`` and anything else."""
    match = _RATE.fullmatch(rate.strip())
    if match is None:
        return None
    value = float(match[1])
    if match[2] == b"s/it":
        return value
    return 1 / value if value else None


def _description(text: bytes) -> str:
    return plain(text[-200:]).strip().rstrip(":")


@lru_cache(maxsize=8)
def _seconds(elapsed: bytes) -> float | None:
    return duration(elapsed.decode())
