"""The gate: nothing runs before it is opened, and nothing at all if it never is."""

import os
import sys
from pathlib import Path

from support.waiting import wait_until

from tui.jobs.spawn import NEVER_RAN, fork_at_gate, open_gate, read_report


def command(tmp_path: Path) -> tuple[str, ...]:
    return (sys.executable, "-I", "-S", "-c", f"open({str(tmp_path / 'ran')!r}, 'w'); print('said')")


def test_the_child_waits_for_the_gate(tmp_path: Path) -> None:
    log = tmp_path / "log"
    child = fork_at_gate(command(tmp_path), str(tmp_path), {}, log)
    assert os.waitpid(child.pid, os.WNOHANG) == (0, 0)
    assert read_report(child) is None
    assert not log.exists()
    open_gate(child)
    assert wait_until(lambda: (report := read_report(child)) is not None and [report], 10, "exec") == [""]
    assert os.waitpid(child.pid, 0)[1] == 0
    assert (tmp_path / "ran").exists()
    assert log.read_text() == "said\n"
    os.close(child.report)


def test_a_gate_that_closes_ends_the_child_without_running_anything(tmp_path: Path) -> None:
    child = fork_at_gate(command(tmp_path), str(tmp_path), {}, tmp_path / "log")
    os.close(child.gate)
    _, status = os.waitpid(child.pid, 0)
    assert os.waitstatus_to_exitcode(status) == NEVER_RAN
    assert read_report(child) == ""
    assert not (tmp_path / "ran").exists()
    os.close(child.report)


def test_a_keeper_killed_before_the_gate_leaves_nothing_running(tmp_path: Path) -> None:
    read_end, write_end = os.pipe()
    keeper = os.fork()
    if keeper == 0:
        child = fork_at_gate(command(tmp_path), str(tmp_path), {}, tmp_path / "log")
        os.write(write_end, str(child.pid).encode())
        os.kill(os.getpid(), 9)
    os.waitpid(keeper, 0)
    pid = int(os.read(read_end, 100))
    os.close(read_end)
    os.close(write_end)
    wait_until(lambda: not Path(f"/proc/{pid}/fd/0").exists(), 10, "child gone")
    assert not (tmp_path / "ran").exists()


def test_a_log_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    log = tmp_path / "missing" / "log"
    child = fork_at_gate(command(tmp_path), str(tmp_path), {}, log)
    open_gate(child)
    report = wait_until(lambda: read_report(child), 10, "report")
    assert report == f"log ENOENT {log}"
    os.waitpid(child.pid, 0)
    os.close(child.report)
