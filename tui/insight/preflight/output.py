"""What a run will do with what lies in its output folder already: resume, overwrite, or refuse.

The rules are LLaMA-Factory's (``hparams/parser.py``): without ``overwrite_output_dir`` the checkpoint with
the highest number is continued, complete or not; with final weights and no checkpoint it refuses.
"""

from collections.abc import Iterator

from tui.facts.finding import Action, EvidenceValue, Finding
from tui.facts.job import Job
from tui.facts.training import Checkpoint, OutputFacts
from tui.insight.preflight.facts import PreflightFacts
from tui.insight.preflight.values import trains

_CANNOT_RESUME = frozenset({"full", "freeze"})


def output_findings(facts: PreflightFacts) -> Iterator[Finding]:
    """Findings about the output folder; their subject is its path."""
    if facts.output is None or not trains(facts.config):
        return
    if facts.output_place is not None and not facts.output_place.writable:
        yield Finding("output_unwritable", "danger", facts.output.path, blocks=True)
    yield from _shared(facts, facts.output)
    resume = facts.config.values.get("resume_from_checkpoint")
    if resume and facts.resume is not None:
        yield from _named_checkpoint(facts, facts.resume)
    elif _resumes_nothing(facts):
        yield from _fresh(facts.output)
    elif facts.config.flag("overwrite_output_dir"):
        yield from _overwritten(facts.output)
    elif not resume or resume is True:
        yield from _resumed(facts, facts.output)


def _shared(facts: PreflightFacts, output: OutputFacts) -> Iterator[Finding]:
    for job in facts.machine.jobs:
        if job.output_dir == output.path and _is_live(job):
            yield Finding("output_in_use", "danger", output.path, {"job": job.id}, blocks=True)


def _is_live(job: Job) -> bool:
    return job.state not in ("ended", "lost")


def _resumes_nothing(facts: PreflightFacts) -> bool:
    """These trainings start anew in whatever folder."""
    return facts.config.stage in ("rm", "ppo") and facts.config.text("finetuning_type") in _CANNOT_RESUME


def _fresh(output: OutputFacts) -> Iterator[Finding]:
    if output.checkpoints or output.weights_at is not None:
        yield Finding("output_not_resumed", "warning", output.path)


def _named_checkpoint(facts: PreflightFacts, resume: OutputFacts) -> Iterator[Finding]:
    """``resume_from_checkpoint`` names a folder: it must hold the state of a trainer."""
    if not resume.exists:
        yield Finding("resume_missing", "danger", resume.path, blocks=True)
    elif resume.global_step is None:
        yield Finding("resume_incomplete", "danger", resume.path, blocks=True)
    elif 0 < (facts.config.max_steps or 0) <= resume.global_step:
        yield _nothing_left(facts, resume.path, resume.global_step)
    else:
        yield Finding("will_resume", "info", resume.path, {"step": resume.global_step})


def _overwritten(output: OutputFacts) -> Iterator[Finding]:
    """Old checkpoints stay, and a later run without overwriting takes the highest of them."""
    if output.checkpoints:
        highest = output.checkpoints[-1]
        evidence: dict[str, EvidenceValue] = {"step": highest.step, "count": len(output.checkpoints)}
        yield Finding("stale_checkpoints", "warning", output.path, evidence)
    elif output.weights_at is not None:
        yield Finding("will_overwrite", "info", output.path)


def _resumed(facts: PreflightFacts, output: OutputFacts) -> Iterator[Finding]:
    if not output.checkpoints:
        if output.weights_at is not None:
            action = Action("set", ("overwrite_output_dir=true",))
            yield Finding("output_refused", "danger", output.path, actions=(action,), blocks=True)
        return
    last: Checkpoint = output.checkpoints[-1]
    if not last.complete:
        before = next((point.step for point in reversed(output.checkpoints) if point.complete), None)
        evidence: dict[str, EvidenceValue] = {"step": last.step, "before": before}
        yield Finding("checkpoint_incomplete", "danger", output.path, evidence, blocks=True)
    elif 0 < (facts.config.max_steps or 0) <= last.step:
        yield _nothing_left(facts, output.path, last.step)
    elif output.max_steps is not None and last.step >= output.max_steps:
        yield Finding("output_finished", "warning", output.path, {"step": last.step})
    else:
        yield Finding("will_resume", "info", output.path, {"step": last.step})


def _nothing_left(facts: PreflightFacts, path: str, step: int) -> Finding:
    """It would train nothing (one step more, where the last one did not end an epoch), end with exit code
    0 and write new results over the old ones.
    """
    evidence: dict[str, EvidenceValue] = {"step": step, "max_steps": facts.config.max_steps}
    return Finding("nothing_left_to_train", "danger", path, evidence, blocks=True)
