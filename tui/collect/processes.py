"""Who a process is: user, command line, environment, state, and what it uses of the host.

The command line and the environment can block on a process that is stuck in the driver. They are read
at first sight, once more at the second (the first may fall between fork and exec, when a child still
shows its parent's), again when the title changes, and never while the process waits in the kernel.
"""

import os
import pwd
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from tui.collect.notebooks import own_title
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

_TICKS = os.sysconf("SC_CLK_TCK")
_LEAST_SECONDS = 0.2
"""Between two looks at CPU time, which is counted in hundredths of a second."""


@dataclass(slots=True)
class _Sight:
    """What was read of one process. ``looks`` counts the readings of this title; ``stat`` is the last
    look, ``ticks`` the CPU time at ``at``, and ``info`` what was made of them.
    """

    title: str
    ticks: int
    at: float
    looks: int = 0
    user: str | None = None
    command: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    own_title: str | None = None
    unknown: dict[str, UnknownReason] = field(
        default_factory=lambda: {"command": "not_yet", "environment": "not_yet"}
    )
    cpu_used: float | None = None
    stat: ProcessStat | None = None
    info: ProcessInfo | None = None


class ProcessReader:
    """Reads processes again and again, with secrets masked before anything is kept.

    ``clock`` tells monotonic seconds.
    """

    def __init__(self, proc: Proc, clock: Callable[[], float] = time.monotonic) -> None:
        self._proc = proc
        self._clock = clock
        self._boot = proc.boot_time()
        self._seen: dict[tuple[int, int], _Sight] = {}
        self._users: dict[int, str] = {}

    def read(self, pids: Iterable[int], table: Mapping[int, ProcessStat]) -> dict[int, ProcessInfo]:
        """Those of ``pids`` that are in ``table`` (one look at all processes).

        ``kind`` and ``rank`` are left to those who know what the commands mean. What has not changed
        since the last look is the same object.
        """
        living = {(stat.pid, stat.start) for stat in table.values()}
        self._seen = {key: sight for key, sight in self._seen.items() if key in living}
        now = self._clock()
        return {pid: self._info(table[pid], now) for pid in pids if pid in table}

    def _info(self, stat: ProcessStat, now: float) -> ProcessInfo:
        key = (stat.pid, stat.start)
        sight = self._seen.get(key)
        if sight is None:
            sight = self._seen[key] = _Sight(stat.comm, stat.user_ticks + stat.system_ticks, now)
        if stat.comm != sight.title:
            sight.title, sight.looks = stat.comm, 0
        state = STATES.get(stat.state, "unknown")
        # A zombie has lost both; what was read while it lived is worth more.
        if sight.looks < 2 and state != "disk_wait" and (stat.alive or not sight.looks):
            self._look(stat.pid, sight)
            sight.info = None
        cpu_before = sight.cpu_used
        _count_cpu(sight, stat, now)
        if sight.info is None or sight.stat != stat or sight.cpu_used != cpu_before:
            sight.stat, sight.info = stat, self._made(stat, state, sight)
        return sight.info

    def _made(self, stat: ProcessStat, state: ProcessState, sight: _Sight) -> ProcessInfo:
        unknown = dict(sight.unknown)
        if sight.user is None:
            unknown["user"] = "not_yet" if state == "disk_wait" else "process_gone"
        if sight.cpu_used is None:
            unknown["cpu_used"] = "not_yet"
        if self._boot is None:
            unknown["started_at"] = "missing_file"
        return ProcessInfo(
            pid=stat.pid,
            ppid=stat.ppid,
            start=stat.start,
            state=state,
            user=sight.user,
            command=sight.command,
            kind="other",
            environment=sight.environment,
            unknown=unknown,
            title=sight.own_title,
            cpu_used=sight.cpu_used,
            resident=stat.resident,
            started_at=None if self._boot is None else self._boot + stat.start / _TICKS,
            threads=stat.threads,
        )

    def _look(self, pid: int, sight: _Sight) -> None:
        command, environment = self._proc.command(pid), self._proc.environment(pid)
        missing: UnknownReason = "process_gone" if self._proc.stat(pid) is None else "no_permission"
        sight.looks += 1
        sight.unknown = {}
        sight.user = self._user(pid)
        sight.own_title = own_title(command or (), environment or {}, sight.title)
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


def _count_cpu(sight: _Sight, stat: ProcessStat, now: float) -> None:
    """CPUs since the last look; two looks close together would tell noise."""
    ticks, seconds = stat.user_ticks + stat.system_ticks, now - sight.at
    if seconds >= _LEAST_SECONDS:
        sight.cpu_used = max(0, ticks - sight.ticks) / _TICKS / seconds
        sight.ticks, sight.at = ticks, now


def _user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
