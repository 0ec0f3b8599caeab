"""The history in a ``trainer_state.json``: every record of the run so far, with its step and gradient norm.

It lies in each checkpoint and, once the steps are over, in the output folder, so it tells of a run whose logs
were left on another machine.
"""

import json
import math
import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tui.facts.training import MetricPoint
from tui.llamafactory.history import thinned
from tui.llamafactory.metrics import metric_point

_LIMIT = 64 << 20
_RECORDS = 200_000


@dataclass(frozen=True, slots=True)
class StateHistory:
    """Steps done and planned, and the records in order."""

    step: int
    total: int | None
    points: tuple[MetricPoint, ...]


def read_history(path: Path) -> StateHistory | None:
    """``None`` where there is no such file, or none that can be understood."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with os.fdopen(handle, "rb") as file:
            found = os.fstat(handle)
            if not stat.S_ISREG(found.st_mode) or found.st_size > _LIMIT:
                return None
            state = json.loads(file.read(_LIMIT))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(state, dict) or not _is_count(state.get("global_step")):
        return None
    total, records = state.get("max_steps"), state.get("log_history")
    points = tuple(_points(records)) if isinstance(records, list) else ()
    return StateHistory(state["global_step"], total if _is_count(total) else None, thinned(points))


def _points(records: Iterable[object]) -> Iterator[MetricPoint]:
    for record, _ in zip(records, range(_RECORDS), strict=False):
        if not isinstance(record, dict) or not _is_count(record.get("step")):
            continue
        values = dict(_numbers(record))
        if "loss" in values or "eval_loss" in values:
            yield metric_point(values, record["step"])


def _numbers(record: Mapping[object, object]) -> Iterator[tuple[str, float]]:
    for name, value in record.items():
        if isinstance(name, str) and isinstance(value, int | float) and not isinstance(value, bool):
            try:
                yield name, float(value)
            except OverflowError:
                continue


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 53


def completed_by(points: Sequence[MetricPoint], history: StateHistory) -> tuple[MetricPoint, ...]:
    """``points`` with what only the history knows: gradient norms, and records that they lack."""
    known: dict[tuple[int, bool], MetricPoint] = {
        (point.step, point.loss is None): point for point in points if point.step is not None
    }
    unplaced = [point for point in points if point.step is None]
    for written in history.points:
        if written.step is None:
            continue
        key = (written.step, written.loss is None)
        point = known.get(key)
        if point is None:
            known[key] = written
        elif point.grad_norm is None and written.grad_norm is not None and math.isfinite(point.loss or 0.0):
            known[key] = replace(point, grad_norm=written.grad_norm)
    placed = [known[key] for key in sorted(known)]
    return thinned([*unplaced, *placed])
