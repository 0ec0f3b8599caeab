"""What each process of a job is for.

Known from ``stat``, which cannot hang. The command line, which can, is read once per program that a
process runs, with a deadline, to know torchrun before it has set its title.
"""

from collections.abc import Iterable, Mapping
from pathlib import PurePath

from tui.collect.proc import Proc, ProcessStat
from tui.facts.job import KEEPER_TITLE, Identity, JobKind, Member, MemberRole
from tui.facts.machine import DATA_WORKER_TITLE
from tui.jobs.deadline import within

_AGENT_TITLES = ("pt_elastic", "torchrun")
_AGENT_MODULES = ("torch.distributed.run", "torch.distributed.launch")
_COMMAND_DEADLINE = 0.5
_SILENCES = 3
"""A busy machine may answer late; who has not answered so often is hung, and is not asked again."""

Table = Mapping[int, ProcessStat]


class Roles:
    """What each process of one job is for; a role that was once certain stays."""

    def __init__(self, main: Identity, kind: JobKind, proc: Proc, known: Iterable[Member] = ()) -> None:
        self._main = (main.pid, main.start)
        self._kind = kind
        self._proc = proc
        self._certain = {(member.pid, member.start): member.role for member in known}
        self._runs_agent: dict[tuple[int, int, str], bool] = {}
        self._silences: dict[tuple[int, int, str], int] = {}

    def members(self, found: list[ProcessStat], *, judge: bool = True) -> tuple[Member, ...]:
        """The processes with their roles. Without ``judge`` nothing is read that could hang."""
        by_pid = {stat.pid: stat for stat in found}
        keys = {(stat.pid, stat.start) for stat in found}
        self._certain = {key: role for key, role in self._certain.items() if key in keys}
        self._runs_agent = {key: agent for key, agent in self._runs_agent.items() if key[:2] in keys}
        self._silences = {key: count for key, count in self._silences.items() if key[:2] in keys}
        agents = {stat.pid for stat in found if self._is_agent(stat, judge)}
        # What an agent forks is named like it until it execs: only the topmost is the agent.
        agents -= {pid for pid in agents if by_pid[pid].ppid in agents}
        for stat in found:
            role = self._role(stat, agents, by_pid)
            if role != "other":
                self._certain[(stat.pid, stat.start)] = role
        return tuple(self._member(stat) for stat in found)

    def _member(self, stat: ProcessStat) -> Member:
        role = self._certain.get((stat.pid, stat.start), "other")
        return Member(stat.pid, stat.start, role, stat.state, stat.comm)

    def _role(self, stat: ProcessStat, agents: set[int], by_pid: Table) -> MemberRole:
        if stat.comm == KEEPER_TITLE:
            return "keeper"
        if stat.pid in agents:
            return "agent"
        if (stat.pid, stat.start) == self._main:
            if self._kind == "service":
                return "service"
            # The launcher over an agent stays one when the agent is gone: it still is no trainer. Nor is
            # a rank that was found without its launcher.
            known = self._certain.get(self._main, "main")
            return known if known != "main" or not agents else "wrapper"
        if stat.comm == DATA_WORKER_TITLE:
            return "data_worker"
        return "rank" if stat.ppid in agents else "other"

    def _is_agent(self, stat: ProcessStat, judge: bool) -> bool:
        if stat.comm in _AGENT_TITLES:
            return True
        key = (stat.pid, stat.start, stat.comm)
        if judge and key not in self._runs_agent and self._silences.get(key, 0) < _SILENCES:
            command = within(_COMMAND_DEADLINE, lambda: self._proc.command(stat.pid))
            if command is None:
                self._silences[key] = self._silences.get(key, 0) + 1
            else:
                self._runs_agent[key] = runs_torchrun(command)
        return self._runs_agent.get(key, False)


def runs_torchrun(command: tuple[str, ...]) -> bool:
    """Whether a command line starts torchrun, as a script or as a module."""
    if len(command) > 2 and command[1] == "-m":
        return command[2] in _AGENT_MODULES
    return any(PurePath(word).name == "torchrun" for word in command[:2])
