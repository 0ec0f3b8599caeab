"""The job folder on real disks: whole records whatever happens, requests, the lock."""

import errno
import json
import os
import re
import signal
import stat
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from support.folders import RECORD
from support.waiting import wait_until

from tui.facts.errors import LlamaherdError
from tui.jobs.folder import RESERVE, JobFolder, create_folder, new_nonce


@pytest.fixture
def folder(tmp_path: Path) -> JobFolder:
    return create_folder(tmp_path / "jobs", "lora", 1_700_000_000.0, "3f2a77")


def test_a_folder_is_private_and_named_by_time_config_and_nonce(folder: JobFolder) -> None:
    assert re.fullmatch(r"\d{8}-\d{6}-lora-3f2a", folder.path.name)
    for path in (folder.path, folder.path / "requests", folder.path.parent):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
    folder.write_record(RECORD)
    assert stat.S_IMODE(folder.record.stat().st_mode) == 0o600
    assert folder.read_record() == RECORD


@pytest.mark.parametrize(
    ("stem", "word"), [("训练", "job"), ("a b/../c", "a-b-..-c"), ("x" * 100, "x" * 24), ("..", "job")]
)
def test_any_config_name_gives_a_plain_folder_name(tmp_path: Path, stem: str, word: str) -> None:
    name = create_folder(tmp_path, stem, 0.0, new_nonce()).path.name
    assert re.fullmatch(rf"\d{{8}}-\d{{6}}-{re.escape(word)}-[0-9a-f]{{4}}", name)


def test_two_jobs_never_share_a_folder(folder: JobFolder) -> None:
    with pytest.raises(LlamaherdError) as refused:
        create_folder(folder.path.parent, "lora", 1_700_000_000.0, "3f2a99")
    assert refused.value.code == "state_not_writable"


def test_a_reader_never_sees_half_a_record_though_the_writer_is_killed(folder: JobFolder) -> None:
    code = (
        "import sys; from dataclasses import replace; from pathlib import Path;"
        "from tui.jobs.folder import JobFolder; f = JobFolder(Path(sys.argv[1])); r = f.read_record()\n"
        "while True:\n"
        "    r = replace(r, adopted=r.adopted + 1, command=('x' * (r.adopted * 997 % 50_000),))\n"
        "    f.write_record(r)"
    )
    folder.write_record(RECORD)
    last = 0
    for _ in range(5):
        writer = subprocess.Popen([sys.executable, "-c", code, str(folder.path)])
        first = last
        while last < first + 20:
            last = folder.read_record().adopted
        writer.kill()
        writer.wait()
        last = folder.read_record().adopted
    assert last >= 100


def test_an_unreadable_record_is_named(folder: JobFolder) -> None:
    for content, reason in ((None, "No such file"), (b"{", "not JSON"), (b'{"schema":7}', "schema 7")):
        if content is not None:
            folder.record.write_bytes(content)
        with pytest.raises(LlamaherdError) as unreadable:
            folder.read_record()
        assert unreadable.value.code == "job_unreadable"
        assert unreadable.value.values["path"] == str(folder.path)
        assert reason in str(unreadable.value.values["reason"])


def test_a_full_disk_takes_the_reserve_and_not_the_truth(
    folder: JobFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.write_record(RECORD)
    reserve = folder.path / "reserve"
    assert reserve.stat().st_blocks * 512 >= RESERVE
    write = os.write

    def full_but_for_the_reserve(descriptor: int, data: bytes) -> int:
        if reserve.exists():
            raise OSError(errno.ENOSPC, "full")
        return write(descriptor, data)

    def full(*_: int) -> None:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(os, "write", full_but_for_the_reserve)
    monkeypatch.setattr(os, "posix_fallocate", full)
    ended = replace(RECORD, state="ended")
    folder.write_record(ended)
    assert folder.read_record() == ended
    assert not reserve.exists()
    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="full"):
        folder.write_record(RECORD)
    assert folder.read_record() == ended
    monkeypatch.undo()
    folder.write_record(RECORD)
    assert reserve.exists()


