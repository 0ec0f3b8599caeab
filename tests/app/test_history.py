"""The short past: buckets of fixed length, gaps stay gaps."""

from dataclasses import replace

from support.recording import RUN, one_gpu

from tui.app.history import BUCKET, COLUMNS, History, Series


def test_a_bucket_is_the_mean_of_its_readings() -> None:
    series = Series()
    for at, value in ((100.0, 0.2), (105.0, 0.4), (110.0, 0.9)):
        series.add(at, value)
    assert [round(value or 0, 3) for value in series.values] == [0.3, 0.9]


def test_time_without_readings_is_a_gap() -> None:
    series = Series()
    series.add(0.0, 0.5)
    series.add(3 * BUCKET, 0.6)
    assert series.values == [0.5, None, None, 0.6]


def test_an_unknown_reading_is_no_zero() -> None:
    series = Series()
    series.add(0.0, None)
    assert series.values == [None]


def test_the_past_is_bounded() -> None:
    series = Series()
    for at in range(3 * COLUMNS):
        series.add(at * BUCKET, 0.1)
    series.add(1e9, 0.2)
    assert len(series.values) == COLUMNS


def test_a_clock_that_was_set_back_begins_anew() -> None:
    series = Series()
    series.add(1000.0, 0.5)
    series.add(10.0, 0.7)
    assert series.values == [0.7]


def test_one_picture_counts_once() -> None:
    history = History()
    history.add(one_gpu(0))
    history.add(one_gpu(0))
    assert len(history.loss(RUN)) == 1


def test_losses_of_jobs_that_are_gone_are_forgotten() -> None:
    history = History()
    history.add(one_gpu(0))
    history.add(replace(one_gpu(1), jobs=()))
    assert history.loss(RUN) == []


def test_a_long_run_keeps_its_beginning() -> None:
    history = History()
    for tick in range(0, 16_000, 4):
        history.add(one_gpu(tick))
    losses = history.loss(RUN)
    assert len(losses) <= 2 * COLUMNS
    assert losses[0] == max(losses)
