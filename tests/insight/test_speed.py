import random

import pytest
from support.runs import run_log

from tui.facts.training import RunLog, StepClock
from tui.insight.speed import step_speed


def test_steady_steps() -> None:
    speed = step_speed(run_log([8.0] * 30, total=100))
    assert speed is not None
    assert speed.seconds == 8.0
    assert speed.deviation == 0.0
    assert speed.steps == 28


def test_steps_shorter_than_the_clock_shows() -> None:
    speed = step_speed(run_log([0.3] * 400, total=1000))
    assert speed is not None
    assert speed.seconds == pytest.approx(0.3, rel=0.03)


def test_uneven_steps_are_averaged() -> None:
    chance = random.Random(7)
    taken = [chance.uniform(2, 14) for _ in range(200)]
    speed = step_speed(run_log(taken, total=400))
    assert speed is not None
    assert speed.seconds == pytest.approx(sum(taken[-150:]) / 150, rel=0.03)
    assert speed.deviation == pytest.approx(12 / 12**0.5, rel=0.35)


def test_warm_up_is_left_out_once_there_is_more() -> None:
    log = run_log([60.0, 30.0], total=100)
    early = step_speed(log)
    assert early is not None
    assert early.seconds == 45.0
    later = step_speed(run_log([60.0, 30.0, 8.0, 8.0], total=100))
    assert later is not None
    assert later.seconds == 8.0


def test_intervals_with_an_evaluation_a_save_or_a_gap_are_no_steps() -> None:
    marks = {8: ("eval",), 12: ("save",), 16: ("gap",), 20: ("eval", "save")}
    taken = [100.0 if step in marks else 8.0 for step in range(1, 31)]
    speed = step_speed(run_log(taken, total=100, marks=marks))  # type: ignore[arg-type]  # literals
    assert speed is not None
    assert speed.seconds == 8.0


def test_a_suspended_process_is_not_a_slow_step() -> None:
    speed = step_speed(run_log([8.0] * 20 + [3600.0] + [8.0] * 20, total=100))
    assert speed is not None
    assert speed.seconds == 8.0


def test_a_run_that_got_slower_is_noticed() -> None:
    speed = step_speed(run_log([2.0] * 100 + [8.0] * 400, total=1000))
    assert speed is not None
    assert speed.seconds == 8.0


def test_a_resumed_run_counts_from_where_it_resumed() -> None:
    clocks = (
        StepClock(40, 0.0),
        StepClock(42, 0.0, ("resume",)),
        *(StepClock(42 + n, 5.0 * n) for n in range(1, 9)),
    )
    speed = step_speed(RunLog(clocks=clocks, resume_step=40))
    assert speed is not None
    assert speed.seconds == 5.0


def test_a_clock_that_was_set_back_gives_no_negative_time() -> None:
    clocks = [StepClock(n, 8.0 * n) for n in range(10)] + [StepClock(n, 8.0 * n - 70) for n in range(10, 20)]
    speed = step_speed(RunLog(clocks=tuple(clocks)))
    assert speed is not None
    assert speed.seconds == 8.0


def test_below_the_resolution_the_bar_is_believed() -> None:
    quick = run_log([0.05] * 30, total=1000, bar_seconds_per_step=0.047)
    speed = step_speed(quick)
    assert speed is not None
    assert speed.seconds == 0.047
    assert step_speed(run_log([0.05] * 10, total=1000)) is None


@pytest.mark.parametrize("steps", [0, 1])
def test_nothing_is_said_of_nothing(steps: int) -> None:
    assert step_speed(RunLog()) is None
    assert step_speed(RunLog(clocks=tuple(StepClock(n, 0.0) for n in range(steps)))) is None
