"""Where the words of somebody else's run are found, on real files and a real process."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.training_logs import LOGS

from tui.collect.proc import Proc
from tui.operate.foreign_log import ForeignLog


@pytest.fixture
def silent() -> Iterator[int]:
    """A process whose output goes nowhere."""
    child = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", "import time; time.sleep(600)"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    yield child.pid
    child.kill()
    child.wait()


def line(step: int, *, loss: float | None = 2.0) -> str:
    values = {"current_steps": step, "total_steps": 90, "elapsed_time": "0:00:09", "loss": loss}
    return json.dumps({name: value for name, value in values.items() if value is not None}) + "\n"


def test_the_log_that_the_webui_keeps_for_its_run(silent: int, tmp_path: Path) -> None:
    began = time.time() - 1
    found = ForeignLog(Proc(), tmp_path, None)
    assert found.update([silent]) is None
    shutil.copy(LOGS / "v4-webui-running_log.txt", tmp_path / "running_log.txt")
    os.utime(tmp_path / "running_log.txt", (began, began))
    log = found.update([silent])
    assert log is not None
    assert log.plan.total_steps == 1125
    found.close()
    newer = ForeignLog(Proc(), tmp_path, began + 100)
    assert newer.update([silent]) is None, "it is of an older run"
    newer.close()


def test_the_lines_that_every_run_writes(silent: int, tmp_path: Path) -> None:
    found = ForeignLog(Proc(), tmp_path, time.time() - 60)
    (tmp_path / "trainer_log.jsonl").write_text(line(5) + line(10))
    log = found.update([silent])
    assert log is not None
    assert (log.step, log.stage, log.training_completed) == (10, "train", False)
    assert log.changed_at == pytest.approx(time.monotonic(), abs=5), "its age is that of the file"
    with (tmp_path / "trainer_log.jsonl").open("a") as file:
        file.write(line(90) + line(90, loss=None))
    log = found.update([silent])
    assert log is not None
    assert (log.step, log.stage, log.training_completed) == (90, "save", True)


def test_output_to_a_file_that_is_gone_is_no_error(tmp_path: Path) -> None:
    path = tmp_path / "out.log"
    with path.open("wb") as file:
        child = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", "import time; time.sleep(600)"], stdout=file, stderr=file
        )
    try:
        path.unlink()
        assert ForeignLog(Proc(), None, time.time()).update([child.pid]) is None
    finally:
        child.kill()
        child.wait()
