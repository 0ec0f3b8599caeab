"""Findings about jobs: what a person must know of one before trusting or reusing it."""

from collections.abc import Iterable, Iterator

from tui.facts.finding import Action, Finding
from tui.facts.job import Job


def job_findings(jobs: Iterable[Job]) -> tuple[Finding, ...]:
    """Findings about every job of this program, in the order of ``jobs``."""
    return tuple(finding for job in jobs for finding in _of(job))


def _of(job: Job) -> Iterator[Finding]:
    if job.state == "stuck":
        pids = " ".join(str(member.pid) for member in job.stop.left) if job.stop else ""
        yield Finding("job_stuck", "danger", job.id, {"pids": pids})
    elif job.state == "lost":
        yield Finding("job_lost", "warning", job.id)
    elif job.state == "running" and not job.keeper:
        yield Finding("keeper_gone", "warning", job.id, actions=(Action("stop", (job.id,)),))
    elif job.state == "ended":
        yield from _ended(job)


def _ended(job: Job) -> Iterator[Finding]:
    if job.stop is not None and job.stop.unverified and not job.foreign:
        yield Finding("keeper_unverified", "info", job.id)
    if job.ending == "untrained":
        yield Finding("untrained", "warning", job.id)
    elif job.ending == "partial" and job.progress is not None:
        evidence = {"step": job.progress.step, "total": job.progress.total}
        yield Finding("partial", "warning", job.id, evidence)
