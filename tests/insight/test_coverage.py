from dataclasses import replace

from support.runs import run_log

from tui.facts.training import Checkpoint, Coverage, Pause, Plan, RunLog, Schedule
from tui.insight.coverage import coverage

EVERY = Schedule(eval_steps=20, save_steps=50)


def test_nothing_yet() -> None:
    assert coverage(RunLog(), EVERY) == Coverage()


def test_a_trial_of_ten_steps() -> None:
    log = replace(run_log([2.0] * 10, total=130), seen=("start", "load", "prepare", "train"))
    log = replace(log, plan=replace(log.plan, examples=3200))
    assert coverage(log, EVERY) == Coverage(True, True, 0.1, True, False, False, 20, 50)
    log = replace(log, evals=(Pause(20, 3.0),))
    seen = coverage(log, EVERY, [Checkpoint("c", 10, True, 1.0)])
    assert (seen.evaluation, seen.first_eval, seen.save, seen.first_save) == (True, None, True, None)


def test_the_last_step_is_saved_as_well() -> None:
    log = run_log([2.0] * 10, total=30)
    assert coverage(log, EVERY).first_save == 30
    assert coverage(log, Schedule()).first_save is None
    by_epoch = replace(log, plan=Plan(total_steps=30, epochs=2))
    assert coverage(by_epoch, Schedule(save_epochs=True)).first_save == 15
