"""Which ports the processes of a run listen on: dear to find, and seldom changing."""

import time
from collections.abc import Callable, Iterable

from tui.collect.proc import Proc

PERIOD = 5.0
"""Seconds for which an answer about the same processes is good."""


class PortFinder:
    """Finds them again and again; ``clock`` tells monotonic seconds."""

    def __init__(self, proc: Proc, clock: Callable[[], float] = time.monotonic) -> None:
        self._proc = proc
        self._clock = clock
        self._known: dict[frozenset[int], tuple[float, tuple[int, ...]]] = {}

    def of(self, pids: Iterable[int]) -> tuple[int, ...]:
        """The ports on which any of ``pids`` listens, in order; up to ``PERIOD`` old."""
        wanted, now = frozenset(pids), self._clock()
        self._known = {group: known for group, known in self._known.items() if now - known[0] < PERIOD}
        if wanted not in self._known:
            self._known[wanted] = (now, tuple(sorted(self._proc.ports(wanted))))
        return self._known[wanted][1]
