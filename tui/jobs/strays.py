"""Processes that may belong to a job without descending from its keeper.

The token in the environment is inherited by everything that is ever started from a job's process, a
terminal multiplexer's later shells included, so alone it proves nothing. The job's own processes have no
terminal, start after its main process, and hold its log open for writing, or carry the token and hold a
GPU.
"""

import os

from tui.collect.proc import Proc, ProcessStat
from tui.jobs.deadline import within
from tui.jobs.members import Table

TOKEN_VARIABLE = "LLAMAHERD_JOB"  # noqa: S105  # a mark, not a secret
_ENVIRONMENT_DEADLINE = 0.5


def token(job_id: str, nonce: str) -> str:
    """The value of ``LLAMAHERD_JOB`` in the environment of a job's processes."""
    return f"{job_id}.{nonce}"


class Carriers:
    """Tells who carries a job's token; an environment is read once, and never waited for twice."""

    def __init__(self, value: str, proc: Proc) -> None:
        self._entry = os.fsencode(f"{TOKEN_VARIABLE}={value}")
        self._proc = proc
        self._known: dict[tuple[int, int], bool] = {}

    def carries(self, stat: ProcessStat) -> bool:
        """Whether the process was started with the token."""
        key = (stat.pid, stat.start)
        if key not in self._known:
            self._known[key] = bool(
                within(_ENVIRONMENT_DEADLINE, lambda: self._proc.has_environment_entry(stat.pid, self._entry))
            )
        return self._known[key]

    def forget_others(self, table: Table) -> None:
        """Drop what is known of processes that are gone."""
        self._known = {
            key: carries
            for key, carries in self._known.items()
            if key[0] in table and table[key[0]].start == key[1]
        }
