"""The past of the cards: what a column holds, what a gap is, and that memory stays bounded."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.samples import gpu

from tui.facts.machine import Gpu
from tui.insight.gpu_history import SPANS, Column, GpuHistory, Ring, Span


def card(age: float = 0.0, utilization: float | None = 0.5) -> Gpu:
    return replace(gpu(), age=age, utilization=utilization)


def means(history: GpuHistory, span: Span, now: float) -> list[float | None]:
    columns = history.columns(card().uuid, "utilization", span, now)
    return [None if column is None else column.mean for column in columns]


@pytest.mark.parametrize("span", SPANS)
def test_every_span_has_its_columns_also_before_any_reading(span: Span) -> None:
    history = GpuHistory()
    empty = history.columns("GPU-none", "power", span, 5.0)
    history.add([card()], 1000.0)
    one = history.columns(card().uuid, "power", span, 1000.0)
    assert len(empty) == len(one) == round(span / SPANS[span])
    assert set(empty) == {None}
    assert one[:-1] == empty[:-1]
    assert one[-1] == Column(287, 287)


def test_a_column_holds_the_mean_and_the_highest() -> None:
    ring = Ring(5.0, 12)
    for at, value in [(10.0, 1.0), (11.0, 3.0), (14.9, 2.0), (15.0, 7.0)]:
        ring.add(at, value)
    assert ring.columns(16.0)[-2:] == (Column(2.0, 3.0), Column(7.0, 7.0))


def test_unknown_is_a_gap_and_not_zero() -> None:
    history = GpuHistory()
    for second in range(3):
        history.add([card(utilization=None if second == 1 else 0.9)], 100.0 + second)
    assert means(history, 60, 102.0)[-3:] == [0.9, None, 0.9]


def test_a_reading_that_is_shown_again_counts_once() -> None:
    history = GpuHistory()
    history.add([card(utilization=0.2)], 100.0)
    for late in range(1, 31):
        history.add([card(age=float(late), utilization=0.2)], 100.0 + late)
    assert means(history, 60, 130.0).count(0.2) == 1
    assert means(history, 60, 130.0)[-28:] == [None] * 28, "a silent driver leaves a gap"


def test_a_reading_that_is_a_second_late_is_no_gap() -> None:
    history = GpuHistory()
    history.add([card()], 100.9)
    assert means(history, 60, 102.8)[-1] == 0.5
    assert means(history, 60, 103.1)[-1] is None


def test_readings_that_beat_against_the_columns_leave_no_gap() -> None:
    history = GpuHistory()
    for step in range(70):
        history.add([card()], 1000.0 + step * 1.03)
    assert None not in means(history, 60, 1000.0 + 69 * 1.03)


def test_a_card_that_never_answered_has_no_past() -> None:
    history = GpuHistory()
    history.add([replace(card(), age=None), replace(card(), uuid="")], 5.0)
    assert set(means(history, 60, 5.0)) == {None}


@given(st.lists(st.tuples(st.floats(0, 1e6), st.none() | st.floats(0, 1e12)), max_size=60), st.floats(0, 1e6))
def test_any_readings_at_any_time_keep_the_length(
    readings: list[tuple[float, float | None]], now: float
) -> None:
    ring = Ring(5.0, 12)
    for at, value in readings:
        ring.add(at, value)
    columns = ring.columns(now)
    assert len(columns) == 12
    values = [value for _, value in readings if value is not None]
    for column in columns:
        assert column is None or (column.highest in values and column.mean <= column.highest * (1 + 1e-9))
