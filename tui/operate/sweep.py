"""Strays: found, grouped by the run that they are left of, and ended with the same ladder as a stop.

A run that has nobody to lead it is told from one that merely lost its terminal: both have come to PID 1,
but a rank never starts without its torchrun, nor an engine without its server; and the workers of a
tokeniser's pool share the pipes of the pool, which two trainings never do.
"""

import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from pathlib import Path, PurePath

from tui.collect.proc import Proc, ProcessStat
from tui.facts.errors import EXIT_REFUSED, LlamaherdError
from tui.facts.job import Graces, Identity, Member
from tui.facts.stray import Obstacle, Stray, StrayGroup, StrayReason
from tui.jobs.client import FoundJob, is_over, list_jobs
from tui.jobs.foreign import ForeignRun, stop_foreign
from tui.jobs.stopper import Stopper
from tui.jobs.strays import TOKEN_VARIABLE, find_strays
from tui.operate.foreign_stop import look
from tui.operate.identify import Population
from tui.operate.stop import members_of_ours

_REAPERS = frozenset({"init", "systemd", "tini", "dumb-init", "docker-init", "conmon", "containerd-shim"})
_TITLES = ("llamafactory-cl", "pt_data_worker", "pt_elastic", "torchrun", "VLLM::")
"""Beginnings of the titles of processes that a run has; a zombie has nothing but its title."""

_SECOND_LOOK = 0.5
"""Seconds after which a process that still waits in the kernel is held to stay there."""

_LOG_NAME = "/train.log"
_PIPE = re.compile(r"pipe:\[\d+\]")
_RUN_MARKS = ("MASTER_PORT", "TORCHELASTIC_RUN_ID", "LLAMAHERD_JOB")


def find_groups(roots: Sequence[Path], proc: Proc | None = None) -> tuple[StrayGroup, ...]:
    """All strays, grouped by run; those of our own jobs first."""
    proc = proc or Proc()
    population = look(proc)
    ours = members_of_ours(roots, dict(population.table))
    finder = _Finder(population, proc)
    groups = [finder.group(pids, job) for job, pids in _of_jobs(roots, population, ours, proc)]
    taken = set(ours) | {stray.process.pid for group in groups for stray in group.strays}
    groups += [finder.group(pids, None) for pids in _by_run(_leaderless(population, taken, proc), population)]
    return tuple(finder.judged_again(groups))


def choose(groups: Iterable[StrayGroup], names: Sequence[str]) -> tuple[StrayGroup, ...]:
    """The groups that can be swept; with ``names``, those of them.

    Raises:
        LlamaherdError: ``stray_unknown``.
    """
    able = {group.id: group for group in groups if group.sweepable}
    for name in names:
        if name not in able:
            raise LlamaherdError("stray_unknown", exit_code=EXIT_REFUSED, group=name)
    return tuple(able[name] for name in names) if names else tuple(able.values())


def sweep(group: StrayGroup, root: Path, *, readonly: bool = False, graces: Graces | None = None) -> FoundJob:
    """Have the sweepable ones of a group ended; the job folder, below ``root``, that tells how far it is.

    Raises:
        LlamaherdError: ``readonly``; ``stray_unknown`` when nothing of it may be ended;
            ``state_not_writable``, ``keeper_failed``.
    """
    if readonly:
        raise LlamaherdError("readonly", exit_code=EXIT_REFUSED, deed="sweep")
    members = tuple(stray.process for stray in group.sweepable)
    if not members:
        raise LlamaherdError("stray_unknown", exit_code=EXIT_REFUSED, group=group.id)
    proc = Proc()
    first = members[0]
    main = Identity(proc.boot_id(), proc.init_start(), first.pid, first.start)
    run = ForeignRun(
        kind="training",
        name="strays",
        main=main,
        members=members,
        command=group.command,
        cwd=group.cwd or "/",
        graces=graces or Graces(),
    )
    return stop_foreign(run, "stop", root)


class _Finder:
    """Tells of each stray what can be known of it."""

    def __init__(self, population: Population, proc: Proc) -> None:
        self._population = population
        self._proc = proc
        self._stopper = Stopper(proc)

    def group(self, reasons: Mapping[int, StrayReason], job: FoundJob | None) -> StrayGroup:
        """The strays ``reasons`` (PID to reason) as a group."""
        strays = tuple(self._stray(pid, reason) for pid, reason in sorted(reasons.items()))
        first = strays[0].process
        info = self._population.infos[first.pid]
        return StrayGroup(
            id=f"{first.pid}:{first.start}",
            job=None if job is None else job.record.id,
            command=info.command if job is None else job.record.command,
            cwd=self._proc.cwd(first.pid) if job is None else job.record.cwd,
            strays=strays,
        )

    def judged_again(self, groups: Sequence[StrayGroup]) -> Iterator[StrayGroup]:
        """A wait for the disk is over in a moment; one for a hung driver is not."""
        waiting = any(stray.process.state == "D" for group in groups for stray in group.strays)
        if not waiting:
            yield from groups
            return
        time.sleep(_SECOND_LOOK)
        for group in groups:
            yield replace(group, strays=tuple(map(self._after_wait, group.strays)))

    def _after_wait(self, stray: Stray) -> Stray:
        stat = self._proc.stat(stray.process.pid)
        still = stat is not None and stat.start == stray.process.start and stat.state == "D"
        if stray.process.state != "D" or not still or stray.obstacle is not None:
            return stray
        return replace(stray, obstacle="kernel_wait")

    def _stray(self, pid: int, reason: StrayReason) -> Stray:
        stat, info = self._population.table[pid], self._population.infos[pid]
        role = self._population.roles[pid].role
        # A worker of a pool runs its trainer's command line, so alone it looks like one.
        role = "pool" if reason == "pool_without_trainer" else role
        return Stray(
            process=Member(pid, stat.start, role, stat.state, stat.comm),
            reason=reason,
            started_at=info.started_at,
            devices=tuple(sorted(self._proc.device_minors(pid))),
            resident=info.resident,
            obstacle=self._obstacle(stat, reason),
        )

    def _obstacle(self, stat: ProcessStat, reason: StrayReason) -> Obstacle | None:
        if reason == "zombie" or not stat.lives_on:
            return "zombie"
        if stat.tty:
            return "terminal"
        if reason == "token":
            return "unproven"
        return "protected" if self._stopper.refusal(stat.pid) is not None else None