def test_a_really_full_disk(tmp_path: Path) -> None:
    """A tmpfs of 1 MiB in a mount namespace of its own."""
    code = (
        "import sys; from dataclasses import replace; from pathlib import Path;"
        "from support.folders import RECORD; from tui.jobs.folder import create_folder;"
        "root = Path(sys.argv[1]); f = create_folder(root, 'x', 0.0, 'abcd'); f.write_record(RECORD)\n"
        "with (root / 'fill').open('wb', buffering=0) as fill:\n"
        "    try:\n"
        "        while True: fill.write(bytes(4096))\n"
        "    except OSError as error: assert error.errno == 28\n"
        "for n in range(30):\n"
        "    f.write_record(replace(RECORD, adopted=n)); assert f.read_record().adopted == n\n"
        "try:\n"
        "    f.append_events([{'text': 'x' * 100_000}])\n"
        "except OSError: print('held back', f.events.stat().st_size)\n"
    )
    script = 'mount -t tmpfs -o size=1m tmpfs "$1" && exec "$2" -c "$3" "$1"'
    environ = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    command = ["unshare", "-Urm", "/bin/sh", "-c", script, "sh", str(tmp_path), sys.executable, code]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environ)
    if "unshare" in done.stderr or "mount:" in done.stderr:
        pytest.skip(f"no namespace of our own: {done.stderr.strip()}")
    assert (done.stdout.strip(), done.returncode) == ("held back 0", 0), done.stderr


def test_requests_are_asked_once_and_can_be_taken_back(folder: JobFolder) -> None:
    assert folder.requests() == frozenset()
    assert folder.request("stop")
    assert not folder.request("stop")
    assert folder.request("force")
    (folder.path / "requests" / "nonsense").touch()
    assert folder.requests() == {"stop", "force"}
    folder.withdraw(["stop", "cancel"])
    assert folder.requests() == {"force"}


def test_of_many_who_ask_at_once_one_is_first(folder: JobFolder) -> None:
    answers: list[bool] = []
    threads = [threading.Thread(target=lambda: answers.append(folder.request("stop"))) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [False] * 19 + [True]


def test_the_lock_lives_and_dies_with_its_holder(folder: JobFolder) -> None:
    assert not folder.is_kept()
    code = (
        "import sys, time; from pathlib import Path; from tui.jobs.folder import JobFolder;"
        "JobFolder(Path(sys.argv[1])).lock(); time.sleep(600)"
    )
    holder = subprocess.Popen([sys.executable, "-c", code, str(folder.path)])
    wait_until(folder.is_kept, 10, "locked")
    assert folder.lock() is None
    assert folder.is_kept()
    os.kill(holder.pid, signal.SIGKILL)
    holder.wait()
    assert not folder.is_kept()
    descriptor = folder.lock()
    assert descriptor is not None
    assert not os.get_inheritable(descriptor)
    assert folder.is_kept()
    os.close(descriptor)


def test_who_only_looks_at_the_lock_keeps_no_keeper_from_it(folder: JobFolder) -> None:
    done = threading.Event()

    def look() -> None:
        while not done.is_set():
            folder.is_kept()

    lookers = [threading.Thread(target=look) for _ in range(2)]
    for looker in lookers:
        looker.start()
    try:
        for _ in range(20):
            descriptor = folder.lock(patience=5.0)
            assert descriptor is not None
            os.close(descriptor)
    finally:
        done.set()
        for looker in lookers:
            looker.join()


def test_events_are_lines_of_json(folder: JobFolder) -> None:
    folder.append_events([])
    assert not folder.events.exists()
    folder.append_events([{"event": "a", "text": "x\ny\udcff"}, {"event": "b"}])
    folder.append_events([{"event": "c"}])
    lines = folder.events.read_text().splitlines()
    assert [json.loads(line)["event"] for line in lines] == ["a", "b", "c"]
