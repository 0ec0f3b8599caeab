"""What every process is: read once, judged by what it executes, its parent and its children."""

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


def identify(reader: ProcessReader, table: Mapping[int, ProcessStat]) -> Population:
    """Judge every process of ``table``."""
    infos = reader.read(table, table)
    children: dict[int, list[int]] = {}
    for pid, info in infos.items():
        children.setdefault(info.ppid, []).append(pid)
    alone = {pid: _role(info, table[pid].comm, infos.get(info.ppid)) for pid, info in infos.items()}
    roles = {
        pid: with_children(role, (alone[child] for child in children.get(pid, ())))
        for pid, role in alone.items()
    }
    known = {pid: replace(info, kind=roles[pid].kind, rank=roles[pid].rank) for pid, info in infos.items()}
    return Population(table, known, roles, {pid: tuple(found) for pid, found in children.items()})


def _role(info: ProcessInfo, comm: str, parent: ProcessInfo | None) -> ProcessRole:
    return classify(info.command, comm, info.environment, parent.command if parent is not None else None)