def _of_jobs(
    roots: Sequence[Path], population: Population, ours: Set[int], proc: Proc
) -> Iterator[tuple[FoundJob, dict[int, StrayReason]]]:
    """What may be left of our own jobs that are over. Only a job that any process shows a trace of is
    looked at closely: there may be hundreds of them.
    """
    marks = tuple(info.environment.get(TOKEN_VARIABLE, "") for info in population.infos.values())
    logs = {path for pid in population.table for path in proc.open_files(pid) if path.endswith(_LOG_NAME)}
    for found in list_jobs(roots):
        if not isinstance(found, FoundJob) or not is_over(found.record) or found.record.foreign:
            continue
        is_marked = any(mark.startswith(f"{found.record.id}.") for mark in marks)
        if is_marked or str(found.folder.log.resolve()) in logs:
            strays = find_strays(found.record, found.folder, proc)
            reasons: dict[int, StrayReason] = {
                stray.process.pid: stray.why for stray in strays if stray.process.pid not in ours
            }
            if reasons:
                yield found, reasons


def _leaderless(population: Population, taken: Set[int], proc: Proc) -> dict[int, StrayReason]:
    """Strays among all other processes, PID to reason."""
    reasons: dict[int, StrayReason] = {}
    alike: dict[tuple[tuple[str, ...], int], list[int]] = {}
    for pid, role in population.roles.items():
        stat = population.table[pid]
        if pid in taken:
            continue
        if not stat.lives_on:
            if stat.comm.startswith(_TITLES):
                reasons[pid] = "zombie"
        elif not _came_to_reaper(stat, population):
            continue
        elif role.role == "rank" and role.is_llamafactory:
            reasons[pid] = "rank_without_agent"
        elif role.role == "data_worker":
            reasons[pid] = "worker_without_trainer"
        elif role.kind == "vllm" and role.role == "other":
            reasons[pid] = "engine_without_server"
        elif role.role == "main" and role.is_llamafactory:
            alike.setdefault((population.infos[pid].command, stat.pgid), []).append(pid)
    for pids in alike.values():
        reasons.update(dict.fromkeys(_sharing_a_pipe(pids, proc), "pool_without_trainer"))
    return reasons


def _came_to_reaper(stat: ProcessStat, population: Population) -> bool:
    parent = population.infos.get(stat.ppid)
    if stat.ppid <= 1 or parent is None:
        return True
    return bool(parent.command) and PurePath(parent.command[0]).name in _REAPERS


def _sharing_a_pipe(pids: Sequence[int], proc: Proc) -> set[int]:
    """Those that have a pipe in common with another of them, besides the standard streams."""
    pipes = {pid: _pipes(pid, proc) for pid in pids}
    return {
        pid for pid, own in pipes.items() if any(own & other for twin, other in pipes.items() if twin != pid)
    }


def _pipes(pid: int, proc: Proc) -> frozenset[str]:
    targets = {name: proc.descriptor(pid, name) or "" for name in proc.descriptors(pid)}
    standard = {target for name, target in targets.items() if name in ("0", "1", "2")}
    return frozenset(target for target in targets.values() if _PIPE.fullmatch(target)) - standard


def _by_run(reasons: Mapping[int, StrayReason], population: Population) -> Iterator[dict[int, StrayReason]]:
    """The strays of each run, with all that descends from them."""
    runs: dict[object, dict[int, StrayReason]] = {}
    for pid, reason in reasons.items():
        family = runs.setdefault(_run_of(pid, reason, population), {})
        family[pid] = reason
        queue = list(population.children.get(pid, ()))
        while queue:
            child = queue.pop()
            if population.roles[child].role != "keeper" and child not in reasons:
                family[child] = reason
                queue += population.children.get(child, ())
    yield from runs.values()


def _run_of(pid: int, reason: StrayReason, population: Population) -> object:
    if reason == "zombie":
        return ("zombies", population.table[pid].ppid)
    info = population.infos[pid]
    if reason == "engine_without_server":
        return ("engine", population.table[pid].session)
    marks = tuple(info.environment.get(name) for name in _RUN_MARKS)
    return (
        info.command if reason != "worker_without_trainer" else (),
        marks,
        population.table[pid].pgid if reason == "pool_without_trainer" else 0,
    )
