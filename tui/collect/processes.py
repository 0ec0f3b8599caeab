"""Who a process is: user, command line, environment, state.

The command line and the environment can block on a process that is stuck in the driver. They are read
at first sight, once more at the second (the first may fall between fork and exec, when a child still
shows its parent's), again when the title changes, and never while the process waits in the kernel.
"""

import pwd
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tui.collect.proc import Proc, ProcessStat
from tui.facts.machine import ProcessInfo, ProcessState
from tui.facts.secrets import mask_arguments, mask_environment
from tui.facts.unknown import UnknownReason

STATES: Mapping[str, ProcessState] = {
    "R": "running",
    "S": "sleeping",
    "I": "sleeping",
    "D": "disk_wait",
    "T": "stopped",
    "t": "stopped",
    "Z": "zombie",
    "X": "gone",
    "x": "gone",
}
"""The letters of ``/proc/PID/stat``."""


@dataclass(slots=True)
class _Sight:
    """What was read of one process; ``looks`` counts the readings of this title."""

    title: str
    looks: int = 0
    command: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    unknown: dict[str, UnknownReason] = field(
        default_factory=lambda: {"command": "not_yet", "environment": "not_yet"}
    )


class ProcessReader:
    """Reads processes again and again, with secrets masked before anything is kept."""

    def __init__(self, proc: Proc) -> None:
        self._proc = proc
        self._seen: dict[tuple[int, int], _Sight] = {}
        self._users: dict[int, str] = {}

    def read(self, pids: Iterable[int], table: Mapping[int, ProcessStat]) -> dict[int, ProcessInfo]:
        """Those of ``pids`` that are in ``table`` (one look at all processes).

        ``kind`` and ``rank`` are left to those who know what the commands mean.
        """
        living = {(stat.pid, stat.start) for stat in table.values()}
        self._seen = {key: sight for key, sight in self._seen.items() if key in living}
        return {pid: self._info(table[pid]) for pid in pids if pid in table}

    def _info(self, stat: ProcessStat) -> ProcessInfo:
        sight = self._seen.setdefault((stat.pid, stat.start), _Sight(stat.comm))
        if stat.comm != sight.title:
            sight.title, sight.looks = stat.comm, 0
        state = STATES.get(stat.state, "unknown")
        # A zombie has lost both; what was read while it lived is worth more.
        if sight.looks < 2 and state != "disk_wait" and (stat.alive or not sight.looks):
            self._look(stat.pid, sight)
        user = self._user(stat.pid)
        return ProcessInfo(
            pid=stat.pid,
            ppid=stat.ppid,
            start=stat.start,
            state=state,
            user=user,
            command=sight.command,
            kind="other",
            environment=sight.environment,
            unknown=dict(sight.unknown) if user is not None else {**sight.unknown, "user": "process_gone"},
        )

    def _look(self, pid: int, sight: _Sight) -> None:
        command, environment = self._proc.command(pid), self._proc.environment(pid)
        missing: UnknownReason = "process_gone" if self._proc.stat(pid) is None else "no_permission"
        sight.looks += 1
        sight.unknown = {}
        if command is None:
            sight.unknown["command"] = missing
        else:
            sight.command = mask_arguments(command)
        if environment is None:
            sight.unknown["environment"] = missing
        else:
            sight.environment = mask_environment(environment)

    def _user(self, pid: int) -> str | None:
        status = self._proc.status(pid)
        if status is None:
            return None
        if status.uid not in self._users:
            self._users[status.uid] = _user_name(status.uid)
        return self._users[status.uid]


def _user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
