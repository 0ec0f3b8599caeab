"""Process facts of real children, and of fixtures for what a real child cannot be made to be."""

import os
import pwd
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.waiting import wait_until

from tui.collect.proc import Proc, ProcessStat
from tui.collect.processes import STATES, ProcessReader

SLEEP = "import sys; sys.stdin.read()"
SECRET = "hf_abcdefghijklmnopqrstuvwxyz"  # noqa: S105  (made up)


@pytest.fixture
def child() -> Iterator["subprocess.Popen[bytes]"]:
    process = subprocess.Popen(
        [sys.executable, "-c", SLEEP, "config.yaml", "--hub_token", "abc123"],
        stdin=subprocess.PIPE,
        env={"HF_TOKEN": SECRET, "CUDA_VISIBLE_DEVICES": "0"},
    )
    proc = Proc()
    wait_until(lambda: (proc.command(process.pid) or ())[-1:] == ("abc123",), 10, "exec")
    yield process
    process.kill()
    process.communicate()


def test_a_real_child_with_its_secrets_masked(child: "subprocess.Popen[bytes]") -> None:
    table = Proc().table()
    infos = ProcessReader(Proc()).read([child.pid, 2**22 + 5], table)
    assert infos.keys() == {child.pid}
    info = infos[child.pid]
    assert info.user == pwd.getpwuid(os.getuid()).pw_name
    assert (info.ppid, info.start) == (os.getpid(), table[child.pid].start)
    assert info.state in ("sleeping", "running")
    assert info.command == (sys.executable, "-c", SLEEP, "config.yaml", "--hub_token", "***")
    assert info.environment == {"HF_TOKEN": "***", "CUDA_VISIBLE_DEVICES": "0"}
    assert not info.unknown
    assert info.kind == "other"


def test_states_of_a_real_child(child: "subprocess.Popen[bytes]") -> None:
    reader = ProcessReader(Proc())
    child.send_signal(signal.SIGSTOP)

    def state() -> str:
        return reader.read([child.pid], Proc().table())[child.pid].state

    wait_until(lambda: state() == "stopped", 10, "stopped")
    child.kill()
    wait_until(lambda: state() == "zombie", 10, "zombie")
    zombie = reader.read([child.pid], Proc().table())[child.pid]
    assert zombie.command[-1] == "***", "what was read while it lived is kept"
    child.communicate()
    assert reader.read([child.pid], Proc().table()) == {}


def test_every_letter_of_the_kernel_has_a_state() -> None:
    assert set("RSDTtZXxI") == STATES.keys()


class Fixture:
    """One process in a folder, whose files are written as wanted."""

    def __init__(self, root: Path) -> None:
        self.folder = root / "7"
        self.folder.mkdir()
        self.proc = CountingProc(root)
        self.reader = ProcessReader(self.proc)
        self.become("python", "train.py")

    def become(self, *argv: str, uid: int = 4242424) -> None:
        (self.folder / "cmdline").write_bytes(b"".join(word.encode() + b"\0" for word in argv))
        (self.folder / "environ").write_bytes(b"A=1\0")
        (self.folder / "status").write_text(f"Uid:\t{uid}\t0\nSigIgn:\t0\nSigCgt:\t0\n")
        (self.folder / "stat").write_text("7 (python) S 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 5 0 0\n")

    def command(self, state: str = "S", comm: str = "python", start: int = 5) -> tuple[str, ...]:
        stat = ProcessStat(7, comm, state, 1, 7, 7, 0, 0, 0, start, 0)
        self.info = self.reader.read([7], {7: stat})[7]
        return self.info.command


class CountingProc(Proc):
    reads = 0

    def environment(self, pid: int) -> dict[str, str] | None:
        self.reads += 1
        return super().environment(pid)


@pytest.fixture
def fixture(tmp_path: Path) -> Fixture:
    return Fixture(tmp_path)


def test_it_is_read_at_the_first_two_sights_and_then_left_alone(fixture: Fixture) -> None:
    assert fixture.command() == ("python", "train.py")
    fixture.become("nvidia-smi")
    assert fixture.command() == ("nvidia-smi",), "the first look fell between fork and exec"
    fixture.become("changed")
    assert [fixture.command() for _ in range(9)] == [("nvidia-smi",)] * 9
    assert fixture.proc.reads == 2
    assert fixture.command(comm="VLLM::Engine") == ("changed",), "a new title means a new program"
    fixture.become("other")
    assert fixture.command(start=6) == ("other",), "the PID was reused"


def test_a_process_that_waits_in_the_kernel_is_not_asked(fixture: Fixture) -> None:
    assert fixture.command("D") == ()
    assert fixture.info.unknown == {"command": "not_yet", "environment": "not_yet"}
    assert fixture.info.state == "disk_wait"
    assert fixture.proc.reads == 0
    assert fixture.command("S") == ("python", "train.py")
    assert not fixture.info.unknown


def test_a_user_without_a_name_is_a_number(fixture: Fixture) -> None:
    fixture.command()
    assert fixture.info.user == "4242424"


def test_what_may_not_be_read_has_a_reason(fixture: Fixture) -> None:
    (fixture.folder / "environ").unlink()
    (fixture.folder / "cmdline").unlink()
    assert fixture.command() == ()
    assert fixture.info.unknown == {"command": "no_permission", "environment": "no_permission"}


def test_a_process_that_is_gone_says_so(fixture: Fixture) -> None:
    for file in fixture.folder.iterdir():
        file.unlink()
    fixture.command()
    assert fixture.info.user is None
    assert fixture.info.unknown == dict.fromkeys(("command", "environment", "user"), "process_gone")
