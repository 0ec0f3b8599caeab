"""What every process is: judged by what it executes, its parent and its children, and once only."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tui.collect.proc import ProcessStat
from tui.collect.processes import ProcessReader
from tui.facts.machine import ProcessInfo
from tui.llamafactory.processes import ProcessRole, classify, with_children


@dataclass(frozen=True, slots=True)
class Population:
    """All processes of one look. ``infos`` carry kind and rank; ``roles`` say the rest."""

    table: Mapping[int, ProcessStat]
    infos: Mapping[int, ProcessInfo]
    roles: Mapping[int, ProcessRole]
    children: Mapping[int, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class _Verdict:
    """What a process was judged by, and what came out."""

    comm: str
    command: tuple[str, ...]
    environment: Mapping[str, str]
    parent_command: tuple[str, ...] | None
    role: ProcessRole

    def still_holds(self, comm: str, info: ProcessInfo, parent_command: tuple[str, ...] | None) -> bool:
        """The reader gives the same objects as long as nothing was read anew."""
        return (
            self.command is info.command
            and self.environment is info.environment
            and self.parent_command is parent_command
            and self.comm == comm
        )


class Identifier:
    """Judges all processes again and again; what has not changed is not judged again."""

    def __init__(self, reader: ProcessReader) -> None:
        self._reader = reader
        self._verdicts: dict[tuple[int, int], _Verdict] = {}

    def identify(self, table: Mapping[int, ProcessStat]) -> Population:
        """Judge every process of ``table``."""
        infos = self._reader.read(table, table)
        children: dict[int, list[int]] = {}
        for pid, info in infos.items():
            children.setdefault(info.ppid, []).append(pid)
        before, self._verdicts = self._verdicts, {}
        alone = {pid: self._role(info, table[pid].comm, infos, before) for pid, info in infos.items()}
        roles = {
            pid: with_children(role, (alone[child] for child in children.get(pid, ())))
            for pid, role in alone.items()
        }
        known = {pid: _named(info, roles[pid]) for pid, info in infos.items()}
        return Population(table, known, roles, {pid: tuple(found) for pid, found in children.items()})

    def _role(
        self,
        info: ProcessInfo,
        comm: str,
        infos: Mapping[int, ProcessInfo],
        before: Mapping[tuple[int, int], _Verdict],
    ) -> ProcessRole:
        key = (info.pid, info.start)
        parent = infos.get(info.ppid)
        parent_command = None if parent is None else parent.command
        verdict = before.get(key)
        if verdict is None or not verdict.still_holds(comm, info, parent_command):
            role = classify(info.command, comm, info.environment, parent_command)
            verdict = _Verdict(comm, info.command, info.environment, parent_command, role)
        self._verdicts[key] = verdict
        return verdict.role


def _named(info: ProcessInfo, role: ProcessRole) -> ProcessInfo:
    if role.kind == info.kind and role.rank == info.rank:
        return info
    return replace(info, kind=role.kind, rank=role.rank)
