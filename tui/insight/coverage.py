"""What a run, or a trial of it, has gone through already."""

from collections.abc import Sequence

from tui.facts.training import Checkpoint, Coverage, RunLog, Schedule
from tui.insight.pauses import next_eval, next_save, steps_per_epoch


def coverage(log: RunLog, schedule: Schedule | None, checkpoints: Sequence[Checkpoint] = ()) -> Coverage:
    """Judged from the log and from the checkpoints of its steps; a step is only ever done after its first
    batch and its update.
    """
    step, total = log.step or 0, log.plan.total_steps
    trained = step > log.resume_step
    loaded = any(stage in log.seen for stage in ("prepare", "train", "eval", "final_eval"))
    evaluated = bool(log.evals)
    saved = bool(log.saves) or any(one.complete and log.resume_step < one.step <= step for one in checkpoints)
    return Coverage(
        load=loaded,
        first_batch=trained,
        longest_batch=_share_of_epoch(log) if trained else None,
        first_update=trained,
        evaluation=evaluated,
        save=saved,
        first_eval=None if evaluated or total is None else next_eval(log, schedule, step, total),
        first_save=None if saved or total is None else next_save(log, schedule, step, total),
    )


def _share_of_epoch(log: RunLog) -> float | None:
    """Batches are drawn without repetition within an epoch."""
    per_epoch = steps_per_epoch(log.plan)
    return min(1.0, ((log.step or 0) - log.resume_step) / per_epoch) if per_epoch is not None else None
