"""Why a card may have memory in use that no owner explains: the likely causes, the likeliest first.

The order is the one in which a person should look. A holder that stands beside without a size may be
the whole explanation. What a driver of the first kind keeps and counts as used is a part of it at most, so
"nothing is visible" is said beside it, but beside nothing else.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set

from tui.facts.machine import Cause, GpuReading, Holder, Owner, ProcessInfo

_TRAINERS = frozenset({"train", "data_worker"})
_INIT = 1


def causes(
    card: GpuReading,
    owners: Iterable[Owner],
    holders: Iterable[Holder],
    processes: Mapping[int, ProcessInfo],
    ended: Set[int],
) -> tuple[Cause, ...]:
    """The likely causes of what the rows of ``card`` leave unexplained.

    Args:
        card: the driver's reading.
        owners: the rows of the card with a process.
        holders: every local holder of any card, heirs of a handle too.
        processes: all local processes.
        ended: local PIDs that held a card lately and are gone.
    """
    rows = list(owners)
    sized = {owner.pid for owner in rows if owner.memory is not None}
    here = [holder.pid for holder in holders if card.minor is None or card.minor in holder.minors]
    suspects = [processes[pid] for pid in here if pid in processes and pid not in sized]
    found = [cause for cause in _of_holders(suspects) if cause.pids]
    listed = {entry.pid for entry in card.processes or ()}
    if gone := sorted(ended & listed) or sorted(ended):
        found.append(Cause("just_ended", tuple(gone)))
    named = {pid for cause in found for pid in cause.pids}
    unsized = tuple(
        owner.pid
        for owner in rows
        if owner.pid is not None and owner.memory is None and owner.pid not in named
    )
    if unsized:
        found.append(Cause("unsized", unsized))
    reserve = [Cause("driver_reserve")] if card.reserved is None else []
    nothing = [] if found else [Cause("nothing_visible")]
    return (*found, *reserve, *nothing)


def _of_holders(suspects: Sequence[ProcessInfo]) -> Iterator[Cause]:
    """``suspects`` hold the card and have no size."""
    yield Cause("orphaned", _pids(info for info in suspects if info.kind in _TRAINERS and info.ppid == _INIT))
    yield Cause("kernel_wait", _pids(info for info in suspects if info.state == "disk_wait"))
    yield Cause("zombie_leader", _pids(info for info in suspects if info.state == "zombie"))
    yield Cause("notebook", _pids(info for info in suspects if info.kind == "notebook"))


def _pids(infos: Iterable[ProcessInfo]) -> tuple[int, ...]:
    return tuple(sorted(info.pid for info in infos))
