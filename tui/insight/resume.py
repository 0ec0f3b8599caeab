"""Which checkpoint a continued run would start from, and what it would lose."""

from collections.abc import Iterator, Sequence

from tui.facts.explained import Resume
from tui.facts.finding import Finding
from tui.facts.training import Checkpoint


def resume(checkpoints: Sequence[Checkpoint], step: int | None) -> Resume | None:
    """``None`` where there is no checkpoint. LLaMA-Factory takes the highest number, whole or not."""
    if not checkpoints:
        return None
    usable = max((one.step for one in checkpoints if one.complete), default=None)
    lost = None if step is None else max(0, step - (usable or 0))
    return Resume(max(one.step for one in checkpoints), usable, lost)


def resume_findings(
    subject: str, checkpoints: Sequence[Checkpoint], step: int | None, began_at: float | None
) -> Iterator[Finding]:
    """A half-written checkpoint would be taken; so would one that an older run left in the folder."""
    found = resume(checkpoints, step)
    if found is None:
        return
    if found.taken != found.usable:
        yield Finding("resume_incomplete", "warning", subject, {"taken": found.taken, "usable": found.usable})
    stale = [
        one
        for one in checkpoints
        if step is not None
        and one.step > step
        and began_at is not None
        and one.saved_at is not None
        and one.saved_at < began_at
    ]
    if stale:
        yield Finding(
            "checkpoint_of_older_run", "warning", subject, {"checkpoint": stale[-1].step, "step": step}
        )
