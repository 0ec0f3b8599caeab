"""Made-up runs for the pure functions over a RunLog."""

from collections.abc import Sequence
from dataclasses import replace

from tui.facts.training import Plan, RunLog, StepClock, StepMark


def clocks(
    seconds: Sequence[float], *, first: int = 0, marks: dict[int, tuple[StepMark, ...]] | None = None
) -> tuple[StepClock, ...]:
    """One clock per step: ``seconds`` between them, seen with a clock of whole seconds."""
    at = 0.0
    found = [StepClock(first, 0.0)]
    for index, took in enumerate(seconds, first + 1):
        at += took
        found.append(StepClock(index, float(int(at)), (marks or {}).get(index, ())))
    return tuple(found)


def run_log(
    seconds: Sequence[float],
    *,
    total: int,
    first: int = 0,
    marks: dict[int, tuple[StepMark, ...]] | None = None,
    **more: object,
) -> RunLog:
    """A run in its training stage, after ``len(seconds)`` steps."""
    run = RunLog(
        stage="train",
        seen=("start", "train"),
        plan=Plan(total_steps=total, effective_batch=32, epochs=1),
        step=first + len(seconds),
        resume_step=first,
        clocks=clocks(seconds, first=first, marks=marks),
        source="bar",
        changed_at=100.0,
    )
    return replace(run, **more)  # type: ignore[arg-type]  # fields of RunLog
