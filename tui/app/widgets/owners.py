"""Who holds the memory of the cards, with a row for what no visible process explains."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui.app.ink import Drawing, Ink, Line, Span, cell, clipped, line
from tui.app.late import command_text
from tui.app.scene import Scene
from tui.app.widgets.panel import Panel
from tui.text.cells import width
from tui.text.names import EVIDENCE, PROCESS_KINDS, PROCESS_STATES
from tui.text.outside import outside
from tui.text.translate import tr, tr_noop
from tui.text.units import size

if TYPE_CHECKING:
    from tui.facts.machine import Gpu, Owner

_NORMAL = frozenset({"running", "sleeping", "unknown"})


class OwnersPanel(Panel):
    """The owners table. Rows are chosen to be looked at; stopping goes through the jobs."""

    about_text = tr_noop(
        "Who holds the memory: processes that hold a card, each with how it was proved. A hidden row is"
        " memory that no process visible in this container explains."
    )
    CURSOR = True

    def draw(self, scene: Scene, width: int, height: int) -> Drawing:
        """A heading and one line per owner; columns that do not fit are left out from the right."""
        title = tr("Who holds the memory")
        if scene.snapshot is None:
            return Drawing(title, [line(Span(tr("Reading processes"), "dim"))])
        owners = list(scene.owners())
        if not owners:
            text = tr("No process holds a card.") if scene.gpus else tr("No card, so nobody holds one.")
            return Drawing(title, [line(Span(text, "dim"))])
        lines = [_heading(width)]
        rows: list[str | None] = [None]
        for card, owner in owners:
            lines.append(owner_line(card, owner, width))
            rows.append(f"{card.uuid} {owner.pid or owner.host_pid or owner.evidence}")
        return Drawing(title, lines, _sum_note(scene), rows)


def _sum_note(scene: Scene) -> str:
    unexplained = sum(card.memory.unattributed or 0 for card in scene.gpus)
    return tr("unexplained {size}", size=size(unexplained)) if unexplained else ""


def _kind_cells() -> int:
    return max(width(tr(name)) for name in PROCESS_KINDS.values()) + 1


def _heading(cells: int) -> Line:
    spans = [
        cell(tr("GPU"), 4, "label"),
        cell("PID", 7, "label", "right"),
        cell(tr("memory"), 10, "label", "right"),
        Span("  "),
        cell(tr("kind"), _kind_cells(), "label"),
    ]
    if cells >= 100:
        spans.append(cell(tr("proof"), _proof_cells(), "label"))
    if cells >= 84:
        spans.append(cell(tr("user"), 9, "label"))
    spans.append(Span(tr("command"), "label"))
    return clipped(tuple(spans), cells)


def _proof_cells() -> int:
    return max(width(tr(name)) for name in EVIDENCE.values()) + 1


def owner_line(card: Gpu, owner: Owner, cells: int) -> Line:
    """One owner on one card."""
    hidden = owner.evidence == "hidden"
    ink: Ink = "warn" if hidden else "plain"
    kind = tr("hidden") if hidden and owner.pid is None else tr(PROCESS_KINDS[owner.kind])
    if owner.rank is not None:
        kind = f"{kind} {owner.rank}"
    spans = [
        cell(str(card.index), 4, "accent"),
        cell("-" if owner.pid is None else str(owner.pid), 7, ink, "right"),
        cell(size(owner.memory), 10, "strong" if not hidden else ink, "right"),
        Span("  "),
        cell(kind, max(_kind_cells(), width(kind) + 1), ink),
    ]
    if cells >= 100:
        spans.append(cell(tr(EVIDENCE[owner.evidence]), _proof_cells(), "dim"))
    if cells >= 84:
        spans.append(cell(outside(owner.user or "-", 20), 9, "dim"))
    if owner.state not in _NORMAL:
        spans.append(Span(tr(PROCESS_STATES[owner.state]) + " ", "warn"))
    spans.append(Span(owner_words(owner), ink))
    return clipped(tuple(spans), cells)


def owner_words(owner: Owner) -> str:
    """The command, or why there is none."""
    if owner.command:
        return command_text(owner.command)
    if owner.host_pid is not None:
        return tr("PID {pid} of the host: its process is outside this container", pid=owner.host_pid)
    return tr("no visible process explains this memory") if owner.pid is None else "-"
