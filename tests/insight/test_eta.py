import re
from dataclasses import replace
from statistics import median

import pytest
from support.runs import run_log
from support.training_logs import facts_of, log_bytes

from tui.facts.training import (
    Bar,
    Checkpoint,
    EtaWorking,
    Failure,
    MetricPoint,
    OutputFacts,
    Pause,
    RunLog,
    Schedule,
)
from tui.insight.eta import USUAL_EXIT, progress

STEADY = [8.0] * 40
EVERY = Schedule(eval_steps=60, save_steps=100, final_eval=True)


def test_the_sum_behind_an_eta() -> None:
    log = run_log(STEADY, total=160, evals=(Pause(20, 31.0),))
    shown = progress(log, None, EVERY, now=100.0)
    assert shown.eta_working == EtaWorking(
        steps_left=120,
        seconds_per_step=8.0,
        evals_left=2,
        seconds_per_eval=31.0,
        saves_left=2,
        seconds_per_save=None,
        tail=31.0 + USUAL_EXIT,
    )
    assert shown.eta == 120 * 8 + 2 * 31 + 31 + USUAL_EXIT
    assert (shown.step, shown.total, shown.fraction) == (40, 160, 0.25)
    assert (shown.stage, shown.source, shown.age) == ("train", "bar", 0.0)
    assert shown.samples_per_second == 4.0
    assert shown.effective_batch == 32


def test_before_the_first_evaluation_it_is_a_lower_bound() -> None:
    shown = progress(run_log(STEADY, total=160), None, EVERY)
    assert shown.eta_working is not None
    assert shown.eta_working.at_least
    assert shown.eta == 120 * 8 + USUAL_EXIT
    assert shown.eta_high is None
    no_evaluation = progress(run_log(STEADY, total=160), None, Schedule(save_steps=500))
    assert no_evaluation.eta_working is not None
    assert not no_evaluation.eta_working.at_least


def test_a_prediction_at_the_end_is_of_unknown_length() -> None:
    shown = progress(run_log(STEADY, total=160), None, Schedule(final_predict=True))
    assert shown.eta_working is not None
    assert shown.eta_working.at_least


def test_the_time_since_the_last_step_counts() -> None:
    log = run_log(STEADY, total=160)
    assert progress(log, None, Schedule(), now=103.0).eta == 120 * 8 - 3 + USUAL_EXIT
    assert progress(log, None, Schedule(), now=100.0 + 3600).eta == 119 * 8 + USUAL_EXIT, "at most one step"
    assert progress(log, None, Schedule(), now=103.0).age == 3.0


def test_an_evaluation_under_way_is_counted_by_what_is_left_of_it() -> None:
    log = run_log(STEADY, total=160, stage="eval", evals=(Pause(20, 30.0),), bar=Bar("eval", 50, 100, 15.0))
    shown = progress(log, None, Schedule(eval_steps=40, save_steps=40, final_eval=True), now=102.0)
    assert shown.eta_working is not None
    assert shown.eta_working.current == 30.0 - 15.0 - 2.0
    assert (shown.eta_working.evals_left, shown.eta_working.saves_left) == (3, 4)
    assert shown.bar == Bar("eval", 50, 100, 15.0)


def test_a_save_is_over_when_its_checkpoint_is_complete() -> None:
    log = run_log(STEADY, total=160, stage="save", saves=(Pause(40, began=5000.0),), began_at=4000.0)
    assert progress(log).stage == "save"
    torn = OutputFacts("o", True, (Checkpoint("c", 40, False, None),))
    assert progress(log, torn).stage == "save"
    whole = OutputFacts("o", True, (Checkpoint("c", 40, True, 5003.0),))
    assert progress(log, whole).stage == "train"
    stale = OutputFacts("o", True, (Checkpoint("c", 40, True, 3000.0),))
    assert progress(log, stale).stage == "save", "a checkpoint of an older run in the same folder"


