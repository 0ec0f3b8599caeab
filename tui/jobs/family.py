"""How a keeper knows the processes of its job, and that none is left.

``OwnFamily``: the keeper forked the job, so every orphan comes back to it; none is left when the kernel
says ECHILD, and only then. ``AdoptedFamily``: the keeper came later; none is left when several looks in
a row find none, which is less, and the report of a stop says so.
"""

import os
from typing import Protocol

from tui.collect.proc import Proc, ProcessStat, descendants
from tui.facts.job import KEEPER_TITLE, ExitStatus, Identity, JobRecord
from tui.jobs.folder import JobFolder
from tui.jobs.members import Table
from tui.jobs.strays import Evidence

EMPTY_LOOKS = 5


class Family(Protocol):
    """The processes of one job."""

    verified: bool

    def reap(self) -> ExitStatus | None:
        """Collect who ended; the status of the main process, once."""

    def find(self, table: Table) -> list[ProcessStat]:
        """Those alive, parents before their children where descent is known."""

    def is_gone(self) -> bool:
        """Whether nothing is left."""


class OwnFamily:
    """The family of the keeper that forked the main process."""

    verified = True

    def __init__(self, main_pid: int) -> None:
        self._main_pid = main_pid
        self._childless = False

    def reap(self) -> ExitStatus | None:
        """Collect all zombies, adopted orphans among them."""
        found: ExitStatus | None = None
        try:
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                if ended[0] == self._main_pid:
                    found = exit_status(ended[1])
        except ChildProcessError:
            self._childless = True
        return found

    def find(self, table: Table) -> list[ProcessStat]:
        """All living descendants of this process."""
        return [table[pid] for pid in descendants(os.getpid(), table) if table[pid].lives_on]

    def is_gone(self) -> bool:
        """ECHILD: neither a living descendant nor a zombie."""
        return self._childless


class AdoptedFamily:
    """The family of a keeper that is not the parent of the job: what its record knows, whatever descends
    from that, whoever the evidence names (see ``strays``), and who was born into a group that a member
    leads after this keeper came: a PID is not given out again as long as a group has its number.
    """

    verified = False

    def __init__(self, main: Identity, record: JobRecord, folder: JobFolder, proc: Proc) -> None:
        self._known = {main.pid: main.start} | {member.pid: member.start for member in record.members}
        self._evidence = Evidence(main, record, folder, proc)
        self._alive: list[ProcessStat] = []
        self._groups: set[int] = set()
        self._empty_looks = 0

    def reap(self) -> ExitStatus | None:
        """Nothing: somebody else's child leaves no status here."""
        return None

    def find(self, table: Table) -> list[ProcessStat]:
        """All that can still be shown to belong."""
        if os.getpid() not in table:  # /proc could not be read: seeing nobody would mean nothing
            return self._alive
        self._evidence.forget_others(table)
        found = {pid for pid, start in self._known.items() if pid in table and table[pid].start == start}
        others = (stat for stat in table.values() if stat.pid not in found)
        found |= {stat.pid for stat in others if self._evidence.why(stat) in ("log", "device")}
        came = table[os.getpid()].start
        found |= {stat.pid for stat in table.values() if stat.pgid in self._groups and stat.start > came}
        for pid in tuple(found):
            found.update(descendants(pid, table))
        # What another keeper keeps is another job, also where that keeper was started from this one. Who
        # takes such a title later is no keeper.
        keepers = [pid for pid in found if table[pid].comm == KEEPER_TITLE and pid not in self._known]
        for pid in keepers:
            found.difference_update([pid, *descendants(pid, table)])
        self._groups |= {pid for pid in found if table[pid].pgid == pid}
        self._known = {pid: table[pid].start for pid in found}
        self._alive = [table[pid] for pid in sorted(found) if table[pid].lives_on]
        self._empty_looks = 0 if self._alive else self._empty_looks + 1
        return self._alive

    def is_gone(self) -> bool:
        """Enough looks in a row found nobody."""
        return self._empty_looks >= EMPTY_LOOKS


def exit_status(status: int) -> ExitStatus:
    """What ``waitpid`` said."""
    if os.WIFSIGNALED(status):
        return ExitStatus(signal=os.WTERMSIG(status))
    return ExitStatus(code=os.WEXITSTATUS(status))
