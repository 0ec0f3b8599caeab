"""Processes that may belong to a job without descending from its keeper.

The token in the environment is inherited by everything that is ever started from a job's process, a
terminal multiplexer's later shells included, so alone it proves nothing. The job's own processes have no
terminal, start after its main process, and hold its log open for writing, or carry the token and hold a
GPU.
"""

import os
from dataclasses import dataclass
from typing import Literal

from tui.collect.proc import Proc, ProcessStat
from tui.facts.job import Identity, JobRecord, Member
from tui.jobs.deadline import within
from tui.jobs.folder import JobFolder
from tui.jobs.identity import same_boot
from tui.jobs.members import Table

TOKEN_VARIABLE = "LLAMAHERD_JOB"  # noqa: S105  # a mark, not a secret
_ENVIRONMENT_DEADLINE = 0.5

Why = Literal["log", "device", "token"]
"""What speaks for it: the job's log open for writing; token and GPU; the token alone, which is no proof."""


@dataclass(frozen=True, slots=True)
class Stray:
    """A process that may be left of a job; ``proven``: enough speaks for it to be signalled."""

    process: Member
    why: Why

    @property
    def proven(self) -> bool:
        """Whether it is shown to belong."""
        return self.why != "token"


class Evidence:
    """Judges processes of one table after the other for one job.

    An environment, whose reading may hang, is read once per process and never waited for twice.
    """

    def __init__(self, main: Identity, record: JobRecord, folder: JobFolder, proc: Proc) -> None:
        self._since = main.start
        self._log = os.path.realpath(folder.log)
        self._entry = os.fsencode(f"{TOKEN_VARIABLE}={token(record.id, record.nonce)}")
        self._carriers: dict[tuple[int, int], bool] = {}
        self._proc = proc

    def why(self, stat: ProcessStat) -> Why | None:
        """What speaks for a living process, the strongest first."""
        if not stat.lives_on or stat.start < self._since or stat.pid == os.getpid():
            return None
        if not stat.tty and self._proc.writes(stat.pid, self._log):
            return "log"
        if not self._carries_token(stat):
            return None
        return "device" if not stat.tty and self._proc.device_minors(stat.pid) else "token"

    def forget_others(self, table: Table) -> None:
        """Drop what is known of processes that are gone."""
        self._carriers = {
            (pid, start): carries
            for (pid, start), carries in self._carriers.items()
            if pid in table and table[pid].start == start
        }

    def _carries_token(self, stat: ProcessStat) -> bool:
        key = (stat.pid, stat.start)
        if key not in self._carriers:
            self._carriers[key] = bool(
                within(_ENVIRONMENT_DEADLINE, lambda: self._proc.has_environment_entry(stat.pid, self._entry))
            )
        return self._carriers[key]


def token(job_id: str, nonce: str) -> str:
    """The value of ``LLAMAHERD_JOB`` in the environment of a job's processes."""
    return f"{job_id}.{nonce}"


def find_strays(record: JobRecord, folder: JobFolder, proc: Proc) -> tuple[Stray, ...]:
    """What may be left of a job that has no keeper; nothing of an earlier life of the machine."""
    if record.main is None or not same_boot(record.main, proc):
        return ()
    evidence = Evidence(record.main, record, folder, proc)
    judged = ((stat, evidence.why(stat)) for stat in proc.table().values())
    return tuple(
        Stray(Member(stat.pid, stat.start, state=stat.state, command=stat.comm), why)
        for stat, why in judged
        if why is not None
    )
