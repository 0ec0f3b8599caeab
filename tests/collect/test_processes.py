"""Process facts of real children, and of fixtures for what a real child cannot be made to be."""

import os
import pwd
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.waiting import wait_until

from tui.collect.proc import Proc, ProcessStat
from tui.collect.processes import STATES, ProcessReader
from tui.facts.unknown import Unknown

SLEEP = "import sys; sys.stdin.read()"
SECRET = "hf_abcdefghijklmnopqrstuvwxyz"  # made up


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
    _wait_until_it_runs(child)
    table = Proc().table()
    infos = ProcessReader(Proc()).read([child.pid, 2**22 + 5], table)
    assert infos.keys() == {child.pid}
    info = infos[child.pid]
    assert info.user == pwd.getpwuid(os.getuid()).pw_name
    assert (info.ppid, info.start) == (os.getpid(), table[child.pid].start)
    assert info.state in ("sleeping", "running")
    assert info.command == (sys.executable, "-c", SLEEP, "config.yaml", "--hub_token", "***")
    assert info.environment == {"HF_TOKEN": "***", "CUDA_VISIBLE_DEVICES": "0"}
    assert info.unknown == {"cpu_used": "not_yet"}
    assert info.kind == "other"
    assert info.started_at is not None
    assert abs(info.started_at - time.time()) < 60
    assert info.resident is not None
    assert 1 << 20 < info.resident < 1 << 30
    assert (info.threads, info.title) == (1, None)


def test_states_of_a_real_child(child: "subprocess.Popen[bytes]") -> None:
    _wait_until_it_runs(child)
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


def _wait_until_it_runs(child: "subprocess.Popen[bytes]") -> None:
    """Within exec the kernel shows no command line for an instant, and Python then grows for a while."""

    def runs() -> bool:
        stat = Proc().stat(child.pid)
        return bool(Proc().command(child.pid)) and stat is not None and stat.resident > 2 << 20

    wait_until(runs, 10, "the child runs its program")


def test_every_letter_of_the_kernel_has_a_state() -> None:
    assert set("RSDTtZXxI") == STATES.keys()


class Fixture:
    """One process in a folder, whose files are written as wanted."""

    def __init__(self, root: Path) -> None:
        self.folder = root / "7"
        self.folder.mkdir()
        self.proc = CountingProc(root)
        self.now = 0.0
        self.reader = ProcessReader(self.proc, lambda: self.now)
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

    def unknown(self) -> Unknown:
        """Without what a single look at a folder without a boot time never has."""
        return {
            name: reason
            for name, reason in self.info.unknown.items()
            if name not in ("cpu_used", "started_at")
        }


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
    assert fixture.unknown() == dict.fromkeys(("command", "environment", "user"), "not_yet")
    assert fixture.info.state == "disk_wait"
    assert fixture.proc.reads == 0
    assert fixture.command("S") == ("python", "train.py")
    assert not fixture.unknown()


def test_a_user_without_a_name_is_a_number(fixture: Fixture) -> None:
    fixture.command()
    assert fixture.info.user == "4242424"


def test_what_may_not_be_read_has_a_reason(fixture: Fixture) -> None:
    (fixture.folder / "environ").unlink()
    (fixture.folder / "cmdline").unlink()
    assert fixture.command() == ()
    assert fixture.unknown() == {"command": "no_permission", "environment": "no_permission"}


def test_a_process_that_is_gone_says_so(fixture: Fixture) -> None:
    for file in fixture.folder.iterdir():
        file.unlink()
    fixture.command()
    assert fixture.info.user is None
    assert fixture.unknown() == dict.fromkeys(("command", "environment", "user"), "process_gone")


def test_cpu_is_counted_between_two_looks_that_are_not_close_together(tmp_path: Path) -> None:
    fixture = Fixture(tmp_path)
    second = 1 / os.sysconf("SC_CLK_TCK")

    def cpu(at: float, ticks: int) -> float | None:
        fixture.now = at
        stat = ProcessStat(7, "python", "S", 1, 7, 7, 0, ticks, 2 * ticks, 5, 4096)
        info = fixture.reader.read([7], {7: stat})[7]
        assert ("cpu_used" in info.unknown) == (info.cpu_used is None)
        return info.cpu_used

    assert cpu(100.0, 50) is None
    assert cpu(100.1, 90) is None, "too soon to tell"
    assert cpu(101.0, 100) == pytest.approx(150 * second)
    assert cpu(101.1, 100) == pytest.approx(150 * second), "still the last answer"
    assert cpu(102.0, 100) == 0.0


def test_what_did_not_change_is_the_same_object(fixture: Fixture) -> None:
    for second in range(4):
        fixture.now = float(second)
        fixture.command()
        before = fixture.info
    fixture.now = 4.0
    fixture.command()
    assert fixture.info is before
    fixture.command(state="R")
    assert fixture.info is not before
