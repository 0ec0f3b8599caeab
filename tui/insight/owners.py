"""Who holds the memory of each card: the driver's list of processes joined with the local holders.

What the driver lists inside a container depends on its version and flavour: own PIDs with sizes, own
PIDs without, PIDs of the host, or nothing. The regime is decided by behaviour, not by version: a listed
PID counts as ours only if that process holds this very card, so a host PID that happens to equal the
PID of an innocent local process never becomes an owner.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace

from tui.facts.machine import (
    Cause,
    Driver,
    DriverErrorCode,
    DriverReading,
    Evidence,
    Gpu,
    GpuMemory,
    GpuReading,
    Holder,
    NvmlProcess,
    Owner,
    PidRegime,
    ProcessInfo,
)
from tui.facts.unknown import UnknownReason
from tui.insight.unexplained import causes

_MIB = 1 << 20
_RESERVE_KNOWN, _RESERVE_COUNTED = 300 * _MIB, 1024 * _MIB

_NO_GPU: frozenset[DriverErrorCode] = frozenset({"library_missing", "driver_not_loaded", "no_device"})


_NOT_VISIBLE: Mapping[str, UnknownReason] = dict.fromkeys(
    ("pid", "start", "user", "command", "cpu_used", "resident", "started_at"), "not_visible"
)
"""What is unknown of memory that nobody visible holds."""


def unexplained_floor(reserved: int | None) -> int:
    """Bytes that a card has in use without any owner, which is normal.

    ``reserved`` is the driver's own part; a driver that does not tell it counts it as used.
    """
    return _RESERVE_COUNTED if reserved is None else max(_RESERVE_KNOWN, reserved)


def join(
    reading: DriverReading,
    holders: Iterable[Holder],
    processes: Mapping[int, ProcessInfo],
    jobs_of_pid: Mapping[int, str],
    peaks: Mapping[str, int],
    ended: Set[int] = frozenset(),
    known_pairs: Mapping[int, tuple[int, int]] | None = None,
) -> tuple[Driver, tuple[Gpu, ...]]:
    """The driver with its PID regime, and the cards with their owners.

    Per card, the sizes of the owners and ``memory.unattributed`` add up to ``memory.used``, unless the
    driver's sizes exceed it, which are shown as they are. Unattributed memory above
    ``unexplained_floor`` is also the last row (``hidden``, without any PID), which does not count again.

    Args:
        reading: the GPU source's answer. With a driver error its cards are the last good ones.
        holders: seen after ``reading`` was taken, so that whoever it lists and still lives is here.
        processes: all local ones.
        jobs_of_pid: local PID to job id.
        peaks: the highest ``used`` by card uuid so far.
        ended: local PIDs that held a card lately and are gone: the driver may still list them, and
            they are no processes of the host.
        known_pairs: host PID to PID and start of a local process, as ``pairs_of`` told after an
            earlier look. A pair holds while both are there, whoever joins them, so that processes
            which start one after another are all told apart.
    """
    present = tuple(holders)
    views = [_view(card, present, processes, ended, alone=len(reading.gpus) == 1) for card in reading.gpus]
    behaviour = _behaviour(views)
    pairs = _pairs(views, known_pairs or {}) if behaviour == "host" else {}
    is_stale = reading.driver.error is not None

    def card(view: _View) -> Gpu:
        rows = _owners(view, pairs, processes, jobs_of_pid, is_stale=is_stale)
        missing = _unattributed(view.card, rows)
        if missing is not None and missing > unexplained_floor(view.card.reserved):
            why = causes(view.card, rows, present, processes, ended)
            rows.append(_unexplained(missing, why))
        return _gpu(view.card, rows, missing, reading.age, peaks)

    gpus = tuple(card(view) for view in views)
    return replace(reading.driver, pid_regime=_regime(reading, behaviour)), gpus


def pairs_of(gpus: Iterable[Gpu]) -> dict[int, tuple[int, int]]:
    """The pairs of host and local processes in the rows, for the next look."""
    return {
        owner.host_pid: (owner.pid, owner.start)
        for gpu in gpus
        for owner in gpu.owners
        if owner.host_pid is not None and owner.pid is not None and owner.start is not None
    }


@dataclass(frozen=True, slots=True)
class _View:
    """One card. ``listed``: the driver's processes that hold this card here, by PID; ``strangers``:
    those that do not. ``mapped`` and ``opened``: holders that the driver does not list (without mere
    heirs of a handle; ``opened`` without monitors, which open every card and use none).
    """

    card: GpuReading
    holders: Mapping[int, Holder]
    listed: Mapping[int, int | None]
    strangers: Mapping[int, int | None]
    mapped: Sequence[Holder]
    opened: Sequence[Holder]

    @property
    def candidates(self) -> Sequence[Holder]:
        """Who may be behind a stranger."""
        return self.mapped or self.opened


def _view(
    card: GpuReading,
    holders: Iterable[Holder],
    processes: Mapping[int, ProcessInfo],
    ended: Set[int],
    *,
    alone: bool,
) -> _View:
    def is_monitor(holder: Holder) -> bool:
        info = processes.get(holder.pid)
        return info is not None and info.kind == "monitor"

    def maps(holder: Holder) -> bool:
        return bool(holder.mapped_minors) if card.minor is None else card.minor in holder.mapped_minors

    # A driver that does not tell minor numbers leaves open which of several cards a process holds.
    here = {holder.pid: holder for holder in holders if card.minor is None or card.minor in holder.minors}
    sizes = _sizes(card.processes or ())
    unlisted = [holder for pid, holder in here.items() if pid not in sizes and not holder.inherited]
    if card.minor is None and not alone:
        unlisted = []
    return _View(
        card=card,
        holders=here,
        listed={pid: size for pid, size in sizes.items() if pid in here},
        strangers={pid: size for pid, size in sizes.items() if pid not in here and pid not in ended},
        mapped=[holder for holder in unlisted if maps(holder)],
        opened=[holder for holder in unlisted if not maps(holder) and not is_monitor(holder)],
    )


def _sizes(processes: Iterable[NvmlProcess]) -> dict[int, int | None]:
    """Each PID once, with the largest size. 0 is what some drivers say instead of nothing."""
    sizes: dict[int, int | None] = {}
    for entry in processes:
        sizes[entry.pid] = max(entry.memory or 0, sizes.get(entry.pid) or 0) or None
    return sizes


def _behaviour(views: Sequence[_View]) -> PidRegime:
    """What the lists hold, whether or not they are fresh."""
    if all(view.card.processes is None for view in views):
        return "error"
    if any(size is not None for view in views for size in view.listed.values()):
        return "own_with_memory"
    if any(view.listed for view in views):
        return "own_without_memory"
    return "host" if any(view.strangers for view in views) else "empty"


def _regime(reading: DriverReading, behaviour: PidRegime) -> PidRegime:
    error = reading.driver.error
    if error is not None:
        return "no_gpu" if error.code in _NO_GPU else "error"
    if not reading.gpus:
        return "unknown" if reading.age is None else "no_gpu"
    return behaviour


def _pairs(views: Sequence[_View], known: Mapping[int, tuple[int, int]]) -> dict[int, int]:
    """Host PID to local PID: the known pairs that are still there, and where a card has one of each
    beyond them; one process has one PID in each namespace, so new pairs that contradict each other are
    dropped.
    """
    kept = {
        host: pid
        for view in views
        for host in view.strangers
        for pid, start in [known.get(host, (0, 0))]
        if any(holder.pid == pid and holder.start == start for holder in view.candidates)
    }
    found: dict[int, set[int]] = {}
    for view in views:
        strangers = [host for host in view.strangers if host not in kept]
        candidates = [holder.pid for holder in view.candidates if holder.pid not in kept.values()]
        if len(strangers) == len(candidates) == 1:
            found.setdefault(strangers[0], set()).add(candidates[0])
    claims = Counter(pid for pids in found.values() for pid in pids)
    new = {host: pid for host, pids in found.items() if len(pids) == 1 for pid in pids if claims[pid] == 1}
    return {**kept, **new}


def _owners(
    view: _View,
    pairs: Mapping[int, int],
    processes: Mapping[int, ProcessInfo],
    jobs_of_pid: Mapping[int, str],
    *,
    is_stale: bool,
) -> list[Owner]:
    """The rows of a card except the unexplained one, the largest first."""

    def row(
        holder: Holder,
        memory: int | None,
        evidence: Evidence,
        why: UnknownReason,
        host_pid: int | None = None,
    ) -> Owner:
        owner = _local_owner(holder, processes, jobs_of_pid.get(holder.pid))
        unknown = owner.unknown if memory is not None else {**owner.unknown, "memory": why}
        return replace(owner, memory=memory, evidence=evidence, host_pid=host_pid, unknown=unknown)

    rows: list[Owner] = []
    used = view.card.used
    is_sole = len(view.listed) == 1 and not view.strangers and not view.mapped
    for pid, size in view.listed.items():
        if size is None and is_sole and used is not None:
            rows.append(row(view.holders[pid], used, "sole_holder", "driver_without_figure"))
        else:
            evidence: Evidence = "holder" if size is None else "exact"
            rows.append(row(view.holders[pid], size, evidence, "driver_without_figure"))
    paired: set[int] = set()
    for host_pid, size in view.strangers.items():
        local = view.holders.get(pairs.get(host_pid, 0))
        if local is not None:
            paired.add(local.pid)
            rows.append(row(local, size, "inferred", "driver_without_figure", host_pid))
        elif not is_stale:  # in an old list it may simply have ended since
            rows.append(_stranger(host_pid, size))
    others = view.mapped
    if not others and not rows and (used is None or used > unexplained_floor(view.card.reserved)):
        others = view.opened
    why = view.card.unknown.get("processes", "not_visible" if view.strangers else "driver_without_figure")
    rows += [row(holder, None, "holder", why) for holder in others if holder.pid not in paired]
    return sorted(rows, key=lambda owner: (owner.memory is None, -(owner.memory or 0), owner.pid or 0))


def _local_owner(holder: Holder, processes: Mapping[int, ProcessInfo], job: str | None) -> Owner:
    bare = Owner(holder.pid, None, holder.start, None, "holder", "other", job=job)
    info = processes.get(holder.pid)
    if info is None or info.start != holder.start:
        # It ended while it was looked at; another process may have its PID by now.
        return replace(bare, job=None, state="gone", unknown=dict.fromkeys(_OF_A_PROCESS, "process_gone"))
    return replace(
        bare,
        kind=info.kind,
        rank=info.rank,
        user=info.user,
        command=info.command,
        state=info.state,
        unknown={name: reason for name, reason in info.unknown.items() if name != "environment"},
        title=info.title,
        cpu_used=info.cpu_used,
        resident=info.resident,
        started_at=info.started_at,
        ancestors=_ancestors(info, processes),
    )


def _ancestors(info: ProcessInfo, processes: Mapping[int, ProcessInfo]) -> tuple[int, ...]:
    found: list[int] = []
    parent = processes.get(info.ppid)
    while parent is not None and parent.pid not in found:
        found.append(parent.pid)
        parent = processes.get(parent.ppid)
    return tuple(found)


def _stranger(host_pid: int, memory: int | None) -> Owner:
    unknown: dict[str, UnknownReason] = dict.fromkeys(("pid", "start", *_OF_A_PROCESS), "not_visible")
    if memory is None:
        unknown["memory"] = "driver_without_figure"
    return Owner(None, host_pid, None, memory, "hidden", "other", unknown=unknown)


def _unexplained(memory: int, why: tuple[Cause, ...]) -> Owner:
    return Owner(None, None, None, memory, "hidden", "other", unknown=_NOT_VISIBLE, causes=why)


def _unattributed(card: GpuReading, rows: Iterable[Owner]) -> int | None:
    return None if card.used is None else max(0, card.used - sum(row.memory or 0 for row in rows))


def _gpu(
    card: GpuReading,
    rows: Sequence[Owner],
    unattributed: int | None,
    age: float | None,
    peaks: Mapping[str, int],
) -> Gpu:
    unknown = {_SHOWN_AS.get(name, name): reason for name, reason in card.unknown.items()}
    if unattributed is None:
        unknown["memory.unattributed"] = card.unknown.get("used", "not_supported")
    peak = max((value for value in (peaks.get(card.uuid), card.used) if value is not None), default=None)
    if peak is None:
        unknown["peak_memory"] = unknown["memory.unattributed"]
    unified = card.state == "ok" and card.unknown.get("total") == "not_supported"
    return Gpu(
        index=card.index,
        minor=card.minor,
        uuid=card.uuid,
        name=card.name,
        state=card.state,
        age=age,
        memory=GpuMemory(card.total, card.used, card.reserved, card.free, unattributed, unified),
        utilization=card.utilization,
        temperature=card.temperature,
        power=card.power,
        power_limit=card.power_limit,
        clocks=card.clocks,
        throttle=card.throttle,
        peak_memory=peak,
        owners=tuple(rows),
        unknown=unknown,
        detail=card.detail,
    )


_OF_A_PROCESS = ("user", "command", "cpu_used", "resident", "started_at")

_SHOWN_AS = {
    "total": "memory.total",
    "used": "memory.used",
    "reserved": "memory.reserved",
    "free": "memory.free",
    "processes": "owners",
}
