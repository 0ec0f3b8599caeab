"""Trouble of a run that its log tells of."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median

from tui.facts.finding import Finding, Level
from tui.facts.training import RunLog, StepClock

OVERFLOW_SHARE = 0.05
DROP_FACTOR = 1.5
_LEAST_INTERVALS = 30
_NEWEST = 8


def log_findings(subject: str, log: RunLog) -> Iterator[Finding]:
    """Findings from counted lines and from the pace of the steps."""
    events = log.told.events
    if count := events.get("allocation_retry", 0):
        yield Finding("memory_pressure", "advice", subject, {"count": count})
    if count := events.get("fp16_overflow", 0):
        steps = max(1, (log.step or 0) - log.resume_step)
        level: Level = "warning" if count > max(10, OVERFLOW_SHARE * steps) else "info"
        yield Finding("fp16_overflow", level, subject, {"count": count, "steps": steps})
    if count := events.get("dropped_sample", 0):
        yield Finding("samples_dropped", "warning", subject, {"count": count})
    if events.get("over_long_sample", 0):
        yield Finding("samples_over_long", "advice", subject)
    yield from _slower(subject, log)


def _slower(subject: str, log: RunLog) -> Iterator[Finding]:
    """The newest steps take much longer than the earlier ones did."""
    times = _step_times(log.clocks)
    if len(times) < _LEAST_INTERVALS:
        return
    before, lately = median(times[:-_NEWEST]), median(times[-_NEWEST:])
    if before > 0 and lately > DROP_FACTOR * before and min(times[-_NEWEST:]) > before:
        yield Finding("throughput_drop", "warning", subject, {"before": before, "now": lately})


def _step_times(clocks: Sequence[StepClock]) -> list[float]:
    """Seconds per step over blocks of at least four seconds, without evaluations and saves between."""
    times: list[float] = []
    start: StepClock | None = None
    for before, after in pairwise(clocks):
        if after.marks or after.at < before.at:
            start = None
            continue
        start = start or before
        if after.at - start.at >= 4.0:
            times.append((after.at - start.at) / max(1, after.step - start.step))
            start = None
    return times
