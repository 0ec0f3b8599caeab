"""The /proc reader on this very kernel, on real children, and on hostile fixtures."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.waiting import wait_until

from tui.collect.proc import Proc, ProcessStat, ancestors, descendants, minors, parse_stat

SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]


def test_reads_this_process() -> None:
    proc = Proc()
    me = proc.stat(os.getpid())
    assert me is not None
    assert (me.pid, me.ppid, me.pgid) == (os.getpid(), os.getppid(), os.getpgrp())
    assert me.alive
    assert me.resident > 1 << 20
    status = proc.status(os.getpid())
    assert status is not None
    assert status.uid == os.getuid()
    assert proc.cwd(os.getpid()) == str(Path.cwd())
    assert (proc.command(os.getpid()) or ("",))[0]
    assert os.getpid() in proc.table()
    assert proc.boot_id()
    assert proc.init_start() >= 0
    assert (proc.boot_time() or 0) > 1e9


def test_signal_masks_of_a_real_child() -> None:
    code = (
        "import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN);"
        "signal.signal(signal.SIGTERM, lambda *_: None); print('ready', flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        status = Proc().status(child.pid)
        child.kill()
    assert status is not None
    assert status.ignores(signal.SIGINT)
    assert not status.ignores(signal.SIGTERM)
    assert status.catches(signal.SIGTERM)
    assert not status.catches(signal.SIGUSR2)


def test_environment_and_command_of_a_real_child() -> None:
    with subprocess.Popen([*SLEEP, "", "a b"], env={"A": "1=2", "EMPTY": ""}) as child:
        proc = Proc()
        wait_until(lambda: (proc.command(child.pid) or ())[:1] == (sys.executable,), 10, "exec")
        environment = proc.environment(child.pid)
        assert proc.has_environment_entry(child.pid, b"A=1=2")
        assert not proc.has_environment_entry(child.pid, b"A=1")
        command = proc.command(child.pid)
        child.kill()
    assert environment == {"A": "1=2", "EMPTY": ""}
    assert command == (*SLEEP, "", "a b")


def test_a_zombie_is_not_alive_and_a_reaped_process_is_gone() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    proc = Proc()
    stat = wait_until(lambda: (s := proc.stat(child.pid)) and not s.alive and s, 10, "zombie")
    assert isinstance(stat, ProcessStat)
    assert stat.state == "Z"
    assert proc.command(child.pid) == ()
    child.wait()
    assert proc.stat(child.pid) is None
    assert proc.status(child.pid) is None
    assert proc.command(child.pid) is None
    assert list(proc.open_files(child.pid)) == []


def test_children_of_this_process() -> None:
    proc = Proc()
    with subprocess.Popen(SLEEP) as child:
        if not Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").exists():
            assert proc.children(os.getpid()) == []
        else:
            assert child.pid in proc.children(os.getpid())
        child.kill()
    assert child.pid not in proc.children(os.getpid())


def test_ports_of_a_listening_socket() -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        port = server.getsockname()[1]
        assert port not in Proc().ports([os.getpid()])
        server.listen()
        assert Proc().ports([os.getpid()])[port] == os.getpid()
        assert next(item for item in Proc().listeners() if item.port == port).loopback
    assert port not in Proc().ports([os.getpid()])


def test_a_file_open_for_writing_is_told_from_one_that_is_read(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    proc = Proc()
    with log.open("ab"):
        assert proc.writes(os.getpid(), str(log))
        assert not proc.writes(os.getpid(), str(tmp_path / "other.log"))
    with log.open("rb"):
        assert not proc.writes(os.getpid(), str(log))


def test_device_minors_ignore_control_devices(tmp_path: Path) -> None:
    folder = tmp_path / "5" / "fd"
    folder.mkdir(parents=True)
    for number, target in enumerate(
        ["/dev/nvidia3", "/dev/nvidia11", "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/null", "/dev/nvidia²"]
    ):
        (folder / str(number)).symlink_to(target)
    assert Proc(tmp_path).device_minors(5) == {3, 11}
    assert minors(["/x/nvidia7"], "/x/nvidia") == {7}


@pytest.mark.parametrize("name", [b"a) S 1", b"((", b"x\xff\n", b"", b")"])
def test_hostile_process_names(name: bytes) -> None:
    line = b"42 (%s) R 7 8 9 0 -1 0 0 0 0 0 12 34 0 0 20 0 1 0 777 1000 5 0\n" % name
    stat = parse_stat(line, 4096)
    assert stat is not None
    assert (stat.pid, stat.ppid, stat.pgid, stat.session, stat.start) == (42, 7, 8, 9, 777)
    assert (stat.user_ticks, stat.system_ticks, stat.resident) == (12, 34, 5 * 4096)


@given(st.binary(max_size=400))
def test_any_stat_bytes_never_raise(data: bytes) -> None:
    parse_stat(data, 4096)


def test_missing_root_is_empty(tmp_path: Path) -> None:
    proc = Proc(tmp_path / "none")
    assert proc.pids() == []
    assert proc.table() == {}
    assert proc.listeners() == ()
    assert proc.boot_id() == ""


def test_descendants_and_ancestors_survive_a_cycle() -> None:
    def stat(pid: int, ppid: int) -> ProcessStat:
        return ProcessStat(pid, "x", "S", ppid, 0, 0, 0, 0, 0, 1, 0)

    table = {pid: stat(pid, ppid) for pid, ppid in [(1, 0), (2, 1), (3, 2), (4, 3), (5, 1), (8, 9), (9, 8)]}
    assert descendants(2, table) == [3, 4]
    assert set(descendants(1, table)) == {2, 3, 4, 5}
    assert set(descendants(8, table)) == {9}
    assert ancestors(4, table.get) == [3, 2, 1]
    assert ancestors(8, table.get) == [9, 8]
