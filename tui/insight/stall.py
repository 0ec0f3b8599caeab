"""Why a run makes no step, judged by what its processes wait in."""

from collections.abc import Sequence

from tui.facts.finding import Action, Finding
from tui.facts.job import Job
from tui.facts.waiting import StallCause, Wait

LEAST_SECONDS = 30.0
INTERVALS = 6
"""No sign of progress for so many of the usual intervals between two signs."""
NO_INTERVAL = 600.0
"""Where no interval is known yet."""
DISK_FULL = 16 << 20
BUSY = 0.9

_TRAINERS = frozenset({"main", "rank"})


def stalled_for(job: Job) -> float | None:
    """Seconds without a sign of progress, where these are too many; evaluations and saves are no stall."""
    progress = job.progress
    if job.state != "running" or progress is None or progress.age is None or progress.stage != "train":
        return None
    usual = progress.sign_interval
    limit = max(LEAST_SECONDS, INTERVALS * usual) if usual is not None else NO_INTERVAL
    return progress.age if progress.age > limit else None


def stall_finding(
    job: Job, waits: Sequence[Wait], disk_free: int | None, utilization: Sequence[float | None]
) -> Finding | None:
    """The finding of a run that stands still.

    Args:
        job: the run.
        waits: its processes now.
        disk_free: bytes free where it writes, ``None`` where unknown.
        utilization: of its cards, 0 to 1.
    """
    seconds = stalled_for(job)
    if seconds is None or job.progress is None:
        return None
    cause, who = _cause(waits, disk_free, utilization)
    return Finding(
        "stalled",
        "warning",
        job.id,
        {
            "seconds": seconds,
            "usual": job.progress.sign_interval,
            "cause": cause,
            "pid": who.pid if who is not None else None,
            "state": who.state if who is not None else None,
            "wchan": who.wchan if who is not None else None,
        },
        (Action("stop", (job.id,)),),
    )


def _cause(
    waits: Sequence[Wait], disk_free: int | None, utilization: Sequence[float | None]
) -> tuple[StallCause, Wait | None]:
    """The first that fits, the surest first."""
    trainers = [wait for wait in waits if wait.role in _TRAINERS]
    for wait in (*trainers, *waits):
        if wait.state in {"T", "t"}:
            return "stopped", wait
    for wait in trainers:
        if wait.piped and "pipe_write" in wait.wchan:
            return "pipe", wait
    if disk_free is not None and disk_free < DISK_FULL:
        return "disk_full", None
    for wait in waits:
        if wait.state == "D":
            return "disk_wait", wait
    # NCCL's kernels spin, so cards that wait for each other show full use.
    cards_busy = [one is not None and one >= BUSY for one in utilization]
    if len(trainers) > 1 and ((cards_busy and all(cards_busy)) or all(wait.busy for wait in trainers)):
        return "collective", trainers[0]
    loaders = [wait for wait in waits if wait.role == "data_worker"]
    if any(wait.busy for wait in loaders) and not any(wait.busy for wait in trainers):
        return "data_workers", next(wait for wait in loaders if wait.busy)
    return "unknown", trainers[0] if trainers else None
