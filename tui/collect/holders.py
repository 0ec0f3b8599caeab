"""Which local processes hold a card, seen from ``/proc`` alone, whatever the driver lists.

Reading every descriptor of every process costs more than all the rest of a scan. So a process that was
seen before is looked at again when it has used CPU time since (a CUDA context takes a good part of a
second to make), and then only its devices and its new descriptors; everything is read only in turn.

``maps`` of a process with torch in it is a megabyte, and reading it can block: it is read at first
sight, then ever more rarely, and not while the process waits in the kernel.
"""

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field

from tui.collect.proc import Proc, ProcessStat, minors
from tui.facts.machine import DATA_WORKER_TITLE, Holder

_TURN = 20
"""All descriptors of a process are read in every twentieth scan."""

_MAPS_AGAIN = 2
"""Maps read a second time, at most, in one scan."""

_REMEMBERED = 30
"""Scans for which a holder that ended is remembered."""

_IN_KERNEL = "D"


@dataclass(slots=True)
class _Sight:
    """What is remembered of one process: CPU ticks, descriptors, which of them are which card, the
    number of scans in which it held one, and what is read rarely.
    """

    ticks: int = 0
    names: frozenset[str] = frozenset()
    devices: dict[str, int] = field(default_factory=dict)
    minors: frozenset[int] = frozenset()
    scans: int = 0
    mapped: frozenset[int] | None = None
    command: tuple[str, ...] | None = None


class HolderScanner:
    """Finds holders again and again. ``prefix`` is the device name without its number."""

    def __init__(self, proc: Proc, prefix: str = "/dev/nvidia") -> None:
        self._proc = proc
        self._prefix = prefix
        self._seen: dict[tuple[int, int], _Sight] = {}
        self._scans = 0
        self._held: dict[int, int] = {}  # PID to the last scan in which it held a card

    @property
    def ended(self) -> frozenset[int]:
        """PIDs that held a card in one of the last scans and are gone; the driver may still list them."""
        living = {pid for pid, _ in self._seen}
        return frozenset(pid for pid in self._held if pid not in living)

    def find(self, table: Mapping[int, ProcessStat]) -> tuple[Holder, ...]:
        """The holders among the processes of ``table`` (one look at all processes), by PID.

        The control devices do not count, since every program that asks the driver opens them. A
        process whose descriptors may not be read is no holder. A dead leader has lost its own, but its
        threads that live on have them.
        """
        self._scans += 1
        living = [stat for stat in table.values() if stat.lives_on]
        self._seen = {(stat.pid, stat.start): self._look(stat) for stat in living}
        holding = {stat.pid: stat for stat in living if self._sight(stat).minors}
        self._held.update(dict.fromkeys(holding, self._scans))
        self._held = {pid: scan for pid, scan in self._held.items() if self._scans - scan < _REMEMBERED}
        inherited = {pid for pid, stat in holding.items() if self._titled_worker(stat, holding)}
        again = _MAPS_AGAIN
        for pid, stat in holding.items():
            self._sight(stat).scans += 1
            if pid not in inherited and stat.state != _IN_KERNEL:
                again -= self._read_maps(stat, again > 0)
        inherited.update(pid for pid, stat in holding.items() if self._is_copy(stat, holding))
        return tuple(self._holder(holding[pid], pid in inherited) for pid in sorted(holding))

    def _sight(self, stat: ProcessStat) -> _Sight:
        return self._seen[stat.pid, stat.start]

    def _look(self, stat: ProcessStat) -> _Sight:
        ticks = stat.user_ticks + stat.system_ticks
        sight = self._seen.get((stat.pid, stat.start))
        if sight is None:
            sight = _Sight()
            known: Set[str] = frozenset()
        elif (stat.pid + self._scans) % _TURN == 0:
            known = frozenset()
        elif ticks != sight.ticks:
            known = sight.names - sight.devices.keys()
        else:
            return sight
        sight.ticks = ticks
        asked = self._asked(stat)
        sight.names = frozenset(self._proc.descriptors(asked))
        sight.devices = dict(self._devices(asked, sight.names - known))
        sight.minors = frozenset(sight.devices.values())
        return sight

    def _asked(self, stat: ProcessStat) -> int:
        """The thread to ask: the leader, unless it is dead."""
        if stat.alive:
            return stat.pid
        return next((thread for thread in self._proc.threads(stat.pid) if thread != stat.pid), stat.pid)

    def _devices(self, pid: int, names: Iterable[str]) -> Iterator[tuple[str, int]]:
        for name in names:
            target = self._proc.descriptor(pid, name)
            if target is not None and target.startswith(self._prefix):
                for minor in minors((target,), self._prefix):
                    yield name, minor

    def _read_maps(self, stat: ProcessStat, again: bool) -> bool:
        """Whether maps were read a second time: in scan 2, 4, 8, ... while a card it opened is not
        mapped, because a program may open the cards long before it uses one.
        """
        sight = self._sight(stat)
        before = sight.mapped
        is_turn = again and not sight.scans & (sight.scans - 1)
        if before is None or (is_turn and not sight.minors <= before):
            sight.mapped = self._proc.mapped_minors(self._asked(stat), self._prefix)
        return before is not None and sight.mapped is not before

    def _titled_worker(self, stat: ProcessStat, holding: Mapping[int, ProcessStat]) -> bool:
        return stat.comm == DATA_WORKER_TITLE and self._has_handles_of_parent(stat, holding)

    def _is_copy(self, stat: ProcessStat, holding: Mapping[int, ProcessStat]) -> bool:
        """A forked child has the title and the command line of its parent, and maps nothing itself."""
        if self._sight(stat).mapped or not self._has_handles_of_parent(stat, holding):
            return False
        parent = holding[stat.ppid]
        return stat.comm == parent.comm and bool(own := self._command(stat)) and own == self._command(parent)

    def _has_handles_of_parent(self, stat: ProcessStat, holding: Mapping[int, ProcessStat]) -> bool:
        parent = holding.get(stat.ppid)
        return parent is not None and self._sight(stat).minors <= self._sight(parent).minors

    def _command(self, stat: ProcessStat) -> tuple[str, ...]:
        sight = self._sight(stat)
        if sight.command is None and stat.state != _IN_KERNEL:
            sight.command = self._proc.command(stat.pid)
        return sight.command or ()

    def _holder(self, stat: ProcessStat, inherited: bool) -> Holder:
        sight = self._sight(stat)
        mapped = sight.mapped or frozenset()
        return Holder(stat.pid, stat.start, sight.minors | mapped, mapped, inherited)
