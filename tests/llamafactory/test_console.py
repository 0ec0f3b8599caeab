import pytest
from support.training_logs import PLAN_BLOCK, bar, facts_of, log_bytes

from tui.facts.training import Plan
from tui.llamafactory.console import FRAGMENT_LIMIT, ConsoleParser


def test_the_plan_is_read_from_its_block() -> None:
    assert facts_of(log_bytes("v4-torchrun-sigterm-agent")).plan == Plan(
        examples=1800,
        epochs=5,
        batch_per_device=1,
        effective_batch=8,
        accumulation=4,
        total_steps=1125,
        trainable_parameters=8192,
    )
    assert facts_of(log_bytes("v5-resume-first")).plan.steps_per_epoch == 90


def test_metrics_of_both_versions_get_their_step() -> None:
    for name, rate in (("v4-resume-first", 0.0006058519361147054), ("v5-resume-first", 0.0006059)):
        facts = facts_of(log_bytes(name))
        losses = {point.step: point for point in facts.metrics if point.loss is not None}
        assert list(losses) == list(range(5, 50, 5))
        assert losses[45].loss == pytest.approx(5.064, abs=0.001)
        assert losses[45].learning_rate == rate
        evals = [point for point in facts.metrics if point.eval_loss is not None]
        assert [(point.step, round(point.eval_loss or 0, 2)) for point in evals] == [(40, 5.09)]


def test_the_losses_of_a_stream_without_bars_have_no_step() -> None:
    facts = facts_of(log_bytes("v4-stdout"))
    assert [point.step for point in facts.metrics if point.loss is not None] == [None] * 9
    assert facts.train_metrics["train_loss"] == pytest.approx(5.397, abs=0.001)


def test_a_loss_printed_twice_is_one_point() -> None:
    facts = facts_of(log_bytes("v4-llamaboard"))
    losses = [point for point in facts.metrics if point.loss is not None]
    assert [point.step for point in losses] == list(range(5, 341, 5))
    assert losses[-1].tokens_seen == 86040


def test_records_that_come_in_one_burst_stay_without_a_step() -> None:
    burst = b"".join(b"\n{'loss': %d.5, 'grad_norm': 1.0, 'epoch': 0.05}" % n for n in range(3))
    facts = facts_of(PLAN_BLOCK + bar(0, 0) + bar(5, 10) + burst + b"\n" + bar(5, 10) + b"\n")
    assert [point.step for point in facts.metrics] == [None, None, None]


def test_a_record_of_another_epoch_than_the_bar_shows_stays_without_a_step() -> None:
    late = b"\n{'loss': 1.5, 'grad_norm': 1.0, 'epoch': 0.1}\n"
    facts = facts_of(PLAN_BLOCK + bar(0, 0) + bar(60, 120) + late + bar(60, 120) + b"\n")
    assert [point.step for point in facts.metrics] == [None]


def test_stages_are_seen_in_their_order() -> None:
    facts = facts_of(log_bytes("v5-resume-first"))
    expected = ("start", "import", "dataset", "tokenize", "load", "prepare", "train", "save", "eval")
    assert facts.seen == expected


def test_a_tokeniser_bar_is_never_training_progress() -> None:
    data = log_bytes("v4-oom-load")
    cut = data.index(b"200/200 [00:00<00:00, 1212.75")
    facts = facts_of(data[:cut] + b"200/200 [00:00<00:00, 1212.75 examples/s]")
    assert facts.stage == "tokenize"
    assert facts.step is None
    assert facts.bar is not None
    assert (facts.bar.kind, facts.bar.done, facts.bar.total) == ("tokenize", 200, 200)


