"""CPU and memory as the container counts them, from cgroup v1 or v2.

``/proc/meminfo`` and the CPU count show the whole machine inside a container, so limits come from
here. A limit of a parent group binds as much as the own one: the smallest limit in sight counts, and
usage is read at the group that has it. Without a limit the highest visible group is read, which in a
container is the container.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tui.collect.proc import READ_LIMIT, Proc
from tui.facts.unknown import Unknown, UnknownReason

CGROUP_ROOT = Path("/sys/fs/cgroup")

_UNLIMITED = 1 << 60
"""cgroup v1 writes "no limit" as the highest multiple of the page size."""


@dataclass(frozen=True, slots=True)
class CgroupReading:
    """One look. Bytes; ``cpu_seconds`` is the CPU time used since the group exists.

    ``taken_at`` is monotonic seconds; ``unknown`` uses the field names of ``Host``.
    """

    taken_at: float
    cpu_count: float | None = None
    cpu_seconds: float | None = None
    memory_limit: int | None = None
    memory_used: int | None = None
    memory_high: int | None = None
    oom_kills: int | None = None
    unknown: Unknown = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Hierarchy:
    """One mounted hierarchy, and the groups from the own one up to the highest in sight.

    Groups are paths below ``mount``; the highest is ``""``. No groups: not mounted.
    """

    mount: Path
    groups: tuple[str, ...]

    def text(self, group: str, name: str) -> str | None:
        return _text(self.mount / group / name)

    def number(self, group: str, name: str) -> int | None:
        return _number(self.text(group, name))

    def entry(self, group: str, name: str, key: str) -> int | None:
        """The number behind ``key`` in a file of ``key number`` lines."""
        lines = (self.text(group, name) or "").splitlines()
        values = (value for word, _, value in (line.partition(" ") for line in lines) if word == key)
        return _number(next(values, None))

    def tightest(self, limits: Iterator[tuple[str, float]]) -> tuple[str, float | None]:
        """The group with the smallest limit (the higher of equals), or the highest group."""
        found = list(limits)
        smallest = min((limit for _, limit in found), default=None)
        if smallest is None:
            return "", None
        return [group for group, limit in found if limit == smallest][-1], smallest


@dataclass(frozen=True, slots=True)
class _MemoryFiles:
    limit: str
    usage: str
    inactive: str


_V1_FILES = _MemoryFiles("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
_V2_FILES = _MemoryFiles("memory.max", "memory.current", "inactive_file")


def read_cgroup(
    proc: Proc, root: Path = CGROUP_ROOT, clock: Callable[[], float] = time.monotonic
) -> CgroupReading:
    """The group of this process. Missing files make values unknown, never an error."""
    unknown: dict[str, UnknownReason] = {}
    taken_at = clock()
    if (root / "cgroup.controllers").is_file():
        unified = _Hierarchy(root, _groups(root, _own_path(proc, "")))
        quota_group, quota = unified.tightest(_v2_quotas(unified))
        usage = unified.entry(quota_group, "cpu.stat", "usage_usec")
        cpu_seconds = None if usage is None else usage / 1e6
        limit, used = _memory(unified, _V2_FILES, proc)
        high = _high(unified, unknown)
        oom_kills = _oom_kills(unified, "", "memory.events", unknown)
    else:
        cpu, cpuacct, memory = (_v1_hierarchy(proc, root, name) for name in ("cpu", "cpuacct", "memory"))
        quota_group, quota = cpu.tightest(_v1_quotas(cpu))
        usage = cpuacct.number(quota_group, "cpuacct.usage")
        cpu_seconds = None if usage is None else usage / 1e9
        limit, used = _memory(memory, _V1_FILES, proc)
        high = None
        unknown["memory.high"] = "not_supported"
        # v1 counts a kill in the group of the victim only, so the own group is the one to ask.
        oom_kills = _oom_kills(memory, next(iter(memory.groups), ""), "memory.oom_control", unknown)
    cpu_count = min((value for value in (quota, _affinity(proc)) if value is not None), default=None)
    for name, value in [("cpu_count", cpu_count), ("memory.limit", limit), ("memory.used", used)]:
        if value is None:
            unknown[name] = "missing_file"
    if cpu_seconds is None:
        unknown["cpu_used"] = "missing_file"
    return CgroupReading(taken_at, cpu_count, cpu_seconds, limit, used, high, oom_kills, unknown)


def cpu_used(before: CgroupReading, after: CgroupReading) -> float | None:
    """CPUs in use on average between two readings; ``None`` when either lacks the counter."""
    if before.cpu_seconds is None or after.cpu_seconds is None or after.taken_at <= before.taken_at:
        return None
    return max(0.0, after.cpu_seconds - before.cpu_seconds) / (after.taken_at - before.taken_at)


def _memory(hierarchy: _Hierarchy, files: _MemoryFiles, proc: Proc) -> tuple[int | None, int | None]:
    """Limit and use. Use is counted as ``docker stats`` does: without the page cache that is idle."""
    machine = _meminfo(proc)
    total = machine.get("MemTotal")
    ceiling = _UNLIMITED if total is None else total
    limits = ((group, hierarchy.number(group, files.limit)) for group in hierarchy.groups)
    group, limit = hierarchy.tightest(
        (group, value) for group, value in limits if value is not None and value < ceiling
    )
    usage = hierarchy.number(group, files.usage)
    if usage is not None:
        inactive = hierarchy.entry(group, "memory.stat", files.inactive) or 0
        used: int | None = max(0, usage - inactive)
    elif total is not None and "MemAvailable" in machine:
        # The root group of a whole v2 machine counts nothing.
        used = max(0, total - machine["MemAvailable"])
    else:
        used = None
    return (total if limit is None else int(limit)), used


def _high(unified: _Hierarchy, unknown: dict[str, UnknownReason]) -> int | None:
    texts = [unified.text(group, "memory.high") for group in unified.groups]
    marks = [mark for mark in map(_number, texts) if mark is not None]
    if marks:
        return min(marks)
    unknown["memory.high"] = "missing_file" if all(text is None for text in texts) else "not_reported"
    return None


def _oom_kills(hierarchy: _Hierarchy, group: str, name: str, unknown: dict[str, UnknownReason]) -> int | None:
    kills = hierarchy.entry(group, name, "oom_kill")
    if kills is None:
        unknown["oom_kills"] = "missing_file" if hierarchy.text(group, name) is None else "not_reported"
    return kills


def _v2_quotas(unified: _Hierarchy) -> Iterator[tuple[str, float]]:
    for group in unified.groups:
        quota, _, period = (unified.text(group, "cpu.max") or "").partition(" ")
        yield from _quota(group, _number(quota), _number(period))


def _v1_quotas(cpu: _Hierarchy) -> Iterator[tuple[str, float]]:
    for group in cpu.groups:
        yield from _quota(
            group, cpu.number(group, "cpu.cfs_quota_us"), cpu.number(group, "cpu.cfs_period_us")
        )


def _quota(group: str, quota: int | None, period: int | None) -> Iterator[tuple[str, float]]:
    if quota is not None and period is not None and quota > 0 and period > 0:
        yield group, quota / period


def _v1_hierarchy(proc: Proc, root: Path, controller: str) -> _Hierarchy:
    try:
        folders = sorted(folder for folder in root.iterdir() if controller in folder.name.split(","))
    except OSError:
        folders = []
    mount = folders[0] if folders else root / controller
    return _Hierarchy(mount, _groups(mount, _own_path(proc, controller)))


def _groups(mount: Path, path: str) -> tuple[str, ...]:
    """The groups of ``path`` that exist below ``mount``, the own one first.

    A container may see its own group as the mount's root while ``/proc/self/cgroup`` still gives the
    path on the host: the longest tail of the path that exists is the own group.
    """
    if not mount.is_dir():
        return ()
    parts = [part for part in path.split("/") if part not in ("", "..")]
    tails = (parts[start:] for start in range(len(parts) + 1))
    tail = next(tail for tail in tails if mount.joinpath(*tail).is_dir())
    return tuple("/".join(tail[:length]) for length in range(len(tail), -1, -1))


def _own_path(proc: Proc, controller: str) -> str:
    """The path for a v1 controller, or for v2 (``""``), out of ``/proc/self/cgroup``."""
    for line in (_text(Path(proc.root, "self", "cgroup")) or "").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controller in controllers.split(","):
            return path
    return ""


def _affinity(proc: Proc) -> float | None:
    """CPUs this process may run on: the length of a list such as ``0-3,8``."""
    status = _text(Path(proc.root, "self", "status")) or ""
    listed = next((line for line in status.splitlines() if line.startswith("Cpus_allowed_list:")), "")
    count = 0
    for part in filter(None, listed.partition(":")[2].strip().split(",")):
        first, _, last = part.partition("-")
        low, high = _number(first), _number(last or first)
        if low is None or high is None:
            return None
        count += high - low + 1
    return float(count) if count > 0 else None


def _meminfo(proc: Proc) -> dict[str, int]:
    """Bytes by name."""
    found: dict[str, int] = {}
    for line in (_text(Path(proc.root, "meminfo")) or "").splitlines():
        name, _, value = line.partition(":")
        kibibytes = _number(value.removesuffix("kB"))
        if kibibytes is not None:
            found[name] = kibibytes * 1024
    return found


def _text(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            return file.read(READ_LIMIT).decode("ascii", "replace").strip()
    except OSError:
        return None


def _number(text: str | None) -> int | None:
    """A whole number; "max" and anything else is none."""
    digits = (text or "").strip()
    plain = digits.removeprefix("-")
    return int(digits) if plain.isascii() and plain.isdigit() and len(plain) <= 20 else None
