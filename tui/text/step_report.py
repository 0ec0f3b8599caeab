"""The step count with its working, in words."""

from collections.abc import Sequence

from tui.facts.steps import Bound, StepCount, StepReason
from tui.text import units
from tui.text.layout import Page
from tui.text.outside import outside
from tui.text.translate import tr, tr_noop, tr_plural

STEP_REASONS: dict[StepReason, str] = {
    "packing": tr_noop("Packing joins rows; how many samples that gives shows only after tokenizing."),
    "rows_dropped": tr_noop(
        "Rows without an answer are dropped; how many of them the validation set takes is drawn by lot."
    ),
    "rows_not_checked": tr_noop(
        "Rows were counted, not looked into: those without an answer would be dropped, too."
    ),
    "interleaved": tr_noop("How many rows are drawn from each data set is decided while it runs."),
    "early_stopping": tr_noop("It may stop early."),
    "rows_unknown": tr_noop("The rows of the data set are not known."),
    "world_unknown": tr_noop("The number of cards is not known."),
    "version_unknown": tr_noop(
        "The version of transformers is not known; before 4.52 an incomplete last step was left out."
    ),
    "streaming": tr_noop("A streamed data set needs max_steps: its length is not known."),
    "auto_batch": tr_noop("auto_find_batch_size may take smaller batches, and so more steps."),
    "stage": tr_noop("This stage counts its steps in its own way."),
    "settings_invalid": tr_noop("LLaMA-Factory refuses these settings of the validation set."),
}


def step_lines(page: Page, count: StepCount) -> list[str]:
    """The total, and how it comes about."""
    lines = [page.heading(_total(count))]
    for text in (*_working(count), _step_text(count)):
        lines += page.paragraph(text, 2)
    for dataset in count.datasets:
        if dataset.rows is None:
            why = units.reason(dataset.unknown.get("rows", "not_yet"))
            text = tr(
                "Rows of {dataset} are unknown: {reason}.", dataset=outside(dataset.name, 60), reason=why
            )
            lines += page.paragraph(text, 2)
    for reason in count.reasons:
        lines += page.paragraph(tr(STEP_REASONS[reason]), 4, "dim")
    return lines


def shown(bound: Bound) -> str:
    """A whole number or two: ``1,222``, ``456 - 459``."""
    return f"{bound.low:,}" if bound.exact else f"{bound.low:,} - {bound.high:,}"


def _total(count: StepCount) -> str:
    if count.total is None:
        return tr("Steps: unknown")
    return tr("Steps: {total}", total=shown(count.total))


def _working(count: StepCount) -> Sequence[str]:
    """The sum, line by line, as far as it is known."""
    lines = []
    if count.rows is not None and count.samples is not None:
        if count.validation:
            text = tr("{rows} rows - {validation} for validation", **_numbers(count))
        else:
            text = tr("{rows} rows", **_numbers(count))
        lines.append(tr("{sum} = {samples} samples", sum=text, samples=shown(count.samples)))
    if count.max_steps is not None:
        return [*lines, tr("max_steps: {steps}", steps=f"{count.max_steps:,}")]
    if count.samples is None or count.batches is None or count.per_epoch is None or count.total is None:
        return lines
    lines.append(
        tr_plural(
            "{samples} samples / {batch} a batch / {count} card = {batches} batches a card",
            "{samples} samples / {batch} a batch / {count} cards = {batches} batches a card",
            count.world or 1,
            samples=shown(count.samples),
            batch=count.batch,
            batches=shown(count.batches),
        )
    )
    message = {
        True: tr_noop("{batches} batches / {accumulation} accumulated, rounded up = {steps} steps an epoch"),
        False: tr_noop(
            "{batches} batches / {accumulation} accumulated, rounded down = {steps} steps an epoch"
        ),
        None: tr_noop("{batches} batches / {accumulation} accumulated = {steps} steps an epoch"),
    }[count.rounds_up]
    lines.append(
        tr(
            message,
            batches=shown(count.batches),
            accumulation=count.accumulation,
            steps=shown(count.per_epoch),
        )
    )
    lines.append(
        tr(
            "{steps} steps x {epochs} epochs = {total} steps",
            steps=shown(count.per_epoch),
            epochs=f"{count.epochs:g}",
            total=shown(count.total),
        )
    )
    return lines


def _numbers(count: StepCount) -> dict[str, str]:
    return {"rows": f"{count.rows or 0:,}", "validation": f"{count.validation or 0:,}"}


def _step_text(count: StepCount) -> str:
    if count.effective_batch is None:
        return tr(
            "Each step trains on {batch} samples a card, {accumulation} times, on every card.",
            batch=count.batch,
            accumulation=count.accumulation,
        )
    return tr_plural(
        "Each step trains on {total} samples: {batch} a card x {accumulation} accumulated x {count} card.",
        "Each step trains on {total} samples: {batch} a card x {accumulation} accumulated x {count} cards.",
        count.world or 1,
        total=f"{count.effective_batch:,}",
        batch=count.batch,
        accumulation=count.accumulation,
    )
