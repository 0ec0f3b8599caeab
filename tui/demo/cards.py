"""Simulated cards, dressed around what the demo's real jobs are doing."""

import math
from dataclasses import replace

from tui.facts.job import Job
from tui.facts.machine import Clocks, Driver, Gpu, GpuMemory, Owner
from tui.facts.snapshot import Snapshot
from tui.facts.training import Stage

_GIB = 1 << 30
_TOTAL = 24 * _GIB
_RESERVED = 450 << 20
_IDLE = 3 << 20
_NOTEBOOK = int(2.8 * _GIB)
_UNEXPLAINED = int(1.1 * _GIB)
_RUNNING = frozenset({"starting", "running", "stopping", "stuck"})

_MEMORY: dict[Stage, float] = {
    "start": 0.0,
    "import": 0.0,
    "dataset": 0.4,
    "tokenize": 0.4,
    "load": 9.0,
    "prepare": 15.6,
}
"""GiB that a run holds before its first step, by stage."""


class Cards:
    """Two cards: the jobs train on the first, a notebook and something unexplained sit on the second."""

    def __init__(self) -> None:
        self._peaks = [0, 0]

    def dress(self, snapshot: Snapshot) -> Snapshot:
        """The picture with these cards in place of the machine's own, and nothing that is not the demo's."""
        at = snapshot.taken_at
        live = [job for job in snapshot.jobs if job.state in _RUNNING]
        owners = tuple(owner for job in live if (owner := _owner(job, at)) is not None)
        busy = max((_busy(job, at) for job in live), default=0.0)
        cards = (
            self._card(0, owners, busy, 0),
            self._card(1, _others(), 0.0, _UNEXPLAINED),
        )
        return replace(
            snapshot,
            driver=Driver("550.90.07", "12.550.90.07", "own_with_memory"),
            gpus=cards,
            host=replace(snapshot.host, gpu_mode="gpu"),
            jobs=tuple(replace(job, gpus=(cards[0].uuid,)) for job in snapshot.jobs),
            foreign=(),
            findings=tuple(
                item for item in snapshot.findings if item.subject in {job.id for job in snapshot.jobs}
            ),
        )

    def _card(self, index: int, owners: tuple[Owner, ...], busy: float, unexplained: int) -> Gpu:
        used = sum(owner.memory or 0 for owner in owners) or _IDLE
        self._peaks[index] = max(self._peaks[index], used)
        return Gpu(
            index=index,
            minor=index,
            uuid=f"GPU-demo-{index}",
            name="NVIDIA GeForce RTX 4090",
            state="ok",
            age=0.0,
            memory=GpuMemory(_TOTAL, used, _RESERVED, _TOTAL - used - _RESERVED, unexplained),
            utilization=busy,
            temperature=round(36 + 30 * busy),
            power=24.0 + 300 * busy,
            power_limit=450.0,
            clocks=Clocks(2_520_000_000 if busy else 210_000_000, 10_501_000_000),
            throttle=(),
            peak_memory=self._peaks[index],
            owners=owners,
        )


def _others() -> tuple[Owner, ...]:
    notebook = Owner(
        pid=None,
        host_pid=None,
        start=None,
        memory=_NOTEBOOK,
        evidence="exact",
        kind="notebook",
        user="root",
        command=("simulated notebook",),
        state="sleeping",
    )
    hidden = replace(notebook, memory=_UNEXPLAINED, evidence="hidden", kind="other", user=None, command=())
    return notebook, hidden


def _owner(job: Job, at: float) -> Owner | None:
    memory = _memory(job, at)
    if not memory or job.main_pid is None:
        return None
    main = next((member for member in job.members if member.pid == job.main_pid), None)
    return Owner(
        pid=job.main_pid,
        host_pid=None,
        start=main.start if main else None,
        memory=memory,
        evidence="exact",
        kind="train",
        job=job.id,
        user="root",
        command=job.command,
        state="running",
    )


def _memory(job: Job, at: float) -> int:
    stage = job.progress.stage if job.progress else None
    if stage is None:
        return 0
    gib = _MEMORY.get(stage, 20.9 + 0.5 * math.sin(at / 9))
    return int(gib * _GIB)


def _busy(job: Job, at: float) -> float:
    stage = job.progress.stage if job.progress else None
    if stage in _MEMORY or stage is None:
        return 0.0
    return 0.35 if stage == "save" else 0.93 + 0.06 * math.sin(at / 3)