def test_an_evaluation_of_as_many_batches_as_there_are_steps_is_no_progress() -> None:
    started = PLAN_BLOCK + bar(0, 0) + bar(50, 100) + b"[INFO|trainer.py:4643] 2026-11-29 14:45:13,908 >> \n"
    started += b"***** Running Evaluation *****\n\n"
    for batch in (1, 70, 100):
        started += bar(batch, batch // 10, rate="9.00it/s")
        assert facts_of(started).step == 50, "the end of the bar's escape sequence has not come yet"
        started += b"\x1b[A\n"
        facts = facts_of(started)
        assert (facts.stage, facts.step) == ("eval", 50)
        assert facts.bar is not None
        assert (facts.bar.kind, facts.bar.done) == ("eval", batch)


def test_the_unfinished_last_bar_counts() -> None:
    data = PLAN_BLOCK + bar(0, 0) + bar(3, 6) + bar(4, 8)
    assert facts_of(data).step == 4
    assert facts_of(data[:-1]).step == 3, "a bar that is not whole is not read"


def test_a_step_is_placed_within_its_second_by_its_arrival() -> None:
    parser = ConsoleParser()
    parser.feed(PLAN_BLOCK + bar(0, 0), 500.0)
    for step in range(1, 6):
        elapsed = 2.4 * step
        parser.feed(bar(step, int(elapsed)), 500.0 + elapsed)
    clocks = parser.facts().clocks
    assert [clock.step for clock in clocks] == [0, 1, 2, 3, 4, 5]
    assert [clock.at for clock in clocks] == pytest.approx([0, 2.4, 4.8, 7.2, 9.6, 12.0])


def test_history_read_at_once_keeps_the_seconds_of_the_bar() -> None:
    facts = facts_of(PLAN_BLOCK + b"".join(bar(step, int(2.4 * step)) for step in range(6)))
    assert [clock.at for clock in facts.clocks] == [0, 2, 4, 7, 9, 12]


def test_marks_tell_what_an_interval_holds() -> None:
    marks = {clock.step: clock.marks for clock in facts_of(log_bytes("v4-stderr")).clocks if clock.marks}
    assert marks == {21: ("eval", "save"), 41: ("eval", "save")}
    resumed = facts_of(log_bytes("v4-resume-second"))
    assert resumed.clocks[0].step == 40
    assert resumed.clocks[1].marks == ("resume",)
    assert resumed.bar_seconds_per_step is None, "the bar's rate counts the jump as steps"


def test_a_second_run_in_the_same_log_starts_afresh() -> None:
    facts = facts_of(log_bytes("v4-oom-forward") + log_bytes("v4-resume-first"))
    assert facts.failure is None
    assert (facts.step, facts.plan.total_steps) == (46, 90)
    again = facts_of(log_bytes("v4-torchrun-2rank") * 2)
    assert again == facts_of(log_bytes("v4-torchrun-2rank"))


def test_a_failure_that_the_run_survived_is_none() -> None:
    trace = b'\nTraceback (most recent call last):\n  File "a.py", line 1, in f\nValueError: caught\n'
    data = PLAN_BLOCK + bar(0, 0) + bar(5, 10) + trace
    assert facts_of(data + bar(6, 12)).failure is not None
    assert facts_of(data + bar(6, 12) + bar(9, 18)).failure is None


def test_words_of_the_trainer_in_a_data_set_mean_nothing() -> None:
    dump = (
        b"training example:\ninputs:\n***** Running training *****\n  Total optimization steps = 7\n"
        b"Saving model checkpoint to out/checkpoint-9\nTraining completed. Do not forget\n"
        b"***** Running Evaluation *****\n{'loss': 0.1, 'epoch': 1.0}\n 10%|#| 3/7 [00:01<00:02, 1.0s/it]\n"
    )
    facts = facts_of(dump + PLAN_BLOCK)
    assert facts.stage == "train"
    assert facts.step is None
    assert facts.metrics == ()
    assert facts.saves == ()


def test_the_stops_of_a_tokenising_run_are_no_failure() -> None:
    lines = b'Process ForkPoolWorker-1:\nTraceback (most recent call last):\n  File "x.py", line 3, in map\n'
    facts = facts_of(lines + b"KeyboardInterrupt\n")
    assert facts.interrupted
    assert facts.failure is None


def test_nan_and_inf_stay_what_they_are() -> None:
    lines = b"\n{'loss': nan, 'grad_norm': inf, 'epoch': 0.05}\n"
    quoted = b"\n{'loss': 'nan', 'grad_norm': 'inf', 'learning_rate': '5.387e+05', 'epoch': '0.06'}\n"
    facts = facts_of(PLAN_BLOCK + bar(5, 10) + lines + bar(5, 10) + bar(6, 12) + quoted + bar(6, 12))
    assert [str(point.loss) for point in facts.metrics] == ["nan", "nan"]
    assert [str(point.grad_norm) for point in facts.metrics] == ["inf", "inf"]
    assert [point.step for point in facts.metrics] == [5, 6]
    assert facts.metrics[1].learning_rate == 538700.0


def test_colours_nul_bytes_and_wrong_encoding_do_no_harm() -> None:
    plan = PLAN_BLOCK.replace(b"Total optimization", b"\x1b[32mTotal\x1b[0m optimization")
    data = plan + b"\0\0\0" + bar(0, 0) + b"\n\xff\xfe\xe6\n" + bar(4, 8) + b"\0\0"
    facts = facts_of(data)
    assert (facts.step, facts.plan.total_steps) == (4, 100)


def test_memory_is_bounded() -> None:
    parser = ConsoleParser()
    parser.feed(PLAN_BLOCK.replace(b"= 100\n", b"= 999,999\n"), 0.0)
    for step in range(6000):
        drawn = bar(step, step, 999_999)
        parser.feed(drawn + b"\n{'loss': 1.5, 'epoch': 0.5}\n" + drawn, 0.0)
    parser.feed(b"x" * (3 * FRAGMENT_LIMIT), 0.0)
    facts = parser.facts()
    assert facts.step == 5999
    assert len(facts.clocks) <= 1024
    assert len(facts.metrics) <= 4096
    assert len(parser._pending) <= FRAGMENT_LIMIT


def test_a_message_hides_secrets() -> None:
    token = "hf_" + "a" * 30
    trace = f'Traceback (most recent call last):\n  File "a.py", line 1, in f\nOSError: token {token}\n'
    failure = facts_of(trace.encode()).failure
    assert failure is not None
    assert token not in failure.message
