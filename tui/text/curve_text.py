"""Losses as a small curve of characters, for a report."""

import math
from collections.abc import Sequence
from itertools import groupby

from tui.facts.training import MetricPoint
from tui.text import units
from tui.text.layout import Page
from tui.text.translate import tr

_HEIGHT = 8
_LABEL = 10


def curve_lines(page: Page, points: Sequence[MetricPoint]) -> list[str]:
    """The losses over the steps; a loss that is no number is a ``!`` on the base line."""
    losses = [
        (point.step, point.loss) for point in points if point.step is not None and point.loss is not None
    ]
    finite = [loss for _step, loss in losses if math.isfinite(loss)]
    cells = page.width - _LABEL - 4
    if len(finite) < 2 or cells < 8:
        return page.paragraph(tr("too few losses for a curve"), 2)
    first, last = losses[0][0], losses[-1][0]
    low, high = min(finite), max(finite)
    rows = [[" "] * cells for _ in range(_HEIGHT)]

    def column(one: tuple[int, float]) -> int:
        return min(cells - 1, (one[0] - first) * cells // max(1, last - first + 1))

    for at, group in groupby(losses, column):
        values = [loss for _step, loss in group]
        known = [value for value in values if math.isfinite(value)]
        if len(known) < len(values):
            rows[-1][at] = "!"
        else:
            share = (sum(known) / len(known) - low) / ((high - low) or 1.0)
            rows[round((1 - share) * (_HEIGHT - 1))][at] = "*"
    labels = [units.number(high), *[""] * (_HEIGHT - 2), units.number(low)]
    lines = [f"  {label:>{_LABEL}} {''.join(row).rstrip()}" for label, row in zip(labels, rows, strict=True)]
    steps = f"{first}".ljust(max(1, cells - len(str(last)))) + str(last)
    return [*lines, f"  {tr('step'):>{_LABEL}} {steps}"]
