from dataclasses import replace

import pytest
from support.runs import run_log

from tui.facts.training import Bar, Checkpoint, OutputFacts, Pause, Plan, RunLog, Schedule, StepMark
from tui.insight.pauses import due, eval_seconds, is_due_at, save_seconds, step_of_eval
from tui.insight.speed import step_speed

BY_STEPS = Schedule(eval_steps=20, save_steps=30, final_eval=True)


def log_of(total: int, **more: object) -> RunLog:
    return replace(run_log([], total=total), **more)  # type: ignore[arg-type]  # fields of RunLog


@pytest.mark.parametrize(
    ("schedule", "step", "total", "evals", "saves"),
    [
        (BY_STEPS, 0, 45, 2, 2),  # 20 40; 30 and the one at the last step
        (BY_STEPS, 20, 45, 1, 2),
        (BY_STEPS, 40, 60, 1, 1),  # the last step is a multiple: no save more
        (BY_STEPS, 60, 60, 0, 0),
        (Schedule(eval_steps=0.1, save_steps=0.5), 0, 45, 9, 2),  # ceil(4.5) = 5, ceil(22.5) = 23
        (Schedule(), 0, 45, 0, 0),
        (Schedule(save_steps=500), 0, 45, 0, 1),
        (Schedule(eval_epochs=True, save_epochs=True), 0, 45, 1, 1),
        (Schedule(eval_epochs=True, save_epochs=True), 45, 45, 0, 0),
    ],
)
def test_what_is_still_to_come(schedule: Schedule, step: int, total: int, evals: int, saves: int) -> None:
    to_come = due(log_of(total), schedule, step, total)
    assert (to_come.evals, to_come.saves) == (evals, saves)


def test_epochs_end_where_the_plan_says() -> None:
    log = RunLog(plan=Plan(total_steps=136, epochs=2))
    by_epochs = Schedule(eval_epochs=True, save_epochs=True)
    assert due(log, by_epochs, 0, 136).evals == 2
    assert due(log, by_epochs, 68, 136).evals == 1
    cut_short = RunLog(plan=Plan(total_steps=100, epochs=2, steps_per_epoch=68))
    assert due(cut_short, by_epochs, 68, 100).saves == 1


def test_without_a_schedule_the_log_shows_it() -> None:
    log = log_of(100, evals=(Pause(20), Pause(40)), saves=(Pause(50),))
    to_come = due(log, None, 52, 100)
    assert (to_come.evals, to_come.saves, to_come.final_eval) == (3, 1, True)
    assert due(log_of(100), None, 52, 100).final_eval is False


def test_the_step_of_an_evaluation_that_the_bar_has_not_shown() -> None:
    assert step_of_eval(log_of(100), BY_STEPS, 17, 100) == 20
    assert step_of_eval(log_of(100), BY_STEPS, 20, 100) == 20
    assert step_of_eval(log_of(100), Schedule(eval_epochs=True), 17, 100) == 17


def test_when_a_save_is_due() -> None:
    assert is_due_at(30, 60, 100)
    assert is_due_at(30, 100, 100), "the last step"
    assert not is_due_at(30, 50, 100)
    assert not is_due_at(None, 60, 100)


def marked(step: int, *marks: StepMark, seconds: float) -> RunLog:
    taken = [seconds if n == step else 8.0 for n in range(1, 31)]
    return run_log(taken, total=100, marks={step: marks})


def test_evaluations_are_timed_by_their_own_word_first() -> None:
    log = marked(21, "eval", seconds=50.0)
    reported = log_of(100, evals=(Pause(20, 31.0), Pause(40, 33.0)))
    assert eval_seconds(reported, None) == 32.0
    assert eval_seconds(log, step_speed(log)) == 42.0
    under_way = log_of(100, bar=Bar("eval", 50, 200, 10.0))
    assert eval_seconds(under_way, None) == 40.0
    assert eval_seconds(log_of(100), None) is None


def test_a_save_lasts_until_its_last_file() -> None:
    log = marked(21, "save", seconds=20.0)
    assert save_seconds(log, None, step_speed(log)) == 12.0
    began = 1_795_963_446.5
    with_clock = marked(21, "save", seconds=20.0)
    with_clock = run_log(
        [20.0 if n == 21 else 8.0 for n in range(1, 31)],
        total=100,
        marks={21: ("save",)},
        saves=(Pause(20, began=began),),
    )
    output = OutputFacts("o", True, (Checkpoint("c", 20, True, began + 9.5),))
    assert save_seconds(with_clock, output, step_speed(with_clock)) == 9.5
    other_zone = OutputFacts("o", True, (Checkpoint("c", 20, True, began + 3609.5),))
    assert save_seconds(with_clock, other_zone, step_speed(with_clock)) == 12.0


def test_an_evaluation_in_the_same_interval_is_not_part_of_the_save() -> None:
    taken = [50.0 if n == 21 else 8.0 for n in range(1, 31)]
    log = run_log(taken, total=100, marks={21: ("eval", "save")}, evals=(Pause(20, 31.0),))
    assert save_seconds(log, None, step_speed(log)) == 11.0
