"""Old job folders go; nothing that runs, is kept, or cannot be read ever does."""

import os
from dataclasses import replace
from pathlib import Path

from support.folders import RECORD
from support.jobs import Yard

from tui.jobs.folder import JobFolder, create_folder
from tui.jobs.prune import find_old, remove


def made(root: Path, name: str, ended_at: float | None, **changes: object) -> JobFolder:
    folder = create_folder(root / "jobs", name, 0.0, "abcd")
    record = replace(RECORD, id=folder.path.name, state="ended", ended_at=ended_at)
    folder.write_record(replace(record, **changes))  # type: ignore[arg-type]  # fields of the record
    return folder


def test_only_what_is_long_over_is_old(tmp_path: Path) -> None:
    old = made(tmp_path, "old", 100.0)
    made(tmp_path, "young", 300.0)
    made(tmp_path, "running", None, state="running")
    lost = made(tmp_path, "lost", None, state="lost")
    os.utime(lost.record, (150.0, 150.0))
    torn = made(tmp_path, "torn", 1.0)
    torn.record.write_bytes(b"{")
    (old.path / "train.log").write_bytes(b"x" * 100_000)
    found = find_old([tmp_path], 200.0)
    assert {item.job.folder for item in found} == {old, lost}
    by_folder = {item.job.folder: item for item in found}
    assert by_folder[old].size >= 100_000
    assert (by_folder[old].over_since, by_folder[lost].over_since) == (100.0, 150.0)


def test_removing_follows_no_link_and_leaves_no_trace(tmp_path: Path) -> None:
    outside = tmp_path / "weights"
    outside.mkdir()
    (outside / "model").touch()
    old = made(tmp_path, "old", 100.0)
    (old.path / "link").symlink_to(outside)
    (item,) = find_old([tmp_path], 200.0)
    assert remove(item)
    assert list((tmp_path / "jobs").iterdir()) == []
    assert (outside / "model").exists()


def test_who_runs_again_or_is_kept_stays(tmp_path: Path, jobs: Yard) -> None:
    old = made(tmp_path, "old", 100.0)
    (item,) = find_old([tmp_path], 200.0)
    lock = old.lock()
    assert lock is not None
    assert not remove(item)
    os.close(lock)
    old.write_record(replace(old.read_record(), state="running"))
    assert not remove(item)
    assert old.path.exists()
    job = jobs.start("sleeper")
    assert find_old([jobs.root], 1e12) == ()
    job.stop()
    assert len(find_old([jobs.root], 1e12)) == 1
