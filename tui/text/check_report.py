"""The readable output of ``check``: what was found, and what would run."""

from collections.abc import Mapping, Sequence

from tui.facts.finding import Finding
from tui.text.finding_lines import finding_lines
from tui.text.layout import Page
from tui.text.translate import tr, tr_plural


def check_report(
    findings: Sequence[Finding], width: int = 80, colour: bool = False, ascii: bool = False
) -> str:
    """The verdict in one line, then every finding, blockers first."""
    page = Page(max(40, width), colour, ascii)
    lines = [line for finding in findings for line in finding_lines(page, finding)]
    return "\n".join([page.heading(verdict(findings)), *lines])


def verdict(findings: Sequence[Finding]) -> str:
    """Whether it can start, in one sentence."""
    blockers = sum(finding.blocks for finding in findings)
    if blockers:
        return tr_plural(
            "It cannot start: {count} finding stands in the way.",
            "It cannot start: {count} findings stand in the way.",
            blockers,
        )
    doubts = sum(finding.level in ("warning", "danger") for finding in findings)
    if doubts:
        return tr_plural(
            "It can start, with {count} warning.", "It can start, with {count} warnings.", doubts
        )
    return tr("It can start.")


def plan_rows(
    command: Sequence[str],
    cwd: str,
    config: str | None,
    output_dir: str | None,
    environment: Mapping[str, str],
) -> list[tuple[str, str]]:
    """What would run, as labels and values."""
    rows: list[tuple[str, str | None]] = [
        (tr("command"), " ".join(command)),
        (tr("folder"), cwd),
        (tr("config"), config),
        (tr("output"), output_dir),
        *((tr("variable"), f"{name}={value}") for name, value in environment.items()),
    ]
    return [(label, text) for label, text in rows if text]