def test_after_the_last_step_the_rest_is_still_to_come() -> None:
    done = run_log(
        STEADY,
        total=40,
        stage="save",
        training_completed=True,
        evals=(Pause(20, 30.0),),
        saves=(Pause(20, began=5000.0),),
        began_at=4000.0,
    )
    output = OutputFacts("o", True, (Checkpoint("c", 20, True, 5004.0),))
    shown = progress(done, output, EVERY, now=101.0)
    assert shown.eta == 3.0 + 30.0 + USUAL_EXIT, "what is left of the final save, and the final evaluation"
    final = run_log(
        STEADY,
        total=40,
        stage="final_eval",
        training_completed=True,
        evals=(Pause(20, 30.0),),
        bar=Bar("eval", 20, 100, 6.0),
    )
    assert progress(final, None, EVERY, now=100.0).eta == 24.0 + USUAL_EXIT


def test_the_range_holds_what_steps_vary() -> None:
    steady = progress(run_log(STEADY, total=160), None, Schedule())
    assert steady.eta_low == steady.eta == steady.eta_high
    uneven = progress(run_log([6.0, 8.0, 10.0] * 15, total=145), None, Schedule())
    assert uneven.eta is not None
    assert uneven.eta_low is not None
    assert uneven.eta_high is not None
    assert uneven.eta_low < uneven.eta < uneven.eta_high < uneven.eta * 1.2


def test_an_ended_run_has_no_eta() -> None:
    shown = progress(run_log(STEADY, total=160), ended=True)
    assert (shown.stage, shown.eta, shown.eta_working, shown.bar) == ("ended", None, None, None)
    assert shown.seen[-1] == "ended"
    assert shown.unknown["eta"] == "not_reported"
    assert shown.step == 40


def test_without_a_log_the_final_state_tells_the_step() -> None:
    shown = progress(RunLog(), OutputFacts("o", True, global_step=90, max_steps=90), ended=True)
    assert (shown.step, shown.total, shown.fraction, shown.source) == (90, 90, 1.0, "trainer_state")


def test_before_training_nothing_is_claimed() -> None:
    shown = progress(RunLog(stage="tokenize", bar=Bar("tokenize", 5, 10)), now=1.0)
    assert (shown.stage, shown.bar) == ("tokenize", Bar("tokenize", 5, 10))
    assert (shown.step, shown.eta, shown.fraction, shown.age) == (None, None, None, None)
    assert shown.unknown["eta"] == "not_yet"
    first = progress(run_log([], total=100))
    assert (first.step, first.eta) == (0, None)


def test_tokens_are_counted_over_steps() -> None:
    points = tuple(MetricPoint(step=step, loss=1.0, tokens_seen=step * 4000) for step in (10, 20, 30))
    assert progress(run_log(STEADY, total=160, metrics=points)).tokens_per_second == 500.0
    resumed = (MetricPoint(step=40, tokens_seen=None), *points)
    assert progress(run_log(STEADY, total=160, metrics=resumed)).tokens_per_second == 500.0


def test_the_newest_values_are_shown() -> None:
    points = (
        MetricPoint(step=10, loss=2.0, epoch=0.1),
        MetricPoint(step=10, eval_loss=2.5, epoch=0.1),
        MetricPoint(step=20, loss=1.5, epoch=0.2),
    )
    shown = progress(run_log(STEADY, total=160, metrics=points))
    assert (shown.loss, shown.eval_loss, shown.epoch) == (1.5, 2.5, 0.2)


def test_the_last_checkpoint_is_of_this_run() -> None:
    folder = OutputFacts(
        "o",
        True,
        (
            Checkpoint("a", 20, True, 5001.0),
            Checkpoint("b", 40, False, None),
            Checkpoint("c", 500, True, 100.0),
        ),
    )
    assert progress(run_log(STEADY, total=160, began_at=4000.0), folder).last_checkpoint == 20
    resumed = run_log([8.0], total=600, first=500, began_at=6000.0)
    assert progress(resumed, folder).last_checkpoint == 500, "it goes on from there"
    assert progress(run_log(STEADY, total=160), None).last_checkpoint is None


