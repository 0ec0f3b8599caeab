"""The demo's jobs are real, are nobody else's, and end with the demo however it ends."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.waiting import wait_until

from tui.collect.proc import Proc
from tui.demo.stage import Stage, remove_left_over
from tui.jobs.client import FoundJob, list_jobs
from tui.jobs.roots import state_roots


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    stage = Stage(steps=2000, seconds=0.02)
    yield stage
    if stage.root.exists():
        stage.close()


def is_alive(pid: int, start: int) -> bool:
    stat = Proc().stat(pid)
    return stat is not None and stat.start == start and stat.state != "Z"


def test_a_run_is_kept_and_ends_with_the_stage(stage: Stage) -> None:
    found = stage.start(stage.configs()[0], os.environ)
    main = found.record.main
    assert main is not None
    assert found.folder.is_kept()
    assert is_alive(main.pid, main.start)
    stage.close()
    assert not is_alive(main.pid, main.start)
    assert not stage.root.exists()


def test_demo_jobs_are_not_among_the_users_jobs(stage: Stage) -> None:
    stage.start(stage.configs()[0], os.environ)
    assert [type(job) for job in list_jobs([stage.root])] == [FoundJob]
    assert all(stage.root not in (root, *root.parents) for root in state_roots(os.environ))


def test_there_is_a_config_that_goes_well_and_one_per_way_to_fail(stage: Stage) -> None:
    names = [path.stem for path in stage.configs()]
    assert names[0] == "qwen-lora"
    assert "out-of-memory-at-backward" in names
    assert "--fail-at" not in stage.command(stage.configs()[0])
    assert stage.command(stage.root / "configs" / "out-of-memory-at-eval.yaml")[-2:] == ("--fail-at", "eval")


_DEMO = """
import os, sys, time
from tui.demo.stage import Stage
stage = Stage(steps=2000, seconds=0.02)
found = stage.start(stage.configs()[0], os.environ)
print(stage.root, found.record.main.pid, found.record.main.start, flush=True)
time.sleep(600)
"""


def test_killing_the_demo_ends_its_jobs_and_the_next_demo_removes_the_rest(tmp_path: Path) -> None:
    environ = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-c", _DEMO], env=environ, stdout=subprocess.PIPE, text=True
    ) as demo:
        assert demo.stdout is not None
        root, pid, start = demo.stdout.readline().split()
        assert is_alive(int(pid), int(start))
        demo.send_signal(signal.SIGKILL)
    wait_until(lambda: not is_alive(int(pid), int(start)), 10, "the child has noticed")
    (job,) = list_jobs([Path(root)])
    assert isinstance(job, FoundJob)
    wait_until(lambda: not job.folder.is_kept(), 20, "the keeper is done")
    subprocess.run(
        [sys.executable, "-c", "from tui.demo.stage import remove_left_over; remove_left_over()"],
        env=environ,
        check=True,
    )
    assert not Path(root).exists()


def test_a_living_demo_is_left_alone(stage: Stage) -> None:
    remove_left_over()
    assert stage.root.exists()
