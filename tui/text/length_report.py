"""Token lengths in words."""

from collections.abc import Sequence

from tui.facts.steps import LengthProblem, LengthSummary, TokenLengths
from tui.text import units
from tui.text.layout import Cell, Column, Page, Table
from tui.text.outside import outside
from tui.text.translate import tr, tr_noop, tr_plural

LENGTH_PROBLEMS: dict[LengthProblem, str] = {
    "tokenizer": tr_noop("The tokenizer or the template of this model cannot be loaded."),
    "dataset": tr_noop("The data set cannot be read."),
    "dataset_too_large": tr_noop(
        "The data set is one JSON list too large to load; as one object a line (.jsonl) it can be measured."
    ),
    "stage": tr_noop("A sample of this stage has no single length."),
    "timed_out": tr_noop("It took too long and was ended."),
    "cancelled": tr_noop("It was cancelled."),
    "environment": tr_noop("The training environment could not measure them."),
    "no_samples": tr_noop("The data set has no sample that can be trained on."),
}


def length_lines(page: Page, lengths: TokenLengths, summary: LengthSummary | None) -> list[str]:
    """What was measured, or why not."""
    lines = [page.heading(tr("Tokens of a sample, with the template"))]
    if lengths.problem is not None:
        lines += page.paragraph(tr(LENGTH_PROBLEMS[lengths.problem]), 2)
        if lengths.detail:
            lines += page.paragraph(outside(lengths.detail), 4, "dim")
    if summary is None:
        return lines
    lines += page.paragraph(_samples(summary), 2)
    lines += _percentile_table(summary, page)
    for limit, count in summary.cut.items():
        lines += page.paragraph(_cut(limit, count, summary), 2)
    text = tr(
        "At {batch} a batch, padded to the longest and to a multiple of {multiple}, padding fills {share}.",
        batch=summary.batch,
        multiple=summary.padded_to,
        share=units.percent(summary.padding),
    )
    return lines + page.paragraph(text, 2)


def _samples(summary: LengthSummary) -> str:
    message = tr_noop("All {count} samples.") if summary.complete else tr_noop("The first {count} samples.")
    text = tr(message, count=f"{summary.samples:,}")
    if not summary.dropped:
        return text
    dropped = tr_plural(
        "{count} row has no answer and is dropped.",
        "{count} rows have no answer and are dropped.",
        summary.dropped,
    )
    return f"{text} {dropped}"


def _percentile_table(summary: LengthSummary, page: Page) -> list[str]:
    names = [*(f"P{share}" for share in summary.percentiles), tr("longest")]
    values = [*summary.percentiles.values(), summary.longest]
    rows: list[Sequence[Cell]] = [[Cell(f"{value:,}") for value in values]]
    return Table([Column(name, "right") for name in names], rows).lines(page, 2)


def _cut(limit: int, count: int, summary: LengthSummary) -> str:
    share = units.percent(count / summary.samples)
    if limit == summary.cutoff:
        message = tr_noop("{limit} tokens (cutoff_len): {count} samples are cut ({share})")
    else:
        message = tr_noop("{limit} tokens: {count} samples would be cut ({share})")
    return tr(message, limit=f"{limit:,}", count=f"{count:,}", share=share)
