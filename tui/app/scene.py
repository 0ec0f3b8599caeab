"""What the panels draw from: the newest picture, the short past, and how to draw."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tui.app.follow import LogView
from tui.app.graphs import PEN, Pen
from tui.app.history import History
from tui.app.themes import DARK, Colours, colours_of

if TYPE_CHECKING:
    from tui.facts.job import Job
    from tui.facts.machine import Gpu, Owner
    from tui.facts.snapshot import Snapshot

LIVE = frozenset({"starting", "running", "stopping", "stuck", "lost"})
STALE_AFTER = 5.0
"""Seconds after which a figure is shown with its age; a slow reading is not yet a lost one."""
TIGHT = 0.95
"""Fraction of a card's memory from which it is called tight."""


@dataclass(frozen=True, slots=True)
class Scene:
    """One moment. ``snapshot`` is ``None`` until the first one has come; ``chosen`` is the job that a
    person picked, ``behind`` the seconds since the last new picture when that is long, ``trouble`` why.
    """

    snapshot: Snapshot | None = None
    history: History = field(default_factory=History)
    pen: Pen = PEN
    chosen: str | None = None
    demo: bool = False
    readonly: bool = False
    paused: bool = False
    behind: float | None = None
    trouble: str = ""
    log: LogView = field(default_factory=LogView)
    colours: Colours = field(default_factory=lambda: colours_of(DARK.name))

    @property
    def gpus(self) -> tuple[Gpu, ...]:
        """The cards, in the driver's order."""
        return self.snapshot.gpus if self.snapshot else ()

    @property
    def jobs(self) -> tuple[Job, ...]:
        """Every job and foreign run: the live ones first, ours before others', then by age."""
        if self.snapshot is None:
            return ()
        every = (*self.snapshot.jobs, *self.snapshot.foreign)
        return tuple(sorted(every, key=_order))

    @property
    def live(self) -> tuple[Job, ...]:
        """The jobs that have not ended."""
        return tuple(job for job in self.jobs if job.state in LIVE)

    def job(self, identity: str | None) -> Job | None:
        """The job of that id."""
        return next((job for job in self.jobs if job.id == identity), None)

    @property
    def main(self) -> Job | None:
        """The job in focus: the chosen one, else the live training, else the newest of all trainings."""
        trainings = [job for job in self.jobs if job.kind == "training"]
        return self.job(self.chosen) or (trainings[0] if trainings else None)

    def owners(self) -> Iterator[tuple[Gpu, Owner]]:
        """Every owner with its card, per card from the largest to the unexplained rest."""
        for card in self.gpus:
            rows = sorted(
                card.owners, key=lambda row: (row.evidence == "hidden", -(row.memory or 0), row.pid or 0)
            )
            for row in rows:
                yield card, row


def _order(job: Job) -> tuple[bool, bool, float]:
    # A run that somebody starts elsewhere must not slip under the key that stops ours.
    return job.state not in LIVE, job.folder is None, -(job.started_at or 0.0)


def memory_share(card: Gpu) -> float | None:
    """The fraction of the card's memory in use."""
    total, used = card.memory.total, card.memory.used
    return used / total if total and used is not None else None


def is_stale(card: Gpu) -> bool:
    """Whether the figures of the card are old enough to say so."""
    return card.age is not None and card.age > STALE_AFTER


def is_tight(card: Gpu) -> bool:
    """Whether nearly all of the card's memory is in use or reserved by the driver."""
    total, used = card.memory.total, card.memory.used
    return bool(total) and used is not None and (used + (card.memory.reserved or 0)) / (total or 1) >= TIGHT
