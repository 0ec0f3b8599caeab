"""Whether the checkpoints to come fit on the disk."""

from tui.facts.finding import Finding, Level
from tui.facts.training import OutputFacts, RunLog, Schedule
from tui.insight.pauses import due, next_save


def disk_forecast(
    subject: str,
    log: RunLog,
    output: OutputFacts,
    schedule: Schedule | None,
    free: int,
    save_limit: int | None = None,
) -> Finding | None:
    """``free`` bytes where the run writes; ``save_limit`` is ``save_total_limit``.

    With a limit an old checkpoint goes after the new one is written, so one more than the limit must fit.
    """
    step, total = log.step, log.plan.total_steps
    sizes = [one.size for one in output.checkpoints if one.complete and one.size]
    if step is None or not total or not sizes:
        return None
    size = sizes[-1]
    saves = due(log, schedule, step, total).saves
    growth = saves
    if save_limit is not None and save_limit > 0:
        growth = min(saves, max(0, save_limit - len(output.checkpoints)) + 1)
    if growth == 0 or growth * size <= free:
        return None
    first = next_save(log, schedule, step, total) or total
    fitting = free // size
    period = max(1, (total - first) // max(1, saves - 1)) if saves > 1 else 0
    level: Level = "danger" if fitting == 0 else "warning"
    evidence = {"saves": saves, "size": size, "free": free, "step": min(total, first + fitting * period)}
    return Finding("disk_will_fill", level, subject, evidence)
