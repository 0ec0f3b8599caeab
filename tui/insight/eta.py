"""How far a run is and when its process will end, from what its files say.

Rules: steps, evaluations and saves are timed apart; a resumed run counts from where it resumed; the
final save and evaluation after 100 % belong to the run; before the first evaluation has been timed the
figure is a lower bound.
"""

import math
from dataclasses import dataclass, fields, replace
from itertools import pairwise

from tui.facts.training import (
    Checkpoint,
    EtaWorking,
    MetricPoint,
    OutputFacts,
    Progress,
    RunLog,
    Schedule,
    Stage,
)
from tui.facts.unknown import UnknownReason
from tui.insight.coverage import coverage
from tui.insight.pauses import (
    Due,
    due,
    eval_seconds,
    is_due_at,
    save_seconds,
    step_of_eval,
    steps_per_epoch,
)
from tui.insight.speed import Speed, step_speed

_TEN_PERCENT = 1.2816
"""Standard deviations between the middle and the 10th or 90th percentile."""

_EXIT_SHARE, _SHORT_EXIT, _LONG_EXIT = 0.35, 1.5, 4.0
"""Measured on recorded runs: 1.4 to 5.8 s after imports of 5 to 58 s, the longest ones on a busy machine."""
_RANKS_EXIT = 2
"""Ranks, agent and launcher leave one after another: 4 and 12 s were seen."""
USUAL_EXIT = 3.0
"""Seconds, where the time of the imports is not known."""
_LONGEST_IMPORT = 300.0
_SIGNS = 50


@dataclass(frozen=True, slots=True)
class _Times:
    """Seconds of one step, evaluation and save, as far as they are known, and of the process' exit."""

    step: Speed | None
    eval: float | None
    save: float | None
    exit: float


def progress(
    log: RunLog,
    output: OutputFacts | None = None,
    schedule: Schedule | None = None,
    now: float | None = None,
    *,
    ended: bool = False,
    started_at: float | None = None,
) -> Progress:
    """Everything that is shown of how far a run is.

    ``now`` is on the clock of ``log.changed_at``; ``ended``: its process is gone, so there is no ETA.
    Without a ``schedule`` evaluations and saves to come are inferred from those seen. ``started_at``: when
    the process began, epoch seconds.
    """
    stage: Stage = "ended" if ended else _stage(log, output)
    step, total, source = log.step, log.plan.total_steps, log.source
    if step is None and ended and output is not None and _wrote_final_state(log, output):
        step, total, source = output.global_step, output.max_steps, "trainer_state"
    age = max(0.0, now - log.changed_at) if now is not None and log.changed_at is not None else None
    times = _times(log, output, started_at)
    seconds = times.step.seconds if times.step is not None else None
    working = None if ended else _working(log, schedule, times, stage, age or 0.0)
    low, high = _range(working, times.step)
    result = Progress(
        stage=stage,
        step=step,
        total=total,
        fraction=min(1.0, step / total) if step is not None and total else None,
        eta=_sum(working) if working is not None else None,
        eta_low=low,
        eta_high=high,
        eta_working=working,
        seconds_per_step=seconds,
        samples_per_second=_per_second(log.plan.effective_batch, seconds),
        tokens_per_second=_per_second(_tokens_per_step(log.metrics), seconds),
        effective_batch=log.plan.effective_batch,
        epoch=_last(log.metrics, "epoch"),
        loss=_last(log.metrics, "loss"),
        eval_loss=_last(log.metrics, "eval_loss"),
        last_checkpoint=_last_checkpoint(log, output),
        seen=(*log.seen, "ended") if ended else log.seen,
        source=source,
        age=age,
        bar=None if ended else log.bar,
        sign_interval=None if ended else _sign_interval(log),
        full_total=_full_total(log, schedule),
        coverage=coverage(log, schedule, output.checkpoints if output is not None else ()),
    )
    if result.tokens_per_second is not None:
        result = replace(result, tokens_padded=schedule is None or schedule.counts_padding)
    if result.full_total is not None and seconds is not None:
        result = replace(result, full_seconds=result.full_total * seconds)
    return replace(result, unknown=_unknown(result, ended=ended))


