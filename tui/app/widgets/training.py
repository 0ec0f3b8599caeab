"""The training in focus: stage, bar, time left with its working, speed in both units, loss."""

from __future__ import annotations

import itertools
import math
from datetime import tzinfo
from functools import lru_cache
from typing import TYPE_CHECKING

from tui.app.graphs import Pen, bar, columns_of, graph, scaled, spark
from tui.app.ink import EMPTY, Drawing, Ink, Line, Span, cell, clipped, joined, line
from tui.app.late import eta_working_text, failure_text
from tui.app.scene import LIVE, Scene
from tui.app.widgets.panel import Panel
from tui.text.cells import cut, width, wrap
from tui.text.names import STAGES, state_or_ending
from tui.text.outside import outside
from tui.text.translate import tr, tr_noop
from tui.text.units import clock, duration, number, percent, rate

if TYPE_CHECKING:
    from tui.facts.job import Job
    from tui.facts.training import Progress, Stage

_STOPS: tuple[Stage, ...] = ("import", "dataset", "tokenize", "load", "prepare", "train", "save", "ended")
"""The stages that a run passes, in their order; the rest are parts of ``train``."""


class TrainingPanel(Panel):
    """How far the run is, how long still, and how fast."""

    about_text = tr_noop(
        "Training: the time left is the sum shown below it. Speed is given per step and in samples and"
        " tokens, because steps of different batch sizes cannot be compared."
    )

    zone: tzinfo | None = None

    def draw(self, scene: Scene, width: int, height: int) -> Drawing:
        """Four lines when short; the stages and a loss curve when there is room."""
        title = tr("Training")
        job = scene.main
        if scene.snapshot is None:
            return Drawing(title, [line(Span(tr("Looking for trainings"), "dim"))])
        if job is None:
            return Drawing(title, _nothing(scene, width))
        title = f"{title}{scene.pen.separator}{job_name(job)}"
        progress = job.progress
        if job.state not in LIVE:
            return Drawing(title, ended_lines(job, scene, width, self.zone))
        if progress is None:
            return Drawing(title, [line(Span(tr("The log has not said anything yet."), "dim"))])
        lines = _running(job, progress, scene, width, self.zone)
        curve_rows = height - len(lines) - 1
        if curve_rows >= 3:
            lines += _curve(job, scene, width, curve_rows)
        return Drawing(title, lines)


def job_name(job: Job) -> str:
    """A short name: the config's file name, else the command."""
    return _short_name(job.config, job.command) or job.id


@lru_cache(maxsize=256)
def _short_name(config: str | None, command: tuple[str, ...]) -> str:
    return outside(config.rsplit("/", 1)[-1] if config else " ".join(command[:3]), 60)


def _nothing(scene: Scene, cells: int) -> list[Line]:
    if scene.readonly:
        text = tr("Nothing is training.")
    else:
        text = tr("Nothing is training. Press n to start a run from a YAML file.")
    return [line(Span(part, "dim")) for part in wrap(text, cells)]


def _label_cells() -> int:
    return max(width(text) for text in (tr("stage"), tr("left"), tr("speed"), tr("loss"))) + 1


def _labelled(label: str, *parts: Line, cells: int) -> Line:
    head = cell(label, _label_cells(), "label")
    return clipped((head, *joined(parts, "  ", cells - width(head.text))), cells)


def _running(job: Job, progress: Progress, scene: Scene, cells: int, zone: tzinfo | None) -> list[Line]:
    now = scene.snapshot.taken_at if scene.snapshot else 0.0
    lines = [_bar_line(job, progress, scene, cells)]
    if progress.eta is not None:
        lines += _eta_lines(progress, cells, now, zone)
    elif progress.stage is not None:
        lines.append(_labelled(tr("left"), line(Span(tr("not known yet"), "dim")), cells=cells))
    lines += [_speed_line(progress, cells), _loss_line(job, progress, scene, cells)]
    if _before_training(progress):
        lines.append(stage_line(progress, scene, cells))
    return lines


def _before_training(progress: Progress) -> bool:
    return progress.step is None or progress.step == 0


def _bar_line(job: Job, progress: Progress, scene: Scene, cells: int) -> Line:
    stage = tr(STAGES[progress.stage]) if progress.stage else state_or_ending(job.state, None)
    done, total, fraction = progress.step, progress.total, progress.fraction
    small = progress.bar
    if small is not None and small.kind != "train" and small.total:
        done, total, fraction = small.done, small.total, small.done / small.total
    words = f" {percent(fraction)}  {number(done, 0)}/{number(total, 0)}"
    head = cell(stage, max(_label_cells(), width(stage) + 1), "strong")
    room = cells - width(head.text) - width(words)
    if total is None:
        return clipped((head, Span(tr("no step count yet"), "dim")), cells)
    return clipped((head, *bar(fraction, max(6, room), scene.pen, "accent"), Span(words, "strong")), cells)


def _eta_lines(progress: Progress, cells: int, now: float, zone: tzinfo | None) -> list[Line]:
    parts = [line(Span(tr("about {time}", time=duration(progress.eta)), "strong"))]
    if progress.eta_low is not None and progress.eta_high is not None:
        between = f"{duration(progress.eta_low)} - {duration(progress.eta_high)}"
        parts.append(line(Span(between, "dim")))
    if progress.eta is not None:
        parts.append(line(Span(tr("ends about {time}", time=clock(now + progress.eta, now, zone)))))
    lines = [_labelled(tr("left"), *parts, cells=cells)]
    if progress.eta_working is not None:
        text = " " * _label_cells() + eta_working_text(progress.eta_working, progress.eta)
        lines.append(line(Span(cut(text, cells), "dim")))
    return lines


