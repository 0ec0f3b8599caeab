"""The short past of every card and run, in buckets of fixed length.

A column of a graph is ten seconds: a graph that moved at every tick would be most of what is sent to
the terminal, and five minutes say more than thirty seconds. A bucket without a reading is a gap.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tui.facts.snapshot import Snapshot


BUCKET = 10.0
"""Seconds per column."""

COLUMNS = 240
"""Columns kept: forty minutes."""


class Series:
    """Mean values per bucket, newest last; ``None`` where nothing was read."""

    def __init__(self, bucket: float = BUCKET) -> None:
        self._bucket = bucket
        self._means: deque[float | None] = deque(maxlen=COLUMNS)
        self._number: int | None = None
        self._sum = 0.0
        self._count = 0

    def add(self, at: float, value: float | None) -> None:
        """One reading at ``at`` (epoch seconds)."""
        number = int(at // self._bucket)
        if self._number is None or number < self._number:  # the clock was set back: begin anew
            self._means.clear()
            self._means.append(None)
            self._start(number)
        elif number > self._number:
            self._means.extend([None] * min(number - self._number, COLUMNS))
            self._start(number)
        if value is not None:
            self._sum += value
            self._count += 1
            self._means[-1] = self._sum / self._count

    def _start(self, number: int) -> None:
        self._number, self._sum, self._count = number, 0.0, 0

    @property
    def values(self) -> Sequence[float | None]:
        """The buckets so far."""
        return list(self._means)


class History:
    """Memory and utilisation per card (by uuid), loss per job (by id)."""

    def __init__(self) -> None:
        self._memory: dict[str, Series] = {}
        self._busy: dict[str, Series] = {}
        self._loss: dict[str, list[tuple[int, float]]] = {}
        self._last = 0

    def add(self, snapshot: Snapshot) -> None:
        """Take in one picture; the same picture twice counts once."""
        if snapshot.number == self._last:
            return
        self._last = snapshot.number
        for card in snapshot.gpus:
            total, used = card.memory.total, card.memory.used
            share = used / total if total and used is not None else None
            self._memory.setdefault(card.uuid, Series()).add(snapshot.taken_at, share)
            self._busy.setdefault(card.uuid, Series()).add(snapshot.taken_at, card.utilization)
        alive = {job.id for job in (*snapshot.jobs, *snapshot.foreign)}
        for gone in self._loss.keys() - alive:
            del self._loss[gone]
        for job in (*snapshot.jobs, *snapshot.foreign):
            if job.progress and job.progress.loss is not None and job.progress.step is not None:
                self._add_loss(job.id, job.progress.step, job.progress.loss)

    def _add_loss(self, job: str, step: int, loss: float) -> None:
        points = self._loss.setdefault(job, [])
        if points and points[-1][1] == loss:
            return  # the same logged figure, seen at a later step
        points.append((step, loss))
        if len(points) > 2 * COLUMNS:
            # Thin out the whole run: the beginning of a loss curve matters.
            points[:] = points[::2]

    def memory(self, uuid: str) -> Sequence[float | None]:
        """Fractions of the card's memory in use."""
        return self._memory[uuid].values if uuid in self._memory else ()

    def busy(self, uuid: str) -> Sequence[float | None]:
        """Fractions of time in which a kernel ran."""
        return self._busy[uuid].values if uuid in self._busy else ()

    def loss(self, job: str) -> Sequence[float]:
        """The logged losses, oldest first."""
        return [loss for _, loss in self._loss.get(job, ())]
