"""Finding what a person wants to stop, saying what it costs, asking the keeper, waiting for the proof."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tui.collect.proc import Proc, ProcessStat
from tui.facts.errors import EXIT_REFUSED, EXIT_USAGE, LlamaherdError
from tui.facts.job import Behind, Graces, Job, JobRecord, RequestKind
from tui.jobs import client
from tui.jobs.folder import JobFolder
from tui.jobs.roots import state_roots, writing_root
from tui.operate import foreign_stop
from tui.operate.runs import living_members, read_job

_PID_DIGITS = 7


@dataclass(frozen=True, slots=True)
class StopTarget:
    """A job that may be stopped. ``steps_lost``: the steps since the last complete checkpoint (all steps
    where there is none), ``None`` when the progress is unknown. ``folder`` is ``None`` for a run that was
    not started here: its stop makes one. ``behind`` is what then goes on in its place.
    """

    folder: Path | None
    job: Job
    steps_lost: int | None
    behind: tuple[Behind, ...] = ()


def find_target(
    text: str, roots: Sequence[Path], proc: Proc | None = None, *, readonly: bool = False
) -> StopTarget:
    """The job that ``text`` means: an id, its unique beginning, or the PID of one of its members; or the
    PID (or ``PID:START``) of a run or service that was not started here.

    Raises:
        LlamaherdError: ``job_unknown``, ``job_ambiguous``, ``job_unreadable``; ``not_ours`` (refused) for
            a process that is nothing known here, ``protected`` for one that is never stopped,
            ``pid_missing`` for one that is not there; ``readonly``.
    """
    proc = proc or Proc()
    digits, _, start = text.partition(":")
    is_pid = digits.isascii() and digits.isdigit() and len(digits) <= _PID_DIGITS
    # So few digits are a PID and nothing else: as the beginning of a dated id they would mean any job.
    if not is_pid:
        return target_of(read_job(client.find_job(roots, text), proc))
    found = _job_of_pid(int(digits), roots, proc) if not start else None
    if found is not None:
        return target_of(read_job(found, proc))
    return _foreign_target(int(digits), start, roots, proc, readonly=readonly)


def target_of(job: Job, proc: Proc | None = None) -> StopTarget:
    """A job of a snapshot as the target of a stop.

    Raises:
        LlamaherdError: ``protected`` for a foreign run that must not be stopped from here.
    """
    if job.folder is not None:
        return StopTarget(Path(job.folder), job, _steps_lost(job))
    proc = proc or Proc()
    foreign_stop.refuse_protected(job.members, proc)
    return StopTarget(
        None, job, _steps_lost(job), foreign_stop.what_goes_on(job, foreign_stop.look(proc), proc)
    )


def request_stop(
    target: StopTarget,
    kind: RequestKind,
    root: Path | None = None,
    *,
    readonly: bool = False,
    graces: Graces | None = None,
) -> StopTarget:
    """Ask the keeper; a keeper that died is replaced first, and a foreign run gets one, with a folder
    below ``root`` (default: where new jobs go), and ``graces``. The target with its folder.

    Raises:
        LlamaherdError: ``job_ended``, ``keeper_failed``, ``state_not_writable``; ``readonly``; for a
            foreign run ``pid_missing`` and ``protected`` too.
    """
    if readonly:
        raise LlamaherdError("readonly", exit_code=EXIT_REFUSED, deed="stop")
    if target.folder is not None:
        client.request_stop(JobFolder(target.folder), kind)
        return target
    proc = Proc()
    root = root or writing_root(state_roots(os.environ))
    found = foreign_stop.begin(target.job, kind, root, proc, graces or Graces())
    return replace(target, folder=found.folder.path, job=read_job(found, proc))


def wait_stopped(target: StopTarget, on_change: Callable[[JobRecord], None]) -> JobRecord:
    """Wait until the job is over, or its stop is stuck and says what is left.

    Raises:
        LlamaherdError: ``job_unreadable``, ``keeper_failed``.
    """
    if target.folder is None:
        raise LlamaherdError("not_ours", exit_code=EXIT_REFUSED, pid=target.job.main_pid, what=target.job.id)
    return client.wait_stopped(JobFolder(target.folder), on_change)


def members_of_ours(roots: Sequence[Path], table: dict[int, ProcessStat]) -> frozenset[int]:
    """The PIDs of all members of jobs that were started here."""
    jobs = (found for found in client.list_jobs(roots) if isinstance(found, client.FoundJob))
    alive = (found.record for found in jobs if not client.is_over(found.record))
    return frozenset(member.pid for record in alive for member in living_members(record, table))


def _foreign_target(pid: int, start: str, roots: Sequence[Path], proc: Proc, *, readonly: bool) -> StopTarget:
    stat = proc.stat(pid)
    if stat is None or (start and start != str(stat.start)):
        raise LlamaherdError("pid_missing", exit_code=EXIT_USAGE, pid=pid)
    population = foreign_stop.look(proc)
    ours = members_of_ours(roots, dict(population.table))
    job = foreign_stop.find_foreign(pid, ours, population, proc)
    if job is None:
        raise LlamaherdError("not_ours", exit_code=EXIT_REFUSED, pid=pid, what=stat.comm)
    foreign_stop.refuse_protected(job.members, proc, readonly=readonly)
    return StopTarget(None, job, _steps_lost(job), foreign_stop.what_goes_on(job, population, proc))


def _job_of_pid(pid: int, roots: Sequence[Path], proc: Proc) -> client.FoundJob | None:
    table = proc.table()
    jobs = (found for found in client.list_jobs(roots) if isinstance(found, client.FoundJob))
    alive = (found for found in jobs if not client.is_over(found.record))
    return next((f for f in alive if pid in {m.pid for m in living_members(f.record, table)}), None)


def _steps_lost(job: Job) -> int | None:
    progress = job.progress
    if progress is None or progress.step is None:
        return None
    return max(0, progress.step - (progress.last_checkpoint or 0))
