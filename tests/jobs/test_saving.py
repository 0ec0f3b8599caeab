"""Whether a checkpoint is being written, seen on real folders."""

import os
from pathlib import Path

from support.waiting import wait_until

from tui.jobs.saving import OutputLook, OutputWatch, look


def checkpoint(output: Path, step: int, complete: bool) -> Path:
    folder = output / f"checkpoint-{step}"
    folder.mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(b"x" * 100)
    if complete:
        (folder / "trainer_state.json").write_text("{}")
    return folder


def test_the_newest_checkpoint_counts(tmp_path: Path) -> None:
    assert look(tmp_path / "missing", 0.0) == OutputLook(False, 0)
    assert look(tmp_path, 0.0) == OutputLook(False, 0)
    checkpoint(tmp_path, 9, complete=False)
    assert look(tmp_path, 0.0) == OutputLook(True, 100)
    checkpoint(tmp_path, 10, complete=True)
    (tmp_path / "checkpoint-best").mkdir()
    assert look(tmp_path, 0.0) == OutputLook(False, 202)
    checkpoint(tmp_path, 100, complete=False)
    assert look(tmp_path, 0.0).saving


def test_a_checkpoint_left_by_an_earlier_run_is_no_reason_to_wait(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path, 50, complete=False)
    os.utime(folder, (1000.0, 1000.0))
    assert not look(tmp_path, 2000.0).saving
    assert look(tmp_path, 500.0).saving


def test_the_watch_follows_the_folder(tmp_path: Path) -> None:
    assert OutputWatch(None, 0.0).latest == OutputLook(False, 0)
    folder = checkpoint(tmp_path, 50, complete=False)
    watch = OutputWatch(str(tmp_path), 0.0)
    wait_until(lambda: watch.latest is not None and watch.latest.saving, 10, "saving")
    (folder / "trainer_state.json").write_text("{}")
    wait_until(lambda: watch.latest == OutputLook(False, 102), 10, "saved")
