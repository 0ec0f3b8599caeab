"""The line that answers at a glance: is it training, how long still, is memory tight."""

from __future__ import annotations

from datetime import tzinfo
from typing import TYPE_CHECKING

from tui.app.ink import Ink, Line, Span, clipped, joined, line
from tui.app.late import finding_text
from tui.app.scene import LIVE, Scene, is_stale, is_tight
from tui.app.widgets.findings import finding_ink, finding_mark, sorted_findings
from tui.app.widgets.jobs import job_mark
from tui.app.widgets.training import job_name
from tui.text.names import STAGES, state_or_ending
from tui.text.outside import outside
from tui.text.translate import tr
from tui.text.units import age, clock, duration, percent, size

if TYPE_CHECKING:
    from tui.facts.job import Job


def verdict(scene: Scene, cells: int, zone: tzinfo | None = None) -> Line:
    """The parts in the order of their weight; what does not fit is left out from the right."""
    if scene.trouble:
        text = tr("No new figures, and it is tried again: {error}", error=outside(scene.trouble))
        return clipped(line(Span(f"{scene.pen.warning} {text}", "bad")), cells, scene.pen.glyphs)
    if scene.snapshot is None:
        return line(Span(tr("Reading this machine"), "dim"))
    parts = [_job_part(scene, zone), *_driver_part(scene), *_memory_parts(scene)]
    gravest = next(iter(sorted_findings(scene.snapshot.findings)), None)
    if gravest is not None and gravest.level in {"danger", "warning"}:
        message = finding_text(gravest)[0]
        parts.append(line(Span(f"{finding_mark(gravest, scene.pen)} {message}", finding_ink(gravest))))
    return joined([part for part in parts if part], "   ", cells)


def _job_part(scene: Scene, zone: tzinfo | None) -> Line:
    trainings = [job for job in scene.live if job.kind == "training"]
    if trainings:
        job = scene.main if scene.main in trainings else trainings[0]
        return _live_part(job, scene, len(trainings)) if job else ()
    last = scene.main
    if last is None or last.state in LIVE:
        return line(Span(tr("Nothing is training"), "strong"))
    now = scene.snapshot.taken_at if scene.snapshot else 0.0
    words = tr("Nothing is training; the last run: {ending}", ending=state_or_ending(last.state, last.ending))
    ink: Ink = "bad" if last.ending in {"failed", "untrained"} else "strong"
    return line(Span(words, ink), Span(f" ({clock(last.ended_at, now, zone)})", "dim"))


def _live_part(job: Job, scene: Scene, count: int) -> Line:
    mark = job_mark(job, scene.pen)
    progress = job.progress
    stage = progress.stage if progress else None
    doing = state_or_ending(job.state, None) if job.state != "running" or stage is None else tr(STAGES[stage])
    spans = [Span(f"{mark.text} ", mark.ink), Span(doing, "strong")]
    if progress is not None and progress.fraction is not None:
        spans.append(Span(f" {percent(progress.fraction)}", "strong"))
    if progress is not None and progress.eta is not None and job.state == "running":
        spans.append(Span("  " + tr("{time} left", time=_about(progress.eta)), "accent"))
    if count > 1:
        spans.append(Span("  " + tr("{name}, 1 of {count}", name=job_name(job), count=count), "dim"))
    return tuple(spans)


def _about(seconds: float) -> str:
    """Minutes are enough here; the training panel has the seconds."""
    if seconds < 100:
        return duration(seconds)
    minutes = round(seconds / 60)
    if minutes < 100:
        return tr("{count} min", count=minutes)
    return tr("{hours} h {minutes} min", hours=minutes // 60, minutes=minutes % 60)


def _driver_part(scene: Scene) -> list[Line]:
    if scene.behind is not None:
        return [line(Span(tr("figures from {age}", age=age(scene.behind)), "warn"))]
    if scene.snapshot is not None and not scene.gpus:
        return [line(Span(tr("no GPU"), "warn"))]
    if any(card.state == "lost" for card in scene.gpus):
        lost = ", ".join(str(card.index) for card in scene.gpus if card.state == "lost")
        return [line(Span(tr("GPU {index} does not answer", index=lost), "bad"))]
    old = [card.age for card in scene.gpus if is_stale(card) and card.age is not None]
    if old:
        return [line(Span(tr("GPU figures from {age}", age=age(max(old))), "warn"))]
    return []


def _memory_parts(scene: Scene) -> list[Line]:
    tight = [card for card in scene.gpus if is_tight(card)]
    if not scene.gpus:
        return []
    if tight:
        least = min(tight, key=lambda card: card.memory.free or 0)
        where = tr("GPU {index}", index=least.index) if len(scene.gpus) > 1 else tr("GPU memory")
        text = tr("{where}: tight, {size} free", where=where, size=size(least.memory.free))
        return [line(Span(f"{scene.pen.warning} {text}", "warn"))]
    known = [card for card in scene.gpus if card.memory.free is not None]
    if not known:
        return [line(Span(tr("GPU memory unknown"), "dim"))]
    fullest = min(known, key=lambda card: card.memory.free or 0)
    free = size(fullest.memory.free)
    if len(scene.gpus) == 1:
        return [line(Span(tr("GPU memory: {size} free", size=free), "good"))]
    return [line(Span(tr("GPU {index}: {size} free", index=fullest.index, size=free), "good"))]
