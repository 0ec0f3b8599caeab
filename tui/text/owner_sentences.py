"""The sentences that explain a row of the owners: how it was proved, and why memory has none."""

from collections.abc import Iterable

from tui.facts.machine import CauseCode, Gpu, Owner
from tui.text import units
from tui.text.translate import tr, tr_noop

_SHOWN_PIDS = 8

CAUSES: dict[CauseCode, tuple[str, str]] = {
    "orphaned": (
        tr_noop("Trainers or their workers, whose launcher is gone, still hold the card: PID {pids}."),
        tr_noop("Stop them with the run they belong to."),
    ),
    "kernel_wait": (
        tr_noop("A process that holds the card waits inside the kernel: PID {pids}."),
        tr_noop("No signal ends it. Wait, or restart the instance."),
    ),
    "zombie_leader": (
        tr_noop("A main process has died while threads of it live on: PID {pids}."),
        tr_noop("It ends with its threads; stop its parent if it does not."),
    ),
    "notebook": (
        tr_noop("A notebook's kernel holds the card: PID {pids}."),
        tr_noop("Shut the kernel down in Jupyter; closing the page is not enough."),
    ),
    "just_ended": (
        tr_noop("A process that held a card has just ended: PID {pids}."),
        tr_noop("The driver may need some seconds, for tens of gigabytes more, to free its memory."),
    ),
    "unsized": (
        tr_noop("The driver gives no size for a process that holds the card: PID {pids}."),
        tr_noop("The memory is probably its own."),
    ),
    "driver_reserve": (
        tr_noop("This driver counts what it keeps for itself as used, some hundred MiB."),
        "",
    ),
    "nothing_visible": (
        tr_noop("No process visible here holds the card."),
        tr_noop("If that stays so for a minute, only powering the instance off and on frees it."),
    ),
}


def cause_lines(owner: Owner) -> list[tuple[str, str]]:
    """The likely causes of unexplained memory with what to do, the likeliest first."""
    lines = []
    for cause in owner.causes:
        message, advice = CAUSES[cause.code]
        lines.append((tr(message, pids=_pids(cause.pids)), tr(advice) if advice else ""))
    return lines


def unexplained_text(owner: Owner) -> str:
    """The short word for a row without a process; with suspects in sight it does not say "nobody"."""
    if owner.host_pid is not None:
        return tr("PID {pid} outside this container", pid=owner.host_pid)
    suspects = next((cause.pids for cause in owner.causes if cause.pids), ())
    if suspects:
        return tr("no process explains it for sure; perhaps PID {pids}", pids=_pids(suspects))
    return tr("no visible process holds it")


def evidence_text(gpu: Gpu, owner: Owner) -> str:
    """How a row was proved."""
    memory = units.size(owner.memory)
    if owner.evidence == "exact":
        return tr(
            "The driver lists this PID with {memory}, and the process holds this card here.", memory=memory
        )
    if owner.evidence == "sole_holder":
        return tr(
            "The driver lists this PID without a size. No other process uses the card, so what it has in use"
            " ({memory}) is taken to be its own.",
            memory=memory,
        )
    if owner.evidence == "inferred":
        return tr(
            "The driver lists PID {pid} of the host with {memory}. That number is not visible here; this"
            " process was the only one that could be behind it.",
            pid=owner.host_pid,
            memory=memory,
        )
    if owner.evidence == "holder":
        why = owner.unknown.get("memory")
        reason = tr("not known yet") if why is None else units.reason(why)
        return tr("The process holds this card. How much memory it has there: {reason}.", reason=reason)
    if owner.host_pid is not None:
        return tr(
            "The driver lists PID {pid} with {memory}; no process of this container is known to be it, so"
            " nothing can be done to it from here.",
            pid=owner.host_pid,
            memory=memory,
        )
    return tr(
        "{used} are in use on this card, and the rows with a size leave {memory} of it.",
        used=units.size(gpu.memory.used),
        memory=memory,
    )


def _pids(pids: Iterable[int]) -> str:
    every = list(pids)
    shown = " ".join(map(str, every[:_SHOWN_PIDS]))
    return shown if len(every) <= _SHOWN_PIDS else f"{shown} …"