def _speed_line(progress: Progress, cells: int) -> Line:
    parts = [line(Span(rate(progress.seconds_per_step)))]
    if progress.samples_per_second is not None:
        parts.append(line(Span(tr("{count} samples/s", count=number(progress.samples_per_second, 2)))))
    if progress.tokens_per_second is not None:
        parts.append(line(Span(tr("{count} tokens/s", count=number(progress.tokens_per_second, 0)))))
    if progress.effective_batch is not None:
        parts.append(line(Span(tr("batch {count}", count=progress.effective_batch), "dim")))
    if progress.epoch is not None:
        parts.append(line(Span(tr("epoch {count}", count=number(progress.epoch, 2)), "dim")))
    return _labelled(tr("speed"), *parts, cells=cells)


def _loss_line(job: Job, progress: Progress, scene: Scene, cells: int) -> Line:
    finite = progress.loss is None or math.isfinite(progress.loss)
    parts = [line(Span(number(progress.loss), "plain" if finite else "bad"))]
    losses = _finite_losses(job, scene)
    if len(losses) > 3:
        cells_of_curve = 12
        parts.append(line(Span(_spark(tuple(losses), cells_of_curve, scene.pen), "heat")))
    if progress.eval_loss is not None:
        parts.append(line(Span(tr("evaluation {loss}", loss=number(progress.eval_loss)))))
    if progress.last_checkpoint is not None:
        parts.append(line(Span(tr("checkpoint {step}", step=progress.last_checkpoint), "dim")))
    return _labelled(tr("loss"), *parts, cells=cells)


def stage_line(progress: Progress, scene: Scene, cells: int) -> Line:
    """The way of a run, with what is done and where it is now."""
    pen = scene.pen
    parts: list[Line] = []
    for stop in _STOPS[:6]:
        name = tr(STAGES[stop])
        if stop == progress.stage:
            parts.append(line(Span(f"{pen.here} {name}", "accent")))
        elif stop in progress.seen:
            parts.append(line(Span(f"{pen.done} {name}", "good")))
        else:
            parts.append(line(Span(f"{pen.separator.strip()} {name}", "dim")))
    drawn = joined(parts, "  ", cells)
    return drawn if drawn else EMPTY


def ended_lines(job: Job, scene: Scene, cells: int, zone: tzinfo | None) -> list[Line]:
    """What became of a run that has ended, and why if it failed."""
    now = scene.snapshot.taken_at if scene.snapshot else 0.0
    ink: Ink = (
        "good" if job.ending == "finished" else "bad" if job.ending in {"failed", "untrained"} else "warn"
    )
    mark = {"good": scene.pen.done, "bad": scene.pen.cross}.get(ink, scene.pen.warning)
    head = line(
        Span(f"{mark} ", ink),
        Span(state_or_ending(job.state, job.ending), ink),
        Span(f"  {clock(job.ended_at, now, zone)}", "dim"),
    )
    lines = [clipped(head, cells)]
    progress = job.progress
    if progress is not None and progress.step is not None:
        text = tr("step {step} of {total}", step=progress.step, total=number(progress.total, 0))
        parts = [line(Span(text))]
        if progress.loss is not None:
            parts.append(line(Span(tr("last loss {loss}", loss=number(progress.loss)))))
        if progress.last_checkpoint is not None:
            parts.append(line(Span(tr("checkpoint {step}", step=progress.last_checkpoint))))
        lines.append(joined(parts, "  ", cells))
    if job.failure is not None:
        lines += [line(Span(part, "strong")) for part in wrap(failure_text(job.failure), cells)]
        lines += [line(Span(part, "dim")) for part in wrap(outside(job.failure.message, 300), cells)[:3]]
    return lines


def _finite_losses(job: Job, scene: Scene) -> list[float]:
    return [value for value in scene.history.loss(job.id) if math.isfinite(value)]


def _curve(job: Job, scene: Scene, cells: int, rows: int) -> list[Line]:
    """The loss of the whole run, from its first to its newest figure."""
    losses = _finite_losses(job, scene)
    if len(losses) < 4:
        return []
    axis = 8
    labels = {0: number(max(losses), 3), rows - 1: number(min(losses), 3)}
    return [
        EMPTY,
        *[
            line(cell(labels.get(row, ""), axis - 1, "dim", "right"), Span(" "), Span(text, "heat"))
            for row, text in enumerate(_curve_rows(tuple(losses), cells - axis, rows, scene.pen))
        ],
    ]


@lru_cache(maxsize=4)
def _spark(losses: tuple[float, ...], cells: int, pen: Pen) -> str:
    return spark(scaled(_resampled(list(losses), columns_of(cells, pen))), cells, pen)


@lru_cache(maxsize=4)
def _curve_rows(losses: tuple[float, ...], cells: int, rows: int, pen: Pen) -> list[str]:
    # Drawn anew only when a loss was logged or the size changed.
    return graph(scaled(_resampled(list(losses), columns_of(cells, pen))), cells, rows, pen, filled=False)


def _resampled(values: list[float], columns: int) -> list[float | None]:
    """The whole run in exactly so many columns: means of its parts, or a line between few figures."""
    count = len(values)
    if count < columns:
        places = [at * (count - 1) / (columns - 1) for at in range(columns)]
        return [_between(values, place) for place in places]
    edges = [at * count // columns for at in range(columns + 1)]
    return [sum(values[a:b]) / (b - a) for a, b in itertools.pairwise(edges)]


def _between(values: list[float], place: float) -> float:
    before = min(int(place), len(values) - 2)
    return values[before] + (values[before + 1] - values[before]) * (place - before)
