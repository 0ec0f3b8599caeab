"""Finding what a person wants to stop, saying what it costs, asking the keeper, waiting for the proof."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tui.collect.proc import Proc
from tui.facts.errors import EXIT_REFUSED, EXIT_USAGE, LlamaherdError
from tui.facts.job import Job, JobRecord, RequestKind
from tui.jobs import client
from tui.jobs.folder import JobFolder
from tui.operate.runs import read_job


@dataclass(frozen=True, slots=True)
class StopTarget:
    """A job that may be stopped. ``steps_lost``: the steps since the last complete checkpoint (all steps
    where there is none), ``None`` when the progress is unknown.
    """

    folder: Path
    job: Job
    steps_lost: int | None


def find_target(text: str, roots: Sequence[Path], proc: Proc | None = None) -> StopTarget:
    """The job that ``text`` means: an id, its unique beginning, or the PID of one of its members.

    Raises:
        LlamaherdError: ``job_unknown``, ``job_ambiguous``, ``job_unreadable``; ``not_ours`` (refused) for
            a process that belongs to no job, ``pid_missing`` for one that is not there.
    """
    proc = proc or Proc()
    is_pid = text.isascii() and text.isdigit() and len(text) < 8
    found = _job_of_pid(int(text), roots, proc) if is_pid else None
    try:
        return target_of(read_job(found or client.find_job(roots, text), proc))
    except LlamaherdError as error:
        # Digits may also begin a job's id, which starts with its date.
        if error.code != "job_unknown" or not is_pid:
            raise
        raise _no_member(int(text), proc) from error


def target_of(job: Job) -> StopTarget:
    """A job of a snapshot as the target of a stop.

    Raises:
        LlamaherdError: ``not_ours`` (refused) for a run that was not started here.
    """
    if job.folder is None:
        raise LlamaherdError("not_ours", exit_code=EXIT_REFUSED, pid=job.main_pid, what=job.id)
    return StopTarget(Path(job.folder), job, _steps_lost(job))


def request_stop(target: StopTarget, kind: RequestKind) -> None:
    """Ask the keeper; a keeper that died is replaced first.

    Raises:
        LlamaherdError: ``job_ended``, ``keeper_failed``, ``state_not_writable``.
    """
    client.request_stop(JobFolder(target.folder), kind)


def wait_stopped(target: StopTarget, on_change: Callable[[JobRecord], None]) -> JobRecord:
    """Wait until the job is over, or its stop is stuck and says what is left."""
    return client.wait_stopped(JobFolder(target.folder), on_change)


def _job_of_pid(pid: int, roots: Sequence[Path], proc: Proc) -> client.FoundJob | None:
    stat = proc.stat(pid)
    jobs = (found for found in client.list_jobs(roots) if isinstance(found, client.FoundJob))
    for found in jobs:
        members = found.record.members
        if stat is not None and any((member.pid, member.start) == (pid, stat.start) for member in members):
            return found
    return None


def _no_member(pid: int, proc: Proc) -> LlamaherdError:
    stat = proc.stat(pid)
    if stat is None:
        return LlamaherdError("pid_missing", exit_code=EXIT_USAGE, pid=pid)
    return LlamaherdError("not_ours", exit_code=EXIT_REFUSED, pid=pid, what=stat.comm)


def _steps_lost(job: Job) -> int | None:
    progress = job.progress
    if progress is None or progress.step is None:
        return None
    return max(0, progress.step - (progress.last_checkpoint or 0))
