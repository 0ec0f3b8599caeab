"""A job folder explained: what its files say, and what its keeper recorded."""

import csv
import os
from dataclasses import replace
from pathlib import Path

from tui.facts.explained import ExplainedRun
from tui.insight.curves import fitted, memory_curves
from tui.jobs.client import FoundJob
from tui.jobs.folder import JobFolder
from tui.jobs.samples import SAMPLES_NAME
from tui.operate.run_files import RunFiles, files_of_job
from tui.operate.runs import read_job

_POINTS = 400
_READ = 8 << 20


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
        exit_code=job.exit_code,
        gpus=job.gpus,
        config=job.config,
        output_dir=job.output_dir,
        started_at=job.started_at,
        ended_at=job.ended_at,
        peak_memory=job.peak_memory,
        progress=job.progress,
        curves=(*run.curves, *(fitted(curve, _POINTS) for curve in memory_curves(_samples(path)))),
        unknown={name: reason for name, reason in run.unknown.items() if name != "state"},
    )


def _samples(path: Path) -> list[dict[str, str]]:
    """The rows of ``gpu-samples.csv``, of a very long one its end."""
    try:
        with (path / SAMPLES_NAME).open("rb") as file:
            header = file.readline(1000)
            start = max(len(header), file.seek(0, os.SEEK_END) - _READ)
            file.seek(start)
            lines = file.read(_READ).decode(errors="replace").splitlines()
    except OSError:
        return []
    cut = start > len(header)
    return list(csv.DictReader([header.decode(errors="replace"), *lines[int(cut) :]]))
