"""A stop as text: the question before it, each step, the proof, and what could not be ended."""

from collections.abc import Mapping

from tui.facts.job import Behind, BehindCode, Job, LadderStep, Member, RequestKind, StepName, StopReport
from tui.text import units
from tui.text.layout import Page, labelled
from tui.text.names import ROLES, state_or_ending
from tui.text.outside import outside
from tui.text.translate import tr, tr_noop, tr_plural

_SHOWN_PIDS = 8

STEPS: dict[StepName, str] = {
    "wait_save": tr_noop("Waited for the checkpoint that was being written"),
    "cooperate": tr_noop("Asked the trainer to finish its step and save"),
    "interrupt": tr_noop("Interrupted the trainer (SIGINT; torchrun: SIGTERM)"),
    "terminate": tr_noop("Asked every process to end (SIGTERM)"),
    "kill": tr_noop("Ended every process by force (SIGKILL)"),
}

STATE_LETTERS = {
    "R": tr_noop("running"),
    "S": tr_noop("sleeping"),
    "D": tr_noop("waits in the kernel, deaf to signals"),
    "T": tr_noop("suspended"),
    "t": tr_noop("held by a debugger"),
    "Z": tr_noop("zombie, its parent does not collect it"),
    "I": tr_noop("idle"),
}


NOTES: Mapping[str, str] = {
    "forced": tr_noop("a forced stop was asked for"),
    "still_saving": tr_noop("it was still being written, so nothing more was waited for"),
    "nobody_to_interrupt": tr_noop("no process of it takes an interrupt"),
}
"""What a step's note may say; any other text is shown as it is, made harmless."""

BEHIND: dict[BehindCode, str] = {
    "shutdown": tr_noop("When it ends, PID {pid} switches the machine off: {command}"),
    "loop": tr_noop("It runs in a loop of PID {pid}, which may start the next one at once: {command}"),
    "next_run": tr_noop("When it ends, PID {pid} goes on to another run: {command}"),
    "restarter": tr_noop("PID {pid} starts it again when it ends: {command}"),
    "program": tr_noop("Another program started it and may start the next one, PID {pid}: {command}"),
    "prompt": tr_noop(
        "It was started at a prompt, PID {pid}: what was typed behind it on the same line, perhaps a"
        " shutdown, runs once it ends and cannot be seen from here."
    ),
}
"""What goes on behind a run."""

QUESTIONS: dict[RequestKind, str] = {
    "stop": tr_noop("Stop {job}?"),
    "keep_weights": tr_noop("Let {job} finish its step and save its weights, then stop it?"),
    "force": tr_noop("End every process of {job} at once, without letting it finish anything?"),
    "cancel": tr_noop("Take back the stop of {job}?"),
}


def stop_question(job: Job, steps_lost: int | None, kind: RequestKind) -> str:
    """What a person is asked before a stop: what happens, and what is lost.

    Args:
        job: The job to stop.
        steps_lost: Steps since the last complete checkpoint; ``None`` if unknown.
        kind: How it is to be stopped.
    """
    question = tr(QUESTIONS[kind], job=outside(job.id))
    if kind == "cancel":
        return question
    parts = (question, keeping_text() if kind == "keep_weights" else "", _loss(job, steps_lost))
    return " ".join(filter(None, parts))


def keeping_text() -> str:
    """What LLaMA-Factory does when it is asked to save and stop."""
    return tr(
        "LLaMA-Factory ends its step, saves the weights without a checkpoint to continue from, and still runs"
        " the final evaluation that the config asks for. With several ranks it may fail to save anything."
    )


def foreign_lines(page: Page, job: Job, goes_on: tuple[Behind, ...]) -> list[str]:
    """What a run is that llamaherd did not start: its processes, and what goes on behind it."""
    what = outside(" ".join(job.command), 200) or outside(job.id)
    lines = page.paragraph(tr("llamaherd did not start this: {command}", command=what))
    lines += labelled(page, [(f"PID {member.pid}", _left_text(member)) for member in job.members], 2)
    for item in goes_on:
        text = tr(BEHIND[item.code], pid=item.pid, command=outside(item.command, 200))
        lines += page.paragraph(text, 0, "warn" if item.code in ("program", "prompt") else "bad")
    return lines


def _loss(job: Job, steps_lost: int | None) -> str:
    if job.kind == "service":
        return tr("Whoever uses it is cut off.")
    last = job.progress.last_checkpoint if job.progress else None
    if steps_lost is None:
        return tr("How many steps this loses is not known.")
    if steps_lost == 0:
        return (
            tr("No step is lost.")
            if last is None
            else tr("No step is lost: checkpoint-{step} is complete.", step=last)
        )
    if last is None:
        return tr_plural(
            "{count} step is lost: there is no complete checkpoint.",
            "All {count} steps are lost: there is no complete checkpoint.",
            steps_lost,
        )
    return tr_plural(
        "{count} step is lost; the last complete checkpoint is checkpoint-{step}.",
        "{count} steps are lost; the last complete checkpoint is checkpoint-{step}.",
        steps_lost,
        step=last,
    )


