"""What goes on behind a run: real parent chains, read before anything is stopped."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.waiting import wait_until

from tui.collect.proc import Proc
from tui.facts.machine import ProcessInfo
from tui.operate.behind import behind
from tui.operate.foreign_stop import look

PROC = Proc()
SLEEP = f"{sys.executable} -I -S -c 'import time; time.sleep(600)' llamafactory-cli train a.yaml"


@contextmanager
def shell(*command: str, cwd: Path) -> Iterator[tuple[int, int]]:
    """PID of the shell and of what runs below it."""
    with subprocess.Popen(command, cwd=cwd, stdin=subprocess.DEVNULL, start_new_session=True) as process:
        try:
            (child,) = wait_until(lambda: PROC.children(process.pid), 10, "something runs in the shell")
            wait_until(lambda: "train" in (PROC.command(child) or ()), 10, "the run itself")
            yield process.pid, child
        finally:
            os.killpg(process.pid, signal.SIGKILL)


def codes(pid: int, shell_pid: int) -> list[str]:
    """What is said of the shell; whoever runs these tests stands behind it, too."""
    population = look(PROC)
    cwds = {parent: cwd for parent in population.infos if (cwd := PROC.cwd(parent))}
    return [item.code for item in behind(pid, population.infos, cwds) if item.pid == shell_pid]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (f"{SLEEP} && /no/such/shutdown", ["shutdown"]),
        (f"{SLEEP}; /no/such/shutdown", ["shutdown"]),
        (f"while true; do {SLEEP}; done", ["loop"]),
        (f"for n in 1 2 3; do {SLEEP}; done; /no/such/poweroff", ["shutdown", "loop"]),
        (f"{SLEEP}\nllamafactory-cli train b.yaml", ["next_run"]),
        (f"true; {SLEEP}; true # then shutdown", []),
        (f"{SLEEP}; echo no-shutdown-today", []),
    ],
)
def test_a_line_given_to_a_shell(tmp_path: Path, line: str, expected: list[str]) -> None:
    with shell("/bin/sh", "-c", line, cwd=tmp_path) as (pid, run):
        assert codes(run, pid) == expected


def test_a_script_is_read_from_its_own_folder(tmp_path: Path) -> None:
    (tmp_path / "night.sh").write_text(f"set -u\n{SLEEP}\n/no/such/shutdown\n")
    with shell("/bin/sh", "night.sh", cwd=tmp_path) as (pid, run):
        assert codes(run, pid) == ["shutdown"]


def info(pid: int, ppid: int, *command: str, kind: str = "other") -> ProcessInfo:
    return ProcessInfo(pid, ppid, 1, "sleeping", "root", command, kind)  # type: ignore[arg-type]  # a kind


@pytest.mark.parametrize(
    ("parent", "expected"),
    [
        (info(2, 1, "-bash"), ["prompt"]),
        (info(2, 1, "/usr/bin/bash", "--norc"), ["prompt"]),
        (info(2, 1, "supervisord", "-c", "x"), ["restarter"]),
        (info(2, 1, "python", "tune.py"), ["program"]),
        (info(2, 1, "sshd: root@pts/0"), []),
        (info(2, 1, "tmux", "new"), []),
        (info(2, 1, "python", "/x/bin/llamafactory-cli", "webui", kind="webui"), []),
        (info(2, 1), []),
        (info(2, 1, "sh", "-c"), []),
        (info(2, 1, "sh", "/no/such/script"), []),
        (info(2, 1, "sh", "a\0b"), []),
        (info(2, 1, "sh", "-ec", "\udcff" * 100_000), []),
    ],
)
def test_other_parents(parent: ProcessInfo, expected: list[str]) -> None:
    infos = {2: parent, 3: info(3, 2, "llamafactory-cli", "train", "x.yaml")}
    assert [item.code for item in behind(3, infos, {})] == expected


def test_a_ring_of_parents_ends() -> None:
    infos = {2: info(2, 3, "a"), 3: info(3, 2, "b")}
    assert [item.pid for item in behind(3, infos, {})] == [2, 3]
