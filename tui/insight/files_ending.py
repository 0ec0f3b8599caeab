"""How a run ended, from its files alone: no process, no exit status, no record of a keeper."""

from collections.abc import Sequence

from tui.facts.job import Ending
from tui.facts.training import MetricPoint, OutputFacts, RunLog


def ending_of_files(log: RunLog, output: OutputFacts | None) -> Ending:
    """``unknown`` where the files do not prove an end: the run may go on, or was killed without a word."""
    if log.failure is not None:
        return "failed"
    if log.interrupted:
        return "stopped"
    total = log.plan.total_steps
    if log.training_completed:
        return _completed(log, output)
    if log.step is not None or total is not None or output is None:
        return "unknown"
    return _of_output(output)


def _completed(log: RunLog, output: OutputFacts | None) -> Ending:
    """The loop is over, by its last step or by an abort that LLaMA-Factory took for itself."""
    total = log.plan.total_steps
    if log.step is None:
        losses = [point for point in log.metrics if point.loss is not None]
        if not losses:
            return "unknown"
        if _stopped_early(losses, log):
            return "partial"
        return _of_output(output) if output is not None else "unknown"
    if log.step <= log.resume_step:
        return "untrained"
    if total is None or log.step < total:
        return "partial"
    return "unknown" if _evaluates(log) else "finished"


def _stopped_early(losses: Sequence[MetricPoint], log: RunLog) -> bool:
    """Without any step: the epochs of the records end more than a few records before the plan does."""
    epochs = [point.epoch for point in losses if point.epoch is not None]
    plan = log.plan
    if len(epochs) < 2 or not plan.examples or not plan.effective_batch or not plan.total_steps:
        return False
    end = plan.total_steps * plan.effective_batch / plan.examples
    return epochs[-1] + 3 * max(0.01, epochs[-1] - epochs[-2]) < end


def _evaluates(log: RunLog) -> bool:
    """Whether the evaluation after the last step had begun and not come to its end."""
    bar = log.bar
    return log.stage == "final_eval" and bar is not None and bar.total is not None and bar.done < bar.total


def _of_output(output: OutputFacts) -> Ending:
    """The final state file is written once the steps are over."""
    if output.global_step is None or not output.max_steps or output.all_results_at is None:
        return "unknown"
    return "finished" if output.global_step >= output.max_steps else "partial"
