"""What is wrong, or soon will be, with the machine: driver, cards, memory, disks."""

from collections.abc import Iterable, Iterator, Sequence

from tui.facts.finding import EvidenceValue, Finding, Level
from tui.facts.job import Job
from tui.facts.machine import Disk, Driver, DriverErrorCode, Gpu, Host
from tui.insight.owners import unexplained_floor

_MIB, _GIB = 1 << 20, 1 << 30

DISK_LOW, DISK_LOW_FRACTION, DISK_DANGER = 2 * _GIB, 0.05, 256 * _MIB
"""The next checkpoint of a large model does not fit below the first two; below the third no log does."""

INODES_LOW = 10_000
SHM_LOW = _GIB
MEMORY_HIGH, MEMORY_DANGER = 0.9, 0.97
THROTTLE_NEAR = 0.98

_NO_DRIVER: frozenset[DriverErrorCode] = frozenset({"library_missing", "driver_not_loaded", "no_device"})


def machine_findings(
    driver: Driver, gpus: Sequence[Gpu], host: Host, jobs: Iterable[Job], oom_kills_before: int | None = None
) -> tuple[Finding, ...]:
    """Findings about the machine: the driver, each card, the jobs on it, memory, each disk.

    Args:
        driver: with its PID regime.
        gpus: with their owners; a subject of their findings is the card's uuid.
        host: its disks are the subjects of disk findings, by path.
        jobs: own and foreign ones.
        oom_kills_before: the count of ``host.oom_kills`` when watching began; ``None`` in a single
            look, which then reports all kills of this container's life as a note.
    """
    return (
        *_driver(driver, gpus, host),
        *(finding for gpu in gpus for finding in _card(driver, gpu)),
        *_shared_cards(gpus, [job for job in jobs if job.state not in ("ended", "lost")]),
        *_memory(host, oom_kills_before),
        *(finding for disk in host.disks for finding in _disk(disk)),
        *_shm(host),
    )


def _driver(driver: Driver, gpus: Sequence[Gpu], host: Host) -> Iterator[Finding]:
    if host.gpu_mode == "none" and host.platform == "autodl":
        yield Finding("no_gpu_mode", "info", evidence={"memory_limit": host.memory.limit})
        return
    error = driver.error
    if error is None:
        return
    if error.code in _NO_DRIVER:
        yield Finding(
            "driver_missing", "info" if host.gpu_mode == "none" else "warning", evidence={"code": error.code}
        )
    elif error.code == "version_mismatch":
        yield Finding("version_mismatch", "danger", evidence={"detail": error.detail})
    elif error.code == "timed_out":
        ages = [gpu.age for gpu in gpus if gpu.age is not None]
        yield Finding("driver_silent", "danger", evidence={"seconds": max(ages, default=None)})
    else:
        yield Finding("driver_error", "danger", evidence={"code": error.code, "detail": error.detail})


def _card(driver: Driver, gpu: Gpu) -> Iterator[Finding]:
    """What a failing driver says of the cards is old, so it is not judged."""
    if driver.error is not None:
        return
    if gpu.state == "lost":
        yield Finding("gpu_lost", "danger", gpu.uuid, {"index": gpu.index})
    elif gpu.state == "error":
        yield Finding("gpu_failing", "danger", gpu.uuid, {"index": gpu.index})
    elif memory := _unexplained(gpu):
        is_passing = any(cause.code == "just_ended" for owner in gpu.owners for cause in owner.causes)
        level: Level = "info" if is_passing else "warning"
        yield Finding("gpu_memory_unexplained", level, gpu.uuid, {"index": gpu.index, "memory": memory})


def _unexplained(gpu: Gpu) -> int:
    """Bytes in use for which no process here can be the reason; a holder of unknown size can."""
    if any(owner.pid is not None and owner.memory is None for owner in gpu.owners):
        return 0
    outside = sum(
        owner.memory or 0 for owner in gpu.owners if owner.host_pid is not None and owner.pid is None
    )
    memory = (gpu.memory.unattributed or 0) + outside
    return memory if memory > unexplained_floor(gpu.memory.reserved) else 0


def _shared_cards(gpus: Sequence[Gpu], live: Sequence[Job]) -> Iterator[Finding]:
    """Cards that two jobs use or claim."""
    trainings = {job.id for job in live if job.kind == "training"}
    running = {job.id for job in live}
    for gpu in gpus:
        users = {owner.job for owner in gpu.owners if owner.job is not None} & running
        users |= {job.id for job in live if gpu.uuid in job.gpus}
        if len(users) > 1 and users & trainings:
            level: Level = "warning" if len(users & trainings) > 1 else "advice"
            names = ", ".join(sorted(users))
            yield Finding("jobs_share_gpu", level, gpu.uuid, {"index": gpu.index, "jobs": names})


def _memory(host: Host, oom_kills_before: int | None) -> Iterator[Finding]:
    kills = (host.oom_kills or 0) - (oom_kills_before or 0)
    if kills > 0:
        level: Level = "info" if oom_kills_before is None else "warning"
        yield Finding("oom_kill_seen", level, evidence={"count": kills})
    memory = host.memory
    if memory.used is None:
        return
    if memory.high is not None and memory.used >= THROTTLE_NEAR * memory.high:
        yield Finding("memory_throttled", "warning", evidence={"used": memory.used, "high": memory.high})
    if memory.limit is not None and memory.used >= MEMORY_HIGH * memory.limit:
        level = "danger" if memory.used >= MEMORY_DANGER * memory.limit else "warning"
        yield Finding("host_memory_high", level, evidence={"used": memory.used, "limit": memory.limit})


def _disk(disk: Disk) -> Iterator[Finding]:
    if disk.free is not None and disk.total is not None:
        evidence: dict[str, EvidenceValue] = {"free": disk.free, "total": disk.total, "role": disk.role}
        if disk.free < DISK_LOW or disk.free < DISK_LOW_FRACTION * disk.total:
            level: Level = "danger" if disk.free < DISK_DANGER else "warning"
            yield Finding("disk_nearly_full", level, disk.path, evidence)
    if disk.inodes_free is not None and disk.inodes_free < INODES_LOW:
        yield Finding("inodes_nearly_gone", "warning", disk.path, {"inodes_free": disk.inodes_free})


def _shm(host: Host) -> Iterator[Finding]:
    if host.shm.total is not None and host.shm.total < SHM_LOW:
        yield Finding("shm_small", "info", "/dev/shm", {"total": host.shm.total})  # noqa: S108  (a mount's name)
