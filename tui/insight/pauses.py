"""Evaluations and saves between steps: how long one takes, and how many are still to come."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from tui.facts.training import OutputFacts, Pause, Plan, RunLog, Schedule
from tui.insight.speed import Speed, pause_intervals

_RECENT = 5
_SAVE_LIMIT = 600.0
"""Seconds: a longer save than this, with nothing to compare it to, is a clock in another zone."""


@dataclass(frozen=True, slots=True)
class Due:
    """Evaluations and saves after a step, up to and with the last step."""

    evals: int
    saves: int
    final_eval: bool
    final_predict: bool


def eval_seconds(log: RunLog, speed: Speed | None) -> float | None:
    """Seconds of one evaluation: as reported, else from the one under way, else from the intervals
    that contain one.
    """
    reported = [pause.seconds for pause in log.evals if pause.seconds is not None]
    if reported:
        return median(reported[-_RECENT:])
    bar = log.bar
    if bar is not None and bar.kind == "eval" and bar.total and bar.done and bar.elapsed:
        return bar.elapsed * bar.total / bar.done
    return _residual(log, speed, "eval", without="save")


def save_seconds(log: RunLog, output: OutputFacts | None, speed: Speed | None) -> float | None:
    """Seconds of one checkpoint: from the log's line to the file that is written last, else from the
    intervals that contain a save.
    """
    intervals = [seconds for _, seconds in pause_intervals(log, "save")]
    longest = max(intervals, default=_SAVE_LIMIT)
    saved = {one.step: one.saved_at for one in output.checkpoints} if output is not None else {}
    measured = [
        took
        for pause in log.saves
        if pause.began is not None
        and (ended := saved.get(pause.step or -1)) is not None
        and 0 <= (took := ended - pause.began) <= longest + 2
    ]
    if measured:
        return median(measured[-_RECENT:])
    return _residual(log, speed, "save")


def _residual(log: RunLog, speed: Speed | None, mark: str, without: str = "") -> float | None:
    """What is left of the marked intervals when their steps, and evaluations with a known time, go."""
    if speed is None:
        return None
    known = {pause.step: pause.seconds or 0.0 for pause in log.evals}
    left = [
        seconds - speed.seconds * (after.step - before.step) - _known_evals(known, before.step, after.step)
        for before, after in pairwise(log.clocks)
        if mark in after.marks and without not in after.marks and not {"resume", "gap"} & set(after.marks)
        for seconds in (after.at - before.at,)
    ]
    return max(0.0, median(left[-_RECENT:])) if left else None


def _known_evals(known: dict[int | None, float], first: int, last: int) -> float:
    return sum(seconds for step, seconds in known.items() if step is not None and first <= step < last)


def due(log: RunLog, schedule: Schedule | None, step: int, total: int) -> Due:
    """What the schedule still asks for; without one, what the log shows of it."""
    if schedule is None:
        schedule = _observed(log)
    evals = _by_steps(schedule.eval_steps, step, total)
    saves = _by_steps(schedule.save_steps, step, total)
    if schedule.save_steps is not None and step < total and total % _every(schedule.save_steps, total):
        saves += 1  # strategy "steps" also saves at the last step
    if epoch := _steps_per_epoch(log, total):
        ends = math.ceil(total / epoch) - step // epoch if step < total else 0
        evals += ends if schedule.eval_epochs else 0
        saves += ends if schedule.save_epochs else 0
    return Due(evals, saves, schedule.final_eval, schedule.final_predict)


def next_eval(log: RunLog, schedule: Schedule | None, step: int, total: int) -> int | None:
    """The step of the next evaluation between steps, ``None`` where none is known to come."""
    known = schedule or _observed(log)
    return _next(known.eval_steps, known.eval_epochs, log, step, total)


def next_save(log: RunLog, schedule: Schedule | None, step: int, total: int) -> int | None:
    """The step of the next checkpoint; strategy "steps" also saves at the last step."""
    known = schedule or _observed(log)
    found = _next(known.save_steps, known.save_epochs, log, step, total)
    return total if found is None and known.save_steps is not None and step < total else found


def _next(every: float | None, epochs: bool, log: RunLog, step: int, total: int) -> int | None:
    periods = [_every(every, total)] if every is not None else []
    if epochs and (epoch := _steps_per_epoch(log, total)):
        periods.append(epoch)
    coming = [(step // period + 1) * period for period in periods]
    return min((one for one in coming if one <= total), default=None)


def _steps_per_epoch(log: RunLog, total: int) -> int | None:
    if log.plan.steps_per_epoch is not None:
        return log.plan.steps_per_epoch
    return math.ceil(total / log.plan.epochs) if log.plan.epochs else None


def steps_per_epoch(plan: Plan) -> int | None:
    """The updates of one epoch: what is left over at its end is an update too."""
    if plan.steps_per_epoch is not None:
        return plan.steps_per_epoch
    if not plan.examples or not plan.effective_batch:
        return None
    return max(1, math.ceil(plan.examples / plan.effective_batch))


def step_of_eval(log: RunLog, schedule: Schedule | None, step: int, total: int) -> int:
    """The step that the evaluation under way belongs to: the bar, drawn seldom, may show an older one."""
    every = (schedule or _observed(log)).eval_steps
    if every is None:
        return step
    steps = _every(every, total)
    return min(total, -(-step // steps) * steps)


def is_due_at(every: float | None, step: int, total: int) -> bool:
    """Whether something that comes every so many steps comes at this one."""
    return every is not None and step > 0 and (step == total or step % _every(every, total) == 0)


def _by_steps(every: float | None, step: int, total: int) -> int:
    if every is None:
        return 0
    steps = _every(every, total)
    return total // steps - step // steps


def _every(steps: float, total: int) -> int:
    # As the Trainer does: below 1 it is a share of all steps.
    return max(1, math.ceil(total * steps) if steps < 1 else int(steps))


def _observed(log: RunLog) -> Schedule:
    evals = _period(log.evals, log)
    return Schedule(
        eval_steps=evals, save_steps=_period(log.saves, log), final_eval=evals is not None and evals > 0
    )


def _period(pauses: Sequence[Pause], log: RunLog) -> float | None:
    total = log.plan.total_steps
    steps = sorted({pause.step for pause in pauses if pause.step and pause.step != total})
    if len(steps) > 1:
        return float(min(after - before for before, after in pairwise(steps)))
    return float(steps[0]) if steps and not log.resume_step else None
