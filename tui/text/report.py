"""The readable output of ``status``, ``jobs``, ``start`` and ``stop``: text for a terminal or a pipe.

Colours only where asked for; every text from outside is made harmless and its secrets masked on the way.
"""

from collections.abc import Sequence

from tui.facts.finding import Finding
from tui.facts.job import Job, StopReport
from tui.facts.secrets import mask_text
from tui.facts.snapshot import Snapshot
from tui.text import units
from tui.text.cells import clean, cut, fit
from tui.text.cells import width as cells_of
from tui.text.finding_lines import finding_lines
from tui.text.gpu_report import gpu_lines
from tui.text.host_report import host_lines
from tui.text.job_report import job_lines, jobs_table
from tui.text.layout import Page
from tui.text.outside import outside
from tui.text.stop_report import stop_lines
from tui.text.translate import tr, tr_noop, tr_plural

_VERSION_LIMIT = 40
_VALUE_LIMIT = 10_000
_SHOWN_ENDED = 3
_LEAST_WIDTH = 40

_PLATFORMS = {
    "autodl": tr_noop("AutoDL container"),
    "container": tr_noop("container"),
    "host": tr_noop("machine"),
}
# Said where the cards would stand; a finding of the same content is not repeated.
_SAID_ABOVE = frozenset(
    {"driver_missing", "driver_error", "driver_silent", "no_gpu_mode", "version_mismatch"}
)


def status_report(snapshot: Snapshot, width: int = 80, colour: bool = False, ascii: bool = False) -> str:
    """The snapshot as text, without a line end at its end.

    Args:
        snapshot: What to show.
        width: Cells a line may take; below 40 it is laid out for 40.
        colour: Whether ANSI colours may be used.
        ascii: Draw with ASCII only; sentences keep their language.
    """
    page = Page(max(_LEAST_WIDTH, width), colour, ascii)
    sections = [
        [_header(page, snapshot)],
        gpu_lines(page, snapshot),
        host_lines(page, snapshot.host),
        _job_section(page, snapshot),
        _finding_lines(page, snapshot),
    ]
    return "\n\n".join("\n".join(lines) for lines in sections if lines)


def jobs_report(
    jobs: Sequence[Job], now: float, width: int = 80, colour: bool = False, ascii: bool = False
) -> str:
    """The list of jobs, one line each; ``now`` is epoch seconds."""
    page = Page(max(_LEAST_WIDTH, width), colour, ascii)
    if not jobs:
        return "\n".join(page.paragraph(tr("No job has been started yet.")))
    return "\n".join(jobs_table(jobs, now).lines(page))


def stop_report(
    report: StopReport | None, job: Job, width: int = 80, colour: bool = False, ascii: bool = False
) -> str:
    """What a stop did and what it could not end; ``None``: no stop was asked for before it ended."""
    page = Page(max(_LEAST_WIDTH, width), colour, ascii)
    return "\n".join(stop_lines(page, report, job))


def pairs(rows: Sequence[tuple[str, str]]) -> str:
    """Labels and values in two columns; values are whole, so that a command can be copied."""
    room = max((cells_of(label) for label, _value in rows), default=0)
    return "\n".join(f"{fit(label, room)}  {mask_text(clean(value, _VALUE_LIMIT))}" for label, value in rows)


def _header(page: Page, snapshot: Snapshot) -> str:
    """``AutoDL container, 2 GPUs, driver 580.82.07`` and, at the right end, when."""
    parts = [tr(_PLATFORMS[snapshot.host.platform])]
    if snapshot.gpus:
        parts.append(tr_plural("{count} GPU", "{count} GPUs", len(snapshot.gpus)))
    if snapshot.driver.version:
        parts.append(tr("driver {version}", version=outside(snapshot.driver.version, _VERSION_LIMIT)))
    when = units.moment(snapshot.taken_at)
    left = cut(tr(", ").join(parts), page.width - len(when) - 2, page.glyphs)
    gap = " " * (page.width - cells_of(left) - len(when))
    return f"{page.paint(left, 'bold')}{gap}{page.paint(when, 'dim')}"


def _job_section(page: Page, snapshot: Snapshot) -> list[str]:
    """Every job that is not over, and the newest that are."""
    cards = {gpu.uuid: gpu.index for gpu in snapshot.gpus}
    live = [job for job in (*snapshot.jobs, *snapshot.foreign) if job.state != "ended"]
    ended = sorted(
        (job for job in snapshot.jobs if job.state == "ended"),
        key=lambda job: job.ended_at or 0,
        reverse=True,
    )
    lines = [page.heading(tr("Jobs"))]
    if not live and not ended:
        return lines + page.paragraph(tr("None. `llamaherd start CONFIG` starts one."), 2)
    blocks = [job_lines(page, job, snapshot.taken_at, cards) for job in (*live, *ended[:_SHOWN_ENDED])]
    lines += "\n\n".join("\n".join(block) for block in blocks).split("\n")
    if (older := len(ended) - _SHOWN_ENDED) > 0:
        text = tr_plural(
            "{count} older job is listed by `llamaherd jobs`.",
            "{count} older jobs are listed by `llamaherd jobs`.",
            older,
        )
        lines += page.paragraph(text, 2, "dim")
    return lines


def _finding_lines(page: Page, snapshot: Snapshot) -> list[str]:
    shown = [finding for finding in snapshot.findings if not _is_said(finding, snapshot)]
    if not shown:
        return []
    return [
        page.heading(tr("To note")),
        *(line for finding in shown for line in finding_lines(page, finding)),
    ]


def _is_said(finding: Finding, snapshot: Snapshot) -> bool:
    said = snapshot.driver.error is not None or not snapshot.gpus
    return said and finding.code in _SAID_ABOVE
