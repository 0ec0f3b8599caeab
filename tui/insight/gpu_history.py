"""The past of every card, for graphs of the last minute, ten minutes or hour.

Each span has columns of its own, so that choosing another one needs no reading again and memory stays
bounded. A column knows the mean and the highest value: a mean hides the peak that ends a run.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from tui.facts.machine import Gpu

Quantity = Literal["memory", "utilization", "power", "temperature"]
Span = Literal[60, 600, 3600]

SPANS: Mapping[Span, float] = {60: 1.0, 600: 5.0, 3600: 20.0}
"""Seconds of a span to seconds of its columns."""

_LATE = 2.0
"""Seconds: readings come once a second and are up to a second old, which is no gap yet."""


def _memory(gpu: Gpu) -> float | None:
    return None if gpu.memory.used is None else float(gpu.memory.used)


_QUANTITIES: Mapping[Quantity, Callable[[Gpu], float | None]] = {
    "memory": _memory,
    "utilization": lambda gpu: gpu.utilization,
    "power": lambda gpu: gpu.power,
    "temperature": lambda gpu: gpu.temperature,
}


@dataclass(frozen=True, slots=True)
class Column:
    """What was read in one stretch of time, in the unit of the card's figure."""

    mean: float
    highest: float


class Ring:
    """The newest columns of one figure, ``seconds`` each; a column without a reading is ``None``."""

    def __init__(self, seconds: float, length: int) -> None:
        self._seconds = seconds
        self._columns: deque[Column | None] = deque(maxlen=length)
        self._number = -1
        self._at = 0.0
        self._sum, self._count = 0.0, 0

    def add(self, at: float, value: float | None) -> None:
        """One reading, ``at`` monotonic seconds; what is older than the newest is left out."""
        number = int(at // self._seconds)
        if number < self._number:
            return
        if number > self._number:
            self._go_on(number, at)
        self._at = at
        if value is not None:
            before = self._columns[-1] if self._count else None
            self._sum, self._count = self._sum + value, self._count + 1
            highest = value if before is None else max(before.highest, value)
            self._columns[-1] = Column(self._sum / self._count, highest)

    def _go_on(self, number: int, at: float) -> None:
        """Begin column ``number``. Readings beat against the columns: one that was skipped is no gap."""
        skipped = min(number - self._number - 1, self._columns.maxlen or 0) if self._columns else 0
        is_beat = at - self._at < 2 * self._seconds
        self._columns.extend([self._columns[-1] if is_beat else None for _ in range(skipped)])
        self._columns.append(None)
        self._number, self._sum, self._count = number, 0.0, 0

    def columns(self, now: float) -> tuple[Column | None, ...]:
        """All of them up to ``now``, the newest last; the gap since the last reading is empty columns."""
        length = self._columns.maxlen or 0
        missing = min(length, max(0, int((now - _LATE) // self._seconds) - self._number))
        shown = (*self._columns, *(None,) * missing)[-length:]
        return (None,) * (length - len(shown)) + shown


class GpuHistory:
    """The past of all cards, by uuid."""

    def __init__(self) -> None:
        self._rings: dict[tuple[str, Quantity, Span], Ring] = {}
        self._last: dict[str, float] = {}

    def add(self, gpus: Iterable[Gpu], now: float) -> None:
        """Take in the cards as shown at ``now`` (monotonic seconds); an old reading counts once."""
        for gpu in gpus:
            at = now - (gpu.age or 0.0)
            if not gpu.uuid or gpu.age is None or at <= self._last.get(gpu.uuid, at - 1) + 1e-3:
                continue
            self._last[gpu.uuid] = at
            for quantity, read in _QUANTITIES.items():
                for span, seconds in SPANS.items():
                    key = (gpu.uuid, quantity, span)
                    if key not in self._rings:
                        self._rings[key] = Ring(seconds, int(span / seconds))
                    self._rings[key].add(at, read(gpu))

    def columns(self, uuid: str, quantity: Quantity, span: Span, now: float) -> tuple[Column | None, ...]:
        """The columns of one figure of one card over ``span`` seconds, the newest last."""
        ring = self._rings.get((uuid, quantity, span))
        return ring.columns(now) if ring is not None else (None,) * int(span / SPANS[span])
