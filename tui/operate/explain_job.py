"""A job folder explained: what its files say, and what its keeper recorded."""

from dataclasses import replace
from pathlib import Path

from tui.facts.explained import ExplainedRun
from tui.jobs.client import FoundJob
from tui.jobs.folder import JobFolder
from tui.operate.run_files import RunFiles, files_of_job
from tui.operate.runs import read_job


def job_files(path: Path) -> RunFiles:
    """The files of a job.

    Raises:
        LlamaherdError: ``job_unreadable``.
    """
    return files_of_job(path, JobFolder(path).read_record().output_dir)


def as_recorded(path: Path, run: ExplainedRun) -> ExplainedRun:
    """The run that the files tell of, with what only the record knows.

    Raises:
        LlamaherdError: ``job_unreadable``.
    """
    folder = JobFolder(path)
    job = read_job(FoundJob(folder, folder.read_record()))
    return replace(
        run,
        kind=job.kind,
        state=job.state,
        ending=job.ending,
        failure=job.failure,
        config=job.config,
        output_dir=job.output_dir,
        started_at=job.started_at,
        ended_at=job.ended_at,
        peak_memory=job.peak_memory,
        progress=job.progress,
        unknown={name: reason for name, reason in run.unknown.items() if name != "state"},
    )
