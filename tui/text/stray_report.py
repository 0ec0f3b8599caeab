"""Strays as text: by run, each with why it is one, since when it runs, what it holds."""

from collections.abc import Sequence

from tui.facts.stray import Obstacle, Stray, StrayGroup, StrayReason
from tui.text import units
from tui.text.layout import Page, labelled
from tui.text.names import ROLES
from tui.text.outside import outside
from tui.text.translate import tr, tr_noop, tr_plural

REASONS: dict[StrayReason, str] = {
    "rank_without_agent": tr_noop("a rank whose torchrun is gone"),
    "worker_without_trainer": tr_noop("a data worker whose trainer is gone"),
    "pool_without_trainer": tr_noop("a worker of the tokeniser whose trainer is gone"),
    "engine_without_server": tr_noop("a part of vLLM whose server is gone"),
    "log": tr_noop("it still writes the log of a job that is over"),
    "device": tr_noop("it carries the mark of a job that is over, and holds a card"),
    "token": tr_noop("it carries the mark of a job that is over"),
    "zombie": tr_noop("it is dead, and its parent does not collect it"),
}
OBSTACLES: dict[Obstacle, str] = {
    "terminal": tr_noop("it has a terminal, so it is left to whoever sits there"),
    "unproven": tr_noop("the mark alone is no proof, so it is left alone"),
    "zombie": tr_noop("it holds nothing, and no signal changes that"),
    "kernel_wait": tr_noop("it waits in the kernel, where no signal reaches it"),
    "protected": tr_noop("it is one that gets no signal from here"),
}


def stray_lines(page: Page, groups: Sequence[StrayGroup], now: float) -> list[str]:
    """Every group with its name, by which it can be chosen; ``now`` is epoch seconds."""
    if not groups:
        return page.paragraph(tr("There are no strays."))
    lines: list[str] = []
    for group in groups:
        lines += page.paragraph(_title(group), 0, "plain" if group.sweepable else "dim")
        rows = [(f"PID {stray.process.pid}", _stray_text(stray, now)) for stray in group.strays]
        lines += labelled(page, rows, 2)
    return lines


def sweep_question(groups: Sequence[StrayGroup]) -> str:
    """What a person is asked before any is ended."""
    pids = [stray.process.pid for group in groups for stray in group.sweepable]
    shown = " ".join(map(str, pids[:20]))
    return tr_plural(
        "End {count} stray (PID {pids})?", "End {count} strays (PID {pids})?", len(pids), pids=shown
    )


def _title(group: StrayGroup) -> str:
    what = outside(group.job) if group.job else outside(" ".join(group.command), 160)
    if not what:
        return tr("Group {group}:", group=group.id)
    return tr("Group {group}, left of {run}:", group=group.id, run=what)


def _stray_text(stray: Stray, now: float) -> str:
    process = stray.process
    parts = [tr(ROLES[process.role]), outside(process.command, 40), tr(REASONS[stray.reason])]
    if stray.started_at is not None:
        parts.append(tr("runs for {duration}", duration=units.duration(max(0.0, now - stray.started_at))))
    if stray.devices:
        cards = ", ".join(f"/dev/nvidia{minor}" for minor in stray.devices)
        parts.append(tr("holds {cards}", cards=cards))
    if stray.resident:
        parts.append(tr("{size} of memory", size=units.size(stray.resident)))
    if stray.obstacle is not None:
        parts.append(tr(OBSTACLES[stray.obstacle]))
    return tr(", ").join(filter(None, parts))
