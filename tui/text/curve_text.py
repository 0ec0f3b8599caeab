"""A curve of characters with its axes, for a report."""

from tui.facts.curve import Curve, CurveName
from tui.text import units
from tui.text.layout import Page
from tui.text.translate import tr, tr_noop

CURVES: dict[CurveName, str] = {
    "loss": tr_noop("loss"),
    "eval_loss": tr_noop("evaluation loss"),
    "learning_rate": tr_noop("learning rate"),
    "grad_norm": tr_noop("gradient norm"),
    "gpu_memory": tr_noop("GPU memory"),
}
_HEIGHT = 7
_LABEL = 10
_POINT, _BROKEN = "*", "!"


def curve_lines(page: Page, curve: Curve) -> list[str]:
    """The curve; a value that is no number is a ``!`` on the base line."""
    name = page.paint(tr(CURVES[curve.name]), "dim")
    cells = page.width - _LABEL - 4
    places = [at for at, _value in curve.points] + list(curve.broken)
    if len(places) < 2 or not curve.points or cells < 8:
        return [f"  {name}", *page.paragraph(tr("too few points for a curve"), 4)]
    first, last = min(places), max(places)
    low, high = min(value for _at, value in curve.points), max(value for _at, value in curve.points)
    rows = [[" "] * cells for _ in range(_HEIGHT)]

    def column(at: float) -> int:
        return round((at - first) / ((last - first) or 1.0) * (cells - 1))

    for at, value in curve.points:
        share = (value - low) / ((high - low) or 1.0)
        rows[round((1 - share) * (_HEIGHT - 1))][column(at)] = _POINT
    for at in curve.broken:
        rows[-1][column(at)] = _BROKEN
    labels = [units.number(high), *[""] * (_HEIGHT - 2), units.number(low)]
    drawn = [f"  {label:>{_LABEL}} {''.join(row)}".rstrip() for label, row in zip(labels, rows, strict=True)]
    end = f"{last:.0f}"
    axis = f"{first:.0f}".ljust(max(1, cells - len(end))) + end
    return [f"  {name}", *drawn, f"  {'':>{_LABEL}} {axis}"]