def _wrote_final_state(log: RunLog, output: OutputFacts) -> bool:
    """Whether the state in the folder is of this run, and not what an older one left there."""
    if output.global_step is None or ("train" not in log.seen and (log.failure or log.interrupted)):
        return False
    if log.began_at is None or output.trainer_state_at is None:
        return True
    return output.trainer_state_at >= log.began_at - 1


def _stage(log: RunLog, output: OutputFacts | None) -> Stage:
    # The log does not say when a save is over; the checkpoint's last file does.
    if log.stage == "save" and not log.training_completed and output is not None and log.saves:
        saved = log.saves[-1]
        if any(one.complete and one.step == saved.step and _is_of(one, log) for one in output.checkpoints):
            return "train"
    return log.stage


def _times(log: RunLog, output: OutputFacts | None, started_at: float | None) -> _Times:
    speed = step_speed(log)
    leaving = _exit_seconds(log.began_at, started_at) * (_RANKS_EXIT if _is_distributed(log) else 1)
    return _Times(speed, eval_seconds(log, speed), save_seconds(log, output, speed), leaving)


def _is_distributed(log: RunLog) -> bool:
    return (log.told.world_size or 1) > 1


def _exit_seconds(began_at: float | None, started_at: float | None) -> float:
    """How long the interpreter takes to leave after the last line: what it has imported is let go of, so it
    goes with the time that the imports took on this machine, now.
    """
    if began_at is None or started_at is None or not 0 < began_at - started_at < _LONGEST_IMPORT:
        return USUAL_EXIT
    return min(max(_EXIT_SHARE * (began_at - started_at), _SHORT_EXIT), _LONG_EXIT)


def _working(
    log: RunLog, schedule: Schedule | None, times: _Times, stage: Stage, age: float
) -> EtaWorking | None:
    """``None`` while the run has not come to a step whose time is known."""
    step, total = log.step, log.plan.total_steps
    if step is None or total is None:
        return None
    if stage == "eval":
        step = step_of_eval(log, schedule, step, total)
    left = max(0, total - step)
    if times.step is None and left:
        return None
    to_come = due(log, schedule, step, total)
    per_step = times.step.seconds if times.step is not None else 0.0
    if log.training_completed:
        to_come = replace(to_come, evals=0, saves=0)
        left = 0
    current, more_saves = _under_way(log, schedule, times, stage, step, age)
    evals_wait = to_come.evals > 0 or to_come.final_eval or stage in {"eval", "final_eval"}
    return EtaWorking(
        steps_left=left,
        seconds_per_step=per_step,
        evals_left=to_come.evals,
        seconds_per_eval=times.eval,
        saves_left=to_come.saves + more_saves,
        seconds_per_save=times.save,
        tail=_tail(to_come, times, stage, log),
        at_least=(evals_wait and times.eval is None) or to_come.final_predict,
        current=current,
    )


def _under_way(
    log: RunLog, schedule: Schedule | None, times: _Times, stage: Stage, step: int, age: float
) -> tuple[float, int]:
    """What is left of what goes on now, and the saves that follow it at the same step."""
    total = log.plan.total_steps or 0
    if stage in {"eval", "final_eval"}:
        bar = log.bar
        spent = (bar.elapsed or 0.0) if bar is not None and bar.kind == "eval" else 0.0
        saves = stage == "eval" and schedule is not None and is_due_at(schedule.save_steps, step, total)
        return max(0.0, (times.eval or 0.0) - spent - age), int(saves)
    if stage == "save":
        return max(0.0, (times.save or 0.0) - age), 0
    if stage == "train" and step < total and times.step is not None:
        return -min(age, times.step.seconds), 0
    return 0.0, 0


