import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.training_logs import LOGS, facts_of, log_bytes

from tui.facts.training import Plan, RunLog
from tui.llamafactory.trainer_log import (
    LogEntry,
    TrainerLogFollower,
    read_trainer_log,
    segments,
    with_trainer_log,
)


def line(step: int, elapsed: str = "0:00:01", **more: object) -> bytes:
    values = {"current_steps": step, "total_steps": 90, "loss": 5.0, "elapsed_time": elapsed, **more}
    return json.dumps({name: value for name, value in values.items() if value is not None}).encode() + b"\n"


def test_a_recorded_file() -> None:
    entries, offset = read_trainer_log(LOGS / "v4-trainer_log.jsonl")
    assert offset == (LOGS / "v4-trainer_log.jsonl").stat().st_size
    assert len(segments(entries)) == 1
    assert entries[4] == LogEntry(
        step=20, total=45, elapsed=72.0, epoch=0.4444444444444444, eval_loss=5.36521053314209
    )
    tokens, _ = read_trainer_log(LOGS / "v4-trainer_log-tokens-vram.jsonl")
    assert [entry.total_tokens for entry in tokens] == [552, 1096, 1640, 1640]


def test_runs_in_one_file() -> None:
    entries, _ = read_trainer_log(LOGS / "v4-trainer_log-resumed.jsonl")
    runs = segments(entries)
    # stopped at 45; resumed from 40 and finished; started again with nothing left to train
    assert [(run[0].step, run[-1].step, len(run)) for run in runs] == [(5, 45, 10), (45, 90, 12), (90, 90, 1)]


def test_a_run_that_failed_early_and_was_started_again(tmp_path: Path) -> None:
    path = tmp_path / "trainer_log.jsonl"
    path.write_bytes(line(5) + line(5) + line(10))
    assert [len(run) for run in segments(read_trainer_log(path)[0])] == [1, 2]


def test_a_torn_last_line_waits(tmp_path: Path) -> None:
    path = tmp_path / "trainer_log.jsonl"
    whole = line(5)
    path.write_bytes(whole + line(10)[:20])
    entries, offset = read_trainer_log(path)
    assert ([entry.step for entry in entries], offset) == ([5], len(whole))
    assert read_trainer_log(path, offset) == ((), offset)
    path.write_bytes(whole + line(10))
    assert [entry.step for entry in read_trainer_log(path, offset)[0]] == [10]


def test_days_and_numbers_that_json_does_not_know(tmp_path: Path) -> None:
    path = tmp_path / "trainer_log.jsonl"
    path.write_bytes(line(5, "1 day, 2:03:04", loss=float("nan"), eval_loss=float("inf"), lr=10**400))
    (entry,), _ = read_trainer_log(path)
    assert entry.elapsed == 93784.0
    assert str((entry.loss, entry.eval_loss, entry.learning_rate)) == "(nan, inf, None)"


def test_lines_of_other_kinds_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "trainer_log.jsonl"
    bad = [b"{", b"[1]", b"null", b'{"current_steps": "5"}', b'{"current_steps": true}', b"[" * 9999, b"\xff"]
    path.write_bytes(b"\n".join(bad) + b"\n" + line(5) + b"x" * (1 << 17) + b"\n" + line(10))
    assert [entry.step for entry in read_trainer_log(path)[0]] == [5, 10]


def test_of_a_very_long_file_the_end_is_read(tmp_path: Path) -> None:
    path = tmp_path / "trainer_log.jsonl"
    path.write_bytes(b"".join(line(step, "0:00:01", loss=None) for step in range(150_000)))
    assert path.stat().st_size > 8 << 20
    entries, offset = read_trainer_log(path)
    assert entries[-1].step == 149_999
    assert entries[0].step > 0
    assert offset == path.stat().st_size


@given(st.binary(max_size=300))
@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bytes(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "any.jsonl"
    path.write_bytes(data)
    entries, offset = read_trainer_log(path)
    segments(entries)
    assert 0 <= offset <= len(data)


def test_following_knows_which_run_is_the_newest(tmp_path: Path) -> None:
    path = tmp_path / "trainer_log.jsonl"
    follower = TrainerLogFollower(path)
    assert follower.update() == ()
    path.write_bytes(line(40) + line(45))
    assert [entry.step for entry in follower.update()] == [40, 45]
    with path.open("ab") as file:
        file.write(line(45, "0:00:00"))
    assert [entry.step for entry in follower.update()] == [45]
    path.unlink()
    assert follower.update() == ()
    path.write_bytes(line(5))
    assert [entry.step for entry in follower.update()] == [5]


def test_lines_older_than_the_run_are_of_another(tmp_path: Path) -> None:
    path = tmp_path / "trainer_log.jsonl"
    path.write_bytes(line(40) + line(45))
    written = path.stat().st_mtime
    assert TrainerLogFollower(path, since=written + 1).update() == ()
    assert TrainerLogFollower(path, since=written - 1).update() != ()


def entries_of(name: str) -> tuple[LogEntry, ...]:
    return segments(read_trainer_log(LOGS / name)[0])[-1]


def test_a_run_without_bars_gets_its_steps_from_the_file() -> None:
    console = facts_of(log_bytes("v4-no-bars"))
    log = with_trainer_log(console, entries_of("v4-no-bars.trainer_log.jsonl"))
    assert (log.step, log.source, log.plan.total_steps) == (12, "trainer_log", 12)
    assert [(point.step, point.eval_loss is not None) for point in log.metrics] == [
        (2, False),
        (4, False),
        (6, False),
        (6, True),
        (8, False),
        (10, False),
        (12, False),
        (12, True),
    ]
    assert [clock.step for clock in log.clocks] == [2, 4, 6, 8, 10, 12]
    assert log.clocks[3].marks == ("eval",)


def test_without_any_console_log_the_file_times_the_evaluations() -> None:
    log = with_trainer_log(RunLog(), entries_of("v4-trainer_log.jsonl"))
    assert (log.step, log.plan.total_steps) == (45, 45)
    assert [(pause.step, pause.seconds) for pause in log.evals] == [(20, 5.0), (40, 9.0)]
    assert {clock.step: clock.marks for clock in log.clocks if clock.marks} == {25: ("eval",), 45: ("eval",)}


def test_the_console_stays_the_finer_source() -> None:
    console = facts_of(log_bytes("v4-llamaboard"))
    log = with_trainer_log(console, entries_of("v4-llamaboard.trainer_log.jsonl"))
    assert (log.source, log.clocks) == ("bar", console.clocks)
    assert log.metrics == console.metrics


def test_lines_of_another_plan_change_nothing() -> None:
    log = RunLog(plan=Plan(total_steps=1000), step=3)
    assert with_trainer_log(log, entries_of("v4-trainer_log.jsonl")) is log
    assert with_trainer_log(log, ()) is log


@pytest.mark.parametrize("offset", [10_000, 1 << 40])
def test_an_offset_behind_the_end(tmp_path: Path, offset: int) -> None:
    path = tmp_path / "trainer_log.jsonl"
    path.write_bytes(line(5))
    assert read_trainer_log(path, offset)[1] == len(line(5))