RUN_SECONDS = 163.3
"""From the first bar of the recorded run to the end of its process."""


def test_a_recorded_run_read_from_its_file_alone() -> None:
    """Cut at every bar, as one ``status`` would find it; steps there take between 1 and 6 seconds."""
    data = log_bytes("v4-stderr")
    schedule = Schedule(eval_steps=20, save_steps=20, final_eval=True)
    errors, bars_errors, lowest = [], [], []
    for match in re.finditer(rb"\| (\d+)/45 \[(\d+):(\d+)<(\d+):(\d+), [^\]]*\]", data):
        elapsed = int(match[2]) * 60 + int(match[3])
        true = RUN_SECONDS - elapsed - 0.5
        shown = progress(facts_of(data[: match.end()], at=7.0), None, schedule, now=7.0)
        if elapsed < RUN_SECONDS / 10:
            continue
        assert shown.step == int(match[1])
        assert shown.eta is not None
        assert shown.eta_working is not None
        errors.append(abs(shown.eta - true) / true)
        bars_errors.append(abs(int(match[4]) * 60 + int(match[5]) - true) / true)
        lowest.append(shown.eta_working.at_least)
    assert median(errors) < 0.13
    assert median(errors) < median(bars_errors) / 2 + 0.01
    assert lowest[0]
    assert not lowest[-1]


def test_a_resumed_run_is_not_timed_from_step_0() -> None:
    data = log_bytes("v4-resume-second")
    cut = data.index(b"80/90 [00:02")
    shown = progress(facts_of(data[: data.index(b"]", cut) + 1]), None, Schedule(40, 20, final_eval=True))
    assert shown.eta is not None
    assert 0.3 < shown.eta - USUAL_EXIT < 2.0
    assert shown.seconds_per_step == pytest.approx(0.05, abs=0.02)


def test_leaving_takes_its_share_of_the_time_that_the_imports_took() -> None:
    log = run_log([8.0] * 60, total=180, began_at=1_000_040.0)
    for imports, leaving in ((1.0, 1.5), (10.0, 3.5), (60.0, 4.0)):
        known = progress(log, None, Schedule(), now=100.0, started_at=1_000_040.0 - imports)
        assert known.eta_working is not None
        assert known.eta_working.tail == leaving
    for elsewhere in (1_000_041.0, 990_000.0):
        shown = progress(log, None, Schedule(), now=100.0, started_at=elsewhere)
        assert shown.eta_working is not None
        assert shown.eta_working.tail == USUAL_EXIT, "a clock of another zone says nothing"


def test_a_trial_tells_what_the_whole_plan_would_take() -> None:
    log = run_log([8.0] * 10, total=20)
    log = replace(log, plan=replace(log.plan, examples=3200))
    trial = progress(log, None, Schedule(epochs=3.0, max_steps=20), now=100.0)
    assert (trial.total, trial.full_total, trial.full_seconds) == (20, 300, 2400.0)
    assert trial.eta is not None
    assert trial.eta < 100, "its own end"
    assert trial.coverage is not None
    assert trial.coverage.first_update
    whole = progress(log, None, Schedule(epochs=3.0), now=100.0)
    assert (whole.full_total, whole.full_seconds) == (None, None)


def test_the_final_state_of_an_older_run_is_not_taken() -> None:
    output = OutputFacts("out", exists=True, global_step=90, max_steps=90, trainer_state_at=500.0)
    failure = Failure("cuda_oom", "load", None, "")
    failed = RunLog(stage="load", seen=("start", "import", "load"), failure=failure)
    assert progress(failed, output, ended=True).step is None
    assert progress(RunLog(began_at=600.0), output, ended=True).step is None
    assert progress(RunLog(began_at=400.0), output, ended=True).step == 90
