"""From records to curves: as many points as a screen can show, and every break kept."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from tui.facts.curve import Curve, CurveName
from tui.facts.training import MetricPoint

_NAMES: tuple[CurveName, ...] = ("loss", "eval_loss", "learning_rate", "grad_norm")
_MIB = 1 << 20


def metric_curves(points: Sequence[MetricPoint]) -> tuple[Curve, ...]:
    """One curve for each figure that was logged with its step; a step that comes again replaces what it
    said before (a resumed run).
    """
    return tuple(curve for name in _NAMES if (curve := _metric_curve(name, points)) is not None)


def _metric_curve(name: CurveName, points: Sequence[MetricPoint]) -> Curve | None:
    values: dict[int, float] = {}
    for point in points:
        value: float | None = getattr(point, name)
        if value is not None and point.step is not None:
            values[point.step] = value
    if not values:
        return None
    finite = tuple((float(step), values[step]) for step in sorted(values) if math.isfinite(values[step]))
    broken = tuple(float(step) for step in sorted(values) if not math.isfinite(values[step]))
    return Curve(name, finite, broken)


def memory_curves(rows: Iterable[Mapping[str, str]]) -> tuple[Curve, ...]:
    """One curve per card from the rows of ``gpu-samples.csv``; of summarised rows the maximum counts."""
    cards: dict[str, list[tuple[float, float]]] = {}
    for at, card, used in _memory(rows):
        cards.setdefault(card, []).append((at, used))
    first = min((found[0][0] for found in cards.values()), default=0.0)
    return tuple(
        Curve("gpu_memory", tuple((at - first, used) for at, used in found), label=card)
        for card, found in cards.items()
    )


def _memory(rows: Iterable[Mapping[str, str]]) -> Iterator[tuple[float, str, float]]:
    for row in rows:
        if row.get("kind") not in {"sample", "max"}:
            continue
        try:
            at, used = float(row["time"]), float(row["used_mib"])
        except (KeyError, TypeError, ValueError):
            continue
        if math.isfinite(at) and math.isfinite(used):
            yield at, row.get("uuid") or "", used * _MIB


def fitted(curve: Curve, columns: int) -> Curve:
    """At most ``columns`` points, each the mean of its column; what was broken stays in its column."""
    if len(curve.points) <= columns or columns < 1:
        return curve
    first, last = curve.points[0][0], curve.points[-1][0]
    width = (last - first) / columns or 1.0
    groups: dict[int, list[tuple[float, float]]] = {}
    for at, value in curve.points:
        groups.setdefault(min(columns - 1, int((at - first) / width)), []).append((at, value))
    means = (
        (sum(at for at, _value in group) / len(group), sum(value for _at, value in group) / len(group))
        for group in groups.values()
    )
    return Curve(curve.name, tuple(means), curve.broken, curve.label)
