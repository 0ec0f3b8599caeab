"""The jobs: what runs, what it came to, and what others have started."""

from __future__ import annotations

from datetime import tzinfo
from typing import TYPE_CHECKING

from tui.app.graphs import Pen
from tui.app.ink import Drawing, Ink, Line, Span, cell, clipped, line
from tui.app.scene import LIVE, Scene
from tui.app.widgets.panel import Panel
from tui.app.widgets.training import job_name
from tui.text.cells import fit, width
from tui.text.names import state_or_ending
from tui.text.translate import tr, tr_noop
from tui.text.units import clock, percent

if TYPE_CHECKING:
    from tui.facts.job import Job


class JobsPanel(Panel):
    """The list of jobs; the chosen one is what the training panel, the log and a stop are about."""

    about_text = tr_noop(
        "Jobs: what llamaherd started, and runs started elsewhere. The row of the cursor is the job in focus:"
        " training panel, log and stop are about it."
    )
    CURSOR = True
    zone: tzinfo | None = None

    def draw(self, scene: Scene, width: int, height: int) -> Drawing:
        """One line per job."""
        title = tr("Jobs")
        if scene.snapshot is None:
            return Drawing(title, [line(Span(tr("Looking for jobs"), "dim"))])
        if not scene.jobs:
            return Drawing(title, [line(Span(tr("No job yet."), "dim"))])
        now = scene.snapshot.taken_at
        states = max(_state_cells(job) for job in scene.jobs)
        lines = [
            job_line(job, scene.pen, width, min(states, width // 3), now, self.zone) for job in scene.jobs
        ]
        return Drawing(title, lines, "", [job.id for job in scene.jobs])


def _state_cells(job: Job) -> int:
    return width(state_or_ending(job.state, job.ending))


def job_mark(job: Job, pen: Pen) -> Span:
    """A mark and its ink; the word beside it says the same."""
    if job.state in {"stuck", "lost"}:
        return Span(pen.warning, "bad")
    if job.state in LIVE:
        return Span(pen.here, "warn" if job.state == "stopping" else "accent")
    if job.ending == "finished":
        return Span(pen.done, "good")
    if job.ending in {"failed", "untrained"}:
        return Span(pen.cross, "bad")
    return Span(pen.separator.strip(), "dim")


def job_line(job: Job, pen: Pen, cells: int, states: int, now: float, zone: tzinfo | None) -> Line:
    """Mark, state, name, and how far or since when."""
    mark = job_mark(job, pen)
    live = job.state in LIVE
    ink: Ink = mark.ink if mark.ink != "accent" else "plain"
    tail = "  " + _tail(job, now, zone)
    name_cells = max(8, cells - 2 - states - 2 - width(tail))
    return clipped(
        (
            Span(mark.text + " ", mark.ink),
            cell(state_or_ending(job.state, job.ending), states + 2, ink, glyphs=pen.glyphs),
            Span(fit(_name(job), name_cells, glyphs=pen.glyphs), "strong" if live else "plain"),
            Span(tail, "dim"),
        ),
        cells,
    )


def _name(job: Job) -> str:
    name = job_name(job)
    if job.ports:
        name += " " + tr("port {ports}", ports=", ".join(map(str, job.ports)))
    return name if job.folder else tr("{name} (started elsewhere)", name=name)


def _tail(job: Job, now: float, zone: tzinfo | None) -> str:
    if job.state in LIVE:
        since = _minutes(now - job.started_at) if job.started_at is not None else "-"
        if job.progress is not None and job.progress.fraction is not None:
            return f"{percent(job.progress.fraction)}  {since}"
        return since
    return clock(job.ended_at, now, zone)


def _minutes(seconds: float) -> str:
    """Without seconds: a clock of them would be sent at every tick and says nothing more."""
    hours, minutes = divmod(max(0, int(seconds)) // 60, 60)
    if hours:
        return tr("{hours} h {minutes} min", hours=hours, minutes=minutes)
    return tr("{count} min", count=minutes)
