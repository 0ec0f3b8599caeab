import math
import re

import pytest
from support.training_logs import PLAN_BLOCK, bar, facts_of

from tui.insight.speed import step_speed
from tui.llamafactory.flood import worth_reading

TOTAL = 100_000
PLAN = PLAN_BLOCK.replace(b"steps = 100\n", b"steps = 100,000\n").replace(
    b"examples = 4,000", b"examples = 40"
)


def record(step: int, loss: str = "") -> bytes:
    return f"\r{' ' * 30}\r{{'loss': {loss or step / 1000}, 'grad_norm': 0.5, 'epoch': {step}.0}}\n".encode()


def long_log(steps: int, *, nan_at: int = 0, logging_steps: int = 10) -> bytes:
    """A training of half a second a step, as it lies in a file."""
    pieces = [PLAN]
    for step in range(1, steps + 1):
        shown = bar(step, step // 2, TOTAL)
        pieces.append(shown)
        if step % logging_steps == 0:
            pieces += [record(step, "nan" if step == nan_at else ""), shown]
    return b"".join(pieces)


def test_little_is_read_whole() -> None:
    few = [b"  1%|#| 1/9 [00:01<00:01, 2.0it/s]"] * 512
    assert list(worth_reading(few)) == few


def test_a_flood_keeps_its_end_and_every_other_text() -> None:
    log = [piece for piece in re.split(rb"[\r\n]", long_log(20_000)) if piece.strip()]
    kept = list(worth_reading([PLAN, *log, b"Saving model checkpoint to out", *log]))
    assert len(kept) < 6000
    assert kept[-1] == log[-1]
    assert b"Saving model checkpoint to out" in kept


def test_a_long_log_read_at_once_tells_what_it_tells_bit_by_bit() -> None:
    data = long_log(20_000, nan_at=15_000)
    at_once, bit_by_bit = facts_of(data), facts_of(data, piece=4096)
    assert at_once.step == bit_by_bit.step == 20_000
    speeds = [step_speed(log) for log in (at_once, bit_by_bit)]
    assert [speed and speed.seconds for speed in speeds] == [pytest.approx(0.5, rel=0.01)] * 2
    assert at_once.metrics[-1] == bit_by_bit.metrics[-1]


def test_records_keep_their_steps_and_nan_is_never_left_out() -> None:
    log = facts_of(long_log(20_000, nan_at=15_000))
    wrong = [
        point
        for point in log.metrics
        if point.step is None or (point.loss or 0.0) not in (point.step / 1000,)
    ]
    assert [point.step for point in wrong] == [15_000]
    assert math.isnan(wrong[0].loss or 0.0)
    assert len(log.metrics) > 900
