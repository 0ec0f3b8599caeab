"""One finding as lines of a report."""

from tui.facts.finding import Finding, Level
from tui.text.findings import finding_text
from tui.text.layout import Page, Style
from tui.text.names import LEVELS
from tui.text.translate import tr

_LEVEL_STYLES: dict[Level, Style] = {"danger": "bad", "warning": "warn", "advice": "accent", "info": "plain"}


def finding_lines(page: Page, finding: Finding) -> list[str]:
    """Its level, what was found, and below it what to do."""
    message, advice = finding_text(finding)
    level = tr(LEVELS[finding.level])
    first, *rest = page.paragraph(tr("{what}: {result}", what=level, result=message), 2)
    lines = [first.replace(level, page.paint(level, _LEVEL_STYLES[finding.level]), 1), *rest]
    return [*lines, *page.paragraph(advice, 4, "dim")] if advice else lines
