"""The demo's log reads like LLaMA-Factory's: stages, steps, failures."""

import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.waiting import wait_until

from tui.demo import child
from tui.facts.training import RunLog
from tui.llamafactory.follow import LogFollower
from tui.llamafactory.output import read_output


@pytest.fixture
def lock(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "alive.lock"
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield path


def command(lock: Path, output: Path, *more: str) -> list[str]:
    fixed = ["--lock", str(lock), "--output", str(output), "--seconds", "0.001", "--steps", "60"]
    return [sys.executable, "-I", child.__file__, *fixed, *more]


def run(lock: Path, output: Path, *more: str) -> tuple[int, RunLog]:
    log = output.parent / "train.log"
    with log.open("wb") as file:
        done = subprocess.run(command(lock, output, *more), stdout=file, stderr=file, check=False, timeout=60)
    follower = LogFollower(log)
    try:
        return done.returncode, follower.update(0.0, 0.0)
    finally:
        follower.close()


def test_a_whole_run(lock: Path, tmp_path: Path) -> None:
    code, log = run(lock, tmp_path / "saves")
    assert code == 0
    assert log.step == 60
    assert log.plan.total_steps == 60
    assert log.plan.effective_batch == 32
    assert {"tokenize", "load", "train"} <= set(log.seen)
    assert log.training_completed
    assert log.failure is None
    assert log.metrics[-1].loss is not None
    output = read_output(tmp_path / "saves")
    assert [checkpoint.step for checkpoint in output.checkpoints if checkpoint.complete] == [20, 40, 60]
    assert output.global_step == 60


@pytest.mark.parametrize("stage", child.STAGES)
def test_it_runs_out_of_memory_where_it_is_told_to(lock: Path, tmp_path: Path, stage: str) -> None:
    code, log = run(lock, tmp_path / "saves", "--fail-at", stage)
    assert code == 1
    assert log.failure is not None
    assert log.failure.kind == "cuda_oom"
    assert log.failure.stage == stage
    assert log.failure.allocation is not None


def test_sigabrt_saves_and_leaves(lock: Path, tmp_path: Path) -> None:
    output = tmp_path / "saves"
    argv = [*command(lock, output), "--steps", "100000"]
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        wait_until(lambda: (output / "checkpoint-20" / "trainer_state.json").exists(), 20, "the first save")
        process.send_signal(signal.SIGABRT)
        assert process.wait(20) == 0
    assert read_output(output).global_step is not None


def test_it_ends_when_nobody_holds_the_lock(tmp_path: Path) -> None:
    lock = tmp_path / "alive.lock"
    descriptor = os.open(lock, os.O_CREAT | os.O_RDWR)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    argv = [*command(lock, tmp_path / "saves"), "--steps", "100000"]
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        wait_until(lambda: (tmp_path / "saves").exists(), 20, "it runs")
        assert process.poll() is None
        os.close(descriptor)
        assert process.wait(10) == 0
