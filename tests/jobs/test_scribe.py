"""Writing on a thread: never in the way, never given up."""

import errno
import json
import shutil
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from support.folders import RECORD
from support.waiting import wait_until

from tui.facts.job import JobRecord
from tui.jobs.folder import JobFolder, create_folder
from tui.jobs.scribe import Scribe


@pytest.fixture
def folder(tmp_path: Path) -> JobFolder:
    return create_folder(tmp_path, "x", 0.0, "abcd")


def test_everything_is_on_disk_when_it_closes(folder: JobFolder) -> None:
    scribe = Scribe(folder)
    for number in range(200):
        scribe.record(replace(RECORD, adopted=number))
        scribe.event("n", number=number)
    scribe.close()
    assert folder.read_record().adopted == 199
    events = [json.loads(line) for line in folder.events.read_text().splitlines()]
    assert [event["number"] for event in events] == list(range(200))
    assert all(abs(event["at"] - time.time()) < 60 for event in events)


def test_a_full_disk_is_outlasted_and_the_last_state_is_true(
    folder: JobFolder, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    folder.write_record(RECORD)
    full = threading.Event()
    full.set()
    write = JobFolder.write_record

    def maybe(self: JobFolder, record: JobRecord) -> None:
        if full.is_set():
            raise OSError(errno.ENOSPC, "No space left on device")
        write(self, record)

    monkeypatch.setattr(JobFolder, "write_record", maybe)
    scribe = Scribe(folder, retry=0.01)
    scribe.event("first")
    scribe.record(replace(RECORD, state="running"))
    scribe.record(replace(RECORD, state="ended"))
    scribe.event("second")
    closer = threading.Thread(target=scribe.close)
    closer.start()
    closer.join(0.2)
    assert closer.is_alive()
    assert folder.read_record() == RECORD
    full.clear()
    closer.join(10)
    assert not closer.is_alive()
    assert folder.read_record().state == "ended"
    assert [json.loads(line)["event"] for line in folder.events.read_text().splitlines()] == [
        "first",
        "second",
    ]
    assert capfd.readouterr().err.count("No space left") == 1


def test_a_folder_that_was_removed_is_not_waited_for(folder: JobFolder) -> None:
    folder.write_record(RECORD)
    scribe = Scribe(folder, retry=0.01)
    shutil.rmtree(folder.path)
    scribe.record(RECORD)
    scribe.event("gone")
    scribe.close()
    assert not folder.path.exists()


def test_a_stalled_disk_holds_nobody_up(folder: JobFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    stalled = threading.Event()
    going_on = threading.Event()

    def stall(_: JobFolder, __: JobRecord) -> None:
        stalled.set()
        going_on.wait(30)

    monkeypatch.setattr(JobFolder, "write_record", stall)
    scribe = Scribe(folder)
    scribe.record(RECORD)
    assert stalled.wait(10)
    began = time.monotonic()
    for _ in range(1000):
        scribe.record(RECORD)
        scribe.event("x")
    assert time.monotonic() - began < 10
    going_on.set()
    scribe.close()


def test_a_grown_log_is_shortened_and_that_is_told(folder: JobFolder) -> None:
    size = 100 << 20
    with folder.log.open("wb") as log:
        log.truncate(size)
    scribe = Scribe(folder)
    scribe.event("hello")
    wait_until(
        lambda: folder.events.exists() and "log_shortened" in folder.events.read_text(), 10, "shortened"
    )
    scribe.close()
    assert folder.log.stat().st_size == size
