"""Metric records in a console log: Trainer's dictionaries and its closing blocks.

transformers 4 prints numbers (``'loss': 5.6702``), transformers 5 quoted ones (``'loss': '5.67'``); both
print ``nan`` and ``inf``. Nothing is evaluated: only ``'name': number`` pairs are read.
"""

import math
import re
from collections.abc import Iterator, Mapping

from tui.facts.training import MetricPoint
from tui.llamafactory.clocktext import duration

_DICT_LIMIT = 8192
_PAIR = re.compile(r"'([\w/.-]{1,80})': (?:'([^']{0,40})'|([-+.\w]{1,40}))")
_BLOCK_LINE = re.compile(r" {2}([\w/.-]{1,80}) {1,80}= {1,80}(\S{1,40})")


def metric_values(text: str) -> dict[str, float]:
    """The numbers of the first dictionary in ``text``, by name; empty when there is none."""
    start = text.find("{'")
    if start < 0:
        return {}
    end = text.find("}", start, start + _DICT_LIMIT)
    if end < 0:
        return {}
    return dict(_numbers(text, start, end))


def _numbers(text: str, start: int, end: int) -> Iterator[tuple[str, float]]:
    for name, quoted, bare in _PAIR.findall(text, start, end):
        value = _number(quoted or bare)
        if value is not None:
            yield name, value


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def block_value(line: str) -> tuple[str, float | None] | None:
    """A line of a ``***** train metrics *****`` block: name and value, which is ``None`` for a value
    with a unit; ``None`` when the line does not belong to such a block.
    """
    match = _BLOCK_LINE.fullmatch(line)
    if match is None:
        return None
    value = _number(match[2])
    return match[1], duration(match[2]) if value is None else value


def eval_seconds(values: Mapping[str, float]) -> float | None:
    """How long an evaluation took, all its datasets together; ``None`` for another record."""
    runtimes = [
        value for name, value in values.items() if name.startswith("eval_") and name.endswith("runtime")
    ]
    seconds = sum(runtimes)
    return seconds if runtimes and math.isfinite(seconds) and seconds >= 0 else None


def metric_point(values: Mapping[str, float], step: int | None = None) -> MetricPoint:
    """The record as a point, without the fields that this program has no use for."""
    tokens = values.get("num_input_tokens_seen")
    return MetricPoint(
        step=step,
        loss=values.get("loss"),
        eval_loss=values.get("eval_loss"),
        learning_rate=values.get("learning_rate"),
        grad_norm=values.get("grad_norm"),
        epoch=values.get("epoch"),
        eval_runtime=None if "loss" in values else eval_seconds(values),
        tokens_seen=int(tokens) if tokens is not None and math.isfinite(tokens) else None,
    )
