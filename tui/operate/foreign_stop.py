"""What a PID that belongs to no job of ours is, whether it may be stopped from here, and what that means.

Only what is recognised is stopped: LLaMA-Factory's trainings and services, vLLM, and a notebook kernel
whose very PID was typed. All else is somebody's own business.
"""

import os
from collections.abc import Iterable, Iterator, Set
from dataclasses import replace
from pathlib import Path, PurePath

from tui.collect.proc import Proc
from tui.collect.processes import ProcessReader
from tui.facts.errors import EXIT_REFUSED, LlamaherdError
from tui.facts.job import Behind, Graces, Identity, Job, Member, RequestKind
from tui.jobs.client import FoundJob
from tui.jobs.foreign import ForeignRun, stop_foreign
from tui.jobs.identity import identify, same
from tui.jobs.stopper import Stopper
from tui.operate.behind import behind, parents
from tui.operate.foreign import ForeignRuns
from tui.operate.identify import Identifier, Population

_KERNELS = frozenset({"ipykernel_launcher", "ipykernel", "ipykernel_launcher.py"})
_HOSTS = ("webui", "notebook")
"""What they started ends with them: its output goes to a pipe that they hold."""


def look(proc: Proc) -> Population:
    """All processes, judged."""
    return Identifier(ProcessReader(proc)).identify(proc.table())


def find_foreign(pid: int, ours: Set[int], population: Population, proc: Proc) -> Job | None:
    """The run or service that a process belongs to; ``None`` where it is none that is known here.

    Args:
        pid: any of its processes.
        ours: the PIDs of all members of jobs that were started here.
        population: all processes.
        proc: where they are looked at.
    """
    if pid in ours or pid not in population.table:
        return None
    found = ForeignRuns(proc).find(population, ours)
    job = next((job for job in found if pid in {member.pid for member in job.members}), None)
    if job is None:
        job = _kernel(pid, population, proc) if _is_kernel(pid, population) else None
    if job is None or job.main_pid is None or population.roles[job.main_pid].kind not in _HOSTS:
        return job
    return _with_all_below(job, job.main_pid, population, ours)


def what_goes_on(job: Job, population: Population, proc: Proc) -> tuple[Behind, ...]:
    """What runs next once this run has ended."""
    if job.main_pid is None:
        return ()
    chain = parents(job.main_pid, population.infos)
    cwds = {pid: cwd for pid in chain if (cwd := proc.cwd(pid)) is not None}
    return behind(job.main_pid, population.infos, cwds)


def refuse_protected(members: Iterable[Member], proc: Proc, *, readonly: bool = False) -> None:
    """See that every member may be signalled by this user, from this process.

    Raises:
        LlamaherdError: ``readonly``; ``protected`` with ``pid``, ``what`` and ``why``.
    """
    stopper = Stopper(proc, readonly=readonly)
    user = os.geteuid()
    for member in members:
        why: str | None = stopper.refusal(member.pid)
        status = proc.status(member.pid)
        if why is None and user != 0 and status is not None and status.uid != user:
            why = "other_user"
        if why == "readonly":
            raise LlamaherdError("readonly", exit_code=EXIT_REFUSED, deed="stop")
        if why is not None:
            raise LlamaherdError(
                "protected", exit_code=EXIT_REFUSED, pid=member.pid, what=member.command, why=why
            )


def begin(
    job: Job, kind: RequestKind, root: Path, proc: Proc, graces: Graces, *, readonly: bool = False
) -> FoundJob:
    """Have a foreign run stopped; the job folder, below ``root``, that its stop got.

    Raises:
        LlamaherdError: ``pid_missing`` when it is not the same process any more; ``protected``;
            ``readonly``; ``state_not_writable``, ``keeper_failed``.
    """
    main = _identity(job, proc)
    if main is None:
        raise LlamaherdError("pid_missing", exit_code=EXIT_REFUSED, pid=job.main_pid)
    refuse_protected(job.members, proc, readonly=readonly)
    run = ForeignRun(
        kind=job.kind,
        name=_name(job),
        main=main,
        members=job.members,
        command=job.command,
        cwd=job.cwd or "/",
        config=job.config,
        output_dir=job.output_dir,
        started_at=job.started_at,
        gpus=job.gpus,
        graces=graces,
    )
    return stop_foreign(run, kind, root)


def _identity(job: Job, proc: Proc) -> Identity | None:
    pid, _, start = job.id.partition(":")
    here = identify(int(pid), proc)
    if here is None or str(here.start) != start or not same(here, proc):
        return None
    return here


def _name(job: Job) -> str:
    if job.config is not None:
        return PurePath(job.config).stem
    words = [word for word in job.command[1:3] if not word.startswith(("-", "/"))]
    return words[-1] if words else "run"


def _is_kernel(pid: int, population: Population) -> bool:
    words = {PurePath(word).name for word in population.infos[pid].command[:4]}
    return population.roles[pid].kind == "notebook" and bool(words & _KERNELS)


def _kernel(pid: int, population: Population, proc: Proc) -> Job:
    info = population.infos[pid]
    stat = population.table[pid]
    return Job(
        id=f"{pid}:{stat.start}",
        kind="service",
        state="running",
        ending=None,
        exit_code=None,
        failure=None,
        keeper=False,
        main_pid=pid,
        members=(Member(pid, stat.start, "service", stat.state, info.title or stat.comm),),
        config=None,
        output_dir=None,
        started_at=info.started_at,
        ended_at=None,
        gpus=(),
        peak_memory={},
        ports=(),
        progress=None,
        command=info.command,
        cwd=proc.cwd(pid),
        foreign=True,
        unknown={"exit_code": "not_visible"},
    )


def _with_all_below(job: Job, head: int, population: Population, ours: Set[int]) -> Job:
    known = {member.pid for member in job.members}
    others = (pid for pid in _below(head, population, ours) if pid not in known)
    more = tuple(
        Member(pid, stat.start, population.roles[pid].role, stat.state, stat.comm)
        for pid in others
        if (stat := population.table[pid]).alive
    )
    return replace(job, members=(*job.members, *more))


def _below(head: int, population: Population, ours: Set[int]) -> Iterator[int]:
    queue = [child for child in population.children.get(head, ()) if child not in ours]
    while queue:
        pid = queue.pop(0)
        if population.roles[pid].role == "keeper":
            continue
        yield pid
        queue += [child for child in population.children.get(pid, ()) if child not in ours]
