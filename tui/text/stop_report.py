"""What a stop did, step by step, and what it could not end, as text."""

from tui.facts.job import Job, LadderStep, Member, StepName, StopReport
from tui.text import units
from tui.text.layout import Page, labelled
from tui.text.names import ROLES
from tui.text.outside import outside
from tui.text.translate import tr, tr_noop, tr_plural

_SHOWN_PIDS = 8

STEPS: dict[StepName, str] = {
    "wait_save": tr_noop("Waited for the checkpoint that was being written"),
    "cooperate": tr_noop("Asked the trainer to finish its step and save"),
    "interrupt": tr_noop("Interrupted the trainer (SIGINT)"),
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


def stop_lines(page: Page, report: StopReport, job: Job) -> list[str]:
    """The steps, the result, and every process, port and card that is left."""
    lines = [page.heading(tr("Stop of {job}", job=outside(job.id)))]
    lines += labelled(page, [(units.duration(step.began), _step_text(step)) for step in report.steps], 2)
    if report.left or report.ports_open or report.devices_held:
        return lines + _left_lines(page, report)
    return lines + page.paragraph(_proof(report), 2, "good")


def _step_text(step: LadderStep) -> str:
    """``Interrupted the trainer (SIGINT), PID 48222: 5.7 s, 2 processes left.``."""
    what = tr(STEPS[step.name])
    if step.targets:
        what = tr("{what}, PID {pids}", what=what, pids=_pids(step.targets))
    if step.note:
        what = tr("{what} ({where})", what=what, where=outside(step.note))
    result = [] if step.ended is None else [_seconds(step.ended - step.began)]
    if step.left == 0:
        result.append(tr("nothing left"))
    elif step.left is not None:
        result.append(tr_plural("{count} process left", "{count} processes left", step.left))
    return tr("{what}: {result}.", what=what, result=tr(", ").join(result)) if result else what


def _proof(report: StopReport) -> str:
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
    advice = tr(
        "No signal reaches a process that waits in the kernel. Its keeper goes on watching; if it does not"
        " end within minutes, restart the instance to free the card."
    )
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
