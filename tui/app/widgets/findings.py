"""What was found, the gravest first, with what to do about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui.app.graphs import Pen
from tui.app.ink import Drawing, Ink, Line, Span, line
from tui.app.late import finding_text
from tui.app.scene import Scene
from tui.app.widgets.panel import Panel
from tui.text.cells import width, wrap
from tui.text.names import LEVELS
from tui.text.translate import tr, tr_noop

if TYPE_CHECKING:
    from tui.facts.finding import Finding, Level

ORDER: tuple[Level, ...] = ("danger", "warning", "advice", "info")
_INKS: dict[Level, Ink] = {"danger": "bad", "warning": "warn", "advice": "accent", "info": "dim"}


class FindingsPanel(Panel):
    """Findings as sentences, each with a word for its level."""

    about_text = tr_noop("What to look at: findings with advice, the gravest first.")

    def draw(self, scene: Scene, width: int, height: int) -> Drawing:
        """Wrapped sentences."""
        title = tr("What to look at")
        if scene.snapshot is None:
            return Drawing(title, [])
        findings = sorted_findings(scene.snapshot.findings)
        if not findings:
            return Drawing(title, [line(Span(tr("Nothing needs your attention."), "dim"))])
        lines = [drawn for finding in findings for drawn in finding_lines(finding, scene.pen, width)]
        return Drawing(title, lines)


def sorted_findings(findings: tuple[Finding, ...]) -> list[Finding]:
    """The gravest first."""
    return sorted(findings, key=lambda finding: ORDER.index(finding.level))


def finding_ink(finding: Finding) -> Ink:
    """The ink of its level."""
    return _INKS[finding.level]


def finding_mark(finding: Finding, pen: Pen) -> str:
    """A mark of its level, for reading without colour."""
    return pen.warning if finding.level in {"danger", "warning"} else pen.here


def finding_lines(finding: Finding, pen: Pen, cells: int) -> list[Line]:
    """The word of the level, then the sentence."""
    ink = finding_ink(finding)
    head = f"{finding_mark(finding, pen)} {tr(LEVELS[finding.level])}  "
    indent = width(head)
    room = max(10, cells - indent)
    message, advice = finding_text(finding)
    parts = wrap(message, room)
    first = line(Span(head, ink), Span(parts[0]))
    rest = [line(Span(" " * indent + part)) for part in parts[1:]]
    return [
        first,
        *rest,
        *[line(Span(" " * indent + part, "dim")) for part in (wrap(advice, room) if advice else ())],
    ]