def stop_lines(page: Page, report: StopReport | None, job: Job) -> list[str]:
    """The steps, the result, and every process, port and card that is left."""
    if report is None:
        ending = state_or_ending(job.state, job.ending)
        return page.paragraph(tr("{job} was not stopped: {state}.", job=outside(job.id), state=ending))
    lines = [page.heading(tr("Stop of {job}", job=outside(job.id)))]
    lines += labelled(page, [(units.duration(step.began), step_text(step)) for step in report.steps], 2)
    if report.unsure:
        lines += page.paragraph(_unsure(report.unsure), 2, "warn")
    if report.left or report.ports_open or report.devices_held:
        return lines + _left_lines(page, report)
    if job.state == "stopping":
        return lines + page.paragraph(tr("The stop is under way."), 2)
    return lines + page.paragraph(proof(report), 2, "good")


def step_text(step: LadderStep) -> str:
    """``Interrupted the trainer (SIGINT; torchrun: SIGTERM), PID 48222: 5.7 s, 2 processes left.``

    A step that is not over yet has no result: what is left then is not what it leaves.
    """
    what = tr(STEPS[step.name])
    if step.targets:
        what = tr("{what}, PID {pids}", what=what, pids=_pids(step.targets))
    if step.note:
        note = tr(NOTES[step.note]) if step.note in NOTES else outside(step.note)
        what = tr("{what} ({where})", what=what, where=note)
    if step.ended is None:
        return what
    result = [_seconds(step.ended - step.began)]
    if step.left == 0:
        result.append(tr("nothing left"))
    elif step.left is not None:
        result.append(tr_plural("{count} process left", "{count} processes left", step.left))
    return tr("{what}: {result}.", what=what, result=tr(", ").join(result))


def proof(report: StopReport) -> str:
    """That nothing is left, and whether that was proved or only seen."""
    took = _seconds(report.seconds)
    if report.unverified:
        return tr(
            "Nothing of it is left, as far as repeated looks can tell (its keeper was not there to the end);"
            " it took {seconds}.",
            seconds=took,
        )
    return tr(
        "Every process of it is gone, its ports are closed and its cards released; it took {seconds}.",
        seconds=took,
    )


def _unsure(count: int) -> str:
    return tr_plural(
        "{count} signal went by number, since this kernel gives no handle on a process: who has the PID was"
        " checked a moment before.",
        "{count} signals went by number, since this kernel gives no handle on a process: who has the PID was"
        " checked a moment before.",
        count,
    )


def _left_lines(page: Page, report: StopReport) -> list[str]:
    lines: list[str] = []
    if count := len(report.left):
        text = tr_plural(
            "{count} process outlived every step:", "{count} processes outlived every step:", count
        )
        lines += page.paragraph(text, 2, "bad")
        lines += labelled(page, [(f"PID {member.pid}", _left_text(member)) for member in report.left], 4)
    if report.ports_open:
        text = tr("Ports still open: {ports}.", ports=", ".join(map(str, report.ports_open)))
        lines += page.paragraph(text, 2, "bad")
    if report.devices_held:
        text = tr(
            "Cards still held: {cards}.",
            cards=", ".join(f"/dev/nvidia{minor}" for minor in report.devices_held),
        )
        lines += page.paragraph(text, 2, "bad")
    if any(member.state == "D" for member in report.left):
        lines += page.paragraph(tr("No signal reaches a process that waits in the kernel."), 2)
    advice = tr("Its keeper goes on watching. If it does not end within minutes, restart the instance.")
    return lines + page.paragraph(advice, 2)


def _left_text(member: Member) -> str:
    """``rank, state D (waits in the kernel, deaf to signals), in uvm_gpu_retain: python launcher.py``."""
    letter = outside(member.state, 4)
    parts = [tr(ROLES[member.role])]
    if letter:
        meaning = tr(STATE_LETTERS[letter]) if letter in STATE_LETTERS else tr("unknown")
        parts.append(tr("state {letter} ({meaning})", letter=letter, meaning=meaning))
    if member.wchan:
        parts.append(tr("in {place}", place=outside(member.wchan)))
    text = tr(", ").join(parts)
    if not member.command:
        return text
    return tr("{what}: {result}", what=text, result=outside(member.command))


def _pids(pids: tuple[int, ...]) -> str:
    shown = " ".join(map(str, pids[:_SHOWN_PIDS]))
    more = len(pids) - _SHOWN_PIDS
    return tr("{pids} and {count} more", pids=shown, count=more) if more > 0 else shown


def _seconds(seconds: float | None) -> str:
    return units.UNKNOWN if seconds is None else f"{seconds:.1f} s"