def _tail(to_come: Due, times: _Times, stage: Stage, log: RunLog) -> float:
    if stage == "final_eval":
        return times.exit
    final_save = 0.0 if log.training_completed else times.save or 0.0
    return final_save + ((times.eval or 0.0) if to_come.final_eval else 0.0) + times.exit


def _sum(working: EtaWorking) -> float:
    return max(
        0.0,
        working.steps_left * working.seconds_per_step
        + working.evals_left * (working.seconds_per_eval or 0.0)
        + working.saves_left * (working.seconds_per_save or 0.0)
        + working.current
        + working.tail,
    )


def _range(working: EtaWorking | None, speed: Speed | None) -> tuple[float | None, float | None]:
    """The 10th and 90th percentile: the steps to come vary, and the mean of those seen is not exact."""
    if working is None or speed is None or speed.deviation is None or speed.steps == 0:
        return None, None
    left = working.steps_left
    width = _TEN_PERCENT * speed.deviation * math.sqrt(left + left * left / speed.steps)
    middle = _sum(working)
    return max(0.0, middle - width), None if working.at_least else middle + width


def _full_total(log: RunLog, schedule: Schedule | None) -> int | None:
    """The steps that the epochs of the plan ask for, where the run stops before them."""
    total = log.plan.total_steps
    if schedule is None or schedule.max_steps is None or schedule.epochs is None or total is None:
        return None
    per_epoch = steps_per_epoch(log.plan)
    if per_epoch is None or total != schedule.max_steps:
        return None
    full = math.ceil(schedule.epochs * per_epoch)
    return full if full > total else None


def _sign_interval(log: RunLog) -> float | None:
    """The clock of a log that is read late has whole seconds, so a mean; without evaluations and saves."""
    recent = [
        after.at - before.at
        for before, after in pairwise(log.clocks[-_SIGNS:])
        if not after.marks and after.at >= before.at
    ]
    return sum(recent) / len(recent) if recent else None


def _per_second(amount: float | None, seconds: float | None) -> float | None:
    return amount / seconds if amount is not None and seconds else None


def _tokens_per_step(metrics: tuple[MetricPoint, ...]) -> float | None:
    counted = [
        (point.step, point.tokens_seen)
        for point in metrics[-20:]
        if point.step is not None and point.tokens_seen is not None
    ]
    grown = [
        (steps, tokens)
        for (step, seen), (next_step, next_seen) in pairwise(counted)
        if (steps := next_step - step) > 0 and (tokens := next_seen - seen) >= 0
    ]
    steps = sum(steps for steps, _ in grown)
    return sum(tokens for _, tokens in grown) / steps if steps else None


def _last(metrics: tuple[MetricPoint, ...], name: str) -> float | None:
    values: list[float | None] = [getattr(point, name) for point in reversed(metrics)]
    return next((value for value in values if value is not None), None)


def _last_checkpoint(log: RunLog, output: OutputFacts | None) -> int | None:
    """The newest complete checkpoint of this run; an output folder may hold an older run's as well."""
    if output is None:
        return None
    steps = [one.step for one in output.checkpoints if one.complete and _is_of(one, log)]
    return max(steps, default=None)


def _is_of(checkpoint: Checkpoint, log: RunLog) -> bool:
    if log.resume_step and checkpoint.step == log.resume_step:
        return True
    if log.began_at is None or checkpoint.saved_at is None:
        return any(pause.step == checkpoint.step for pause in log.saves)
    return checkpoint.saved_at >= log.began_at - 1


def _unknown(result: Progress, *, ended: bool) -> dict[str, UnknownReason]:
    reason: UnknownReason = "not_reported" if ended else "not_yet"
    # No bar is no unknown: most of the time none is drawn.
    names = (one.name for one in fields(result) if one.name != "bar")
    return {name: reason for name in names if getattr(result, name) is None}
