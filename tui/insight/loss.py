"""What the losses of a run say about its training.

The bounds follow common teaching for fine-tuning on small data: a loss that has stopped falling well before
the end asks for fewer epochs, one near zero or an evaluation loss that rises means that the model learns its
samples by heart, and one that is no number never recovers.
"""

import math
from collections.abc import Iterator, Sequence
from statistics import median

from tui.facts.finding import Finding
from tui.facts.training import MetricPoint

RECENT_POINTS = 20
SPIKE_FACTOR = 2.0
SPIKE_DEVIATIONS = 8.0
NEAR_ZERO = 0.1
FLAT_SHARE = 0.02
"""Flat: over the newer part of the run it fell by less than this share of all that it has fallen."""
FLAT_POINTS = 20
RISE = 0.02
"""Rising: both newest evaluations are above the best by this share, and the last is the worse of them."""


def loss_findings(subject: str, points: Sequence[MetricPoint], fraction: float | None) -> Iterator[Finding]:
    """Findings about the losses; ``fraction`` of the steps is done, ``None`` where unknown."""
    losses = [(point.step, point.loss, point) for point in points if point.loss is not None]
    broken = _first_broken(losses)
    if broken is not None:
        yield Finding("loss_not_finite", "danger", subject, {"step": broken.step, "loss": str(broken.loss)})
        return
    values = [loss for _step, loss, _point in losses]
    if (spike := _spike(values)) is not None:
        step = losses[-1][0]
        yield Finding("loss_spike", "warning", subject, {"step": step, "loss": values[-1], "usual": spike})
    if len(values) >= 5 and median(values[-5:]) < NEAR_ZERO:
        yield Finding("loss_near_zero", "warning", subject, {"loss": median(values[-5:])})
    elif fraction is not None and fraction < 0.9 and _is_flat(values):
        evidence = {"loss": median(values[-5:]), "fraction": fraction}
        yield Finding("loss_flat", "advice", subject, evidence)
    yield from _rising(subject, points)


def _first_broken(losses: Sequence[tuple[int | None, float, MetricPoint]]) -> MetricPoint | None:
    """The first of the broken records at the end of the run; one that was overcome is no finding.

    In half precision a loss of exactly 0 with a gradient that is no number is a broken model as well. A
    gradient alone that overflows is what the scaler of fp16 is for.
    """
    first = None
    for _step, loss, point in reversed(losses):
        gradient = point.grad_norm
        is_broken = not math.isfinite(loss) or (loss == 0.0 and gradient is not None and math.isnan(gradient))
        if not is_broken:
            break
        first = point
    return first


def _spike(values: Sequence[float]) -> float | None:
    """The usual loss, where the newest stands out from it."""
    before = [value for value in values[-RECENT_POINTS - 1 : -1] if math.isfinite(value)]
    if len(before) < 8:
        return None
    usual = median(before)
    deviation = median(abs(value - usual) for value in before)
    limit = max(usual * SPIKE_FACTOR, usual + SPIKE_DEVIATIONS * deviation)
    return usual if values[-1] > limit and values[-1] > 0.5 else None


def _is_flat(values: Sequence[float]) -> bool:
    finite = [value for value in values if math.isfinite(value)]
    newer = finite[len(finite) * 3 // 5 :]
    if len(newer) < FLAT_POINTS:
        return False
    fallen = median(finite[:5]) - median(newer[-5:])
    half = len(newer) // 2
    lately = median(newer[:half]) - median(newer[half:])
    return fallen > 0.1 * abs(median(finite[:5])) and abs(lately) < FLAT_SHARE * fallen


def _rising(subject: str, points: Sequence[MetricPoint]) -> Iterator[Finding]:
    evals = [
        (point.step, point.eval_loss)
        for point in points
        if point.eval_loss is not None and math.isfinite(point.eval_loss)
    ]
    if len(evals) < 3:
        return
    best_step, best = min(evals, key=lambda one: one[1])
    (_, before), (_, last) = evals[-2:]
    if last > before and before > best * (1 + RISE):
        yield Finding(
            "eval_loss_rising", "warning", subject, {"best": best, "best_step": best_step, "last": last}
        )
