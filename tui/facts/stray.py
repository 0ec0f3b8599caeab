"""What is left of runs that have nobody to lead them any more."""

from dataclasses import dataclass
from typing import Literal

from tui.facts.job import Member

StrayReason = Literal[
    "rank_without_agent",
    "worker_without_trainer",
    "pool_without_trainer",
    "engine_without_server",
    "log",
    "device",
    "token",
    "zombie",
]
"""Why a process is called a stray: its torchrun, trainer or server is gone and it came to PID 1; it
writes the log of a job that is over, carries that job's mark and holds a card, or only carries the
mark, which is no proof; it is dead and its parent does not collect it.
"""

Obstacle = Literal["terminal", "unproven", "zombie", "kernel_wait", "protected"]
"""Why it is shown and not swept: it has a terminal; nothing proves that it belongs; it is dead already;
it waits in the kernel, where no signal reaches it; it is one that is never signalled.
"""


@dataclass(frozen=True, slots=True)
class Stray:
    """One process. ``started_at`` is epoch seconds, ``devices`` the N of every ``/dev/nvidiaN`` it holds,
    ``resident`` bytes of the host's memory.
    """

    process: Member
    reason: StrayReason
    started_at: float | None = None
    devices: tuple[int, ...] = ()
    resident: int | None = None
    obstacle: Obstacle | None = None


@dataclass(frozen=True, slots=True)
class StrayGroup:
    """The strays of one run. ``id`` is ``pid:start`` of the first, ``job`` the id of the job of ours that
    they are of, ``command`` and ``cwd`` what the run was.
    """

    id: str
    job: str | None
    command: tuple[str, ...]
    cwd: str | None
    strays: tuple[Stray, ...]

    @property
    def sweepable(self) -> tuple[Stray, ...]:
        """Those that may be ended."""
        return tuple(stray for stray in self.strays if stray.obstacle is None)
