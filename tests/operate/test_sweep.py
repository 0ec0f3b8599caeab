"""Strays: found, told apart from what merely looks like one, and swept. The trees are imitated; the
processes, keepers and signals are real.
"""

import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from support.folders import RECORD
from support.foreign_runs import PYTHON, alive, enrolled, make_programs, running
from support.jobs import QUICK, kept
from support.waiting import wait_until

from tui.collect.proc import Proc, ProcessStat
from tui.facts.errors import LlamaherdError
from tui.facts.stray import StrayGroup
from tui.jobs.client import wait_stopped
from tui.jobs.folder import create_folder
from tui.jobs.identity import identify
from tui.jobs.strays import TOKEN_VARIABLE, token
from tui.operate import sweep as sweeping

PROC = Proc()
POOL = """
import os, sys, time
from pathlib import Path
enrol("trainer")
pipe = os.pipe()
for _ in range(2):
    if os.fork() == 0:
        enrol("pool")
        time.sleep(600)
time.sleep(600)
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "train.yaml").write_text("stage: sft\n")
    return make_programs(tmp_path)


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    root = tmp_path / "state"
    yield root
    wait_until(lambda: not kept(root), 20, "keepers have left")


def groups_of(place: Path, root: Path) -> list[StrayGroup]:
    """The groups with processes of this test; the machine may have others."""
    mine = enrolled(place / "yard").keys()
    found = sweeping.find_groups([root])
    return [group for group in found if any(stray.process.pid in mine for stray in group.strays)]


def swept(group: StrayGroup, root: Path) -> None:
    found = sweeping.sweep(group, root, graces=QUICK)
    record = wait_stopped(found.folder, lambda _: None)
    assert record.stop is not None
    assert record.stop.left == ()
    assert [step.name for step in record.stop.steps] in (
        ["interrupt", "terminate"],
        ["interrupt", "terminate", "kill"],
    )
    assert record.stop.steps[0].targets == ()


def train(place: Path) -> list[str]:
    return [PYTHON, str(place / "bin" / "llamafactory-cli"), "train", "train.yaml"]


def test_ranks_that_outlived_their_torchrun(place: Path, root: Path) -> None:
    with running(place, train(place), 4, FORCE_TORCHRUN="1", STUBBORN="1") as process:
        assert groups_of(place, root) == [], "as long as they are led they are none"
        agents = [pid for pid, (_, name) in enrolled(place / "yard").items() if name == "agent"]
        os.kill(agents[0], signal.SIGKILL)
        process.wait(10)
        (group,) = wait_until(lambda: groups_of(place, root), 10, "the ranks are strays")
        assert [(stray.reason, stray.obstacle) for stray in group.strays] == [
            ("rank_without_agent", None)
        ] * 2
        assert all(stray.started_at and stray.resident for stray in group.strays)
        swept(group, root)
        assert alive(place / "yard") == {}


def test_an_engine_that_outlived_its_server(place: Path, root: Path) -> None:
    with running(place, [PYTHON, place / "bin" / "vllm", "serve", "model"], 3) as process:
        assert groups_of(place, root) == []
        process.kill()
        process.wait(10)
        (group,) = wait_until(lambda: groups_of(place, root), 10, "the engine is a stray")
        assert [stray.reason for stray in group.strays] == ["engine_without_server"] * 2
        swept(group, root)
        assert alive(place / "yard") == {}


def test_a_pool_that_outlived_its_trainer_and_a_trainer_that_lost_its_terminal(
    place: Path, root: Path
) -> None:
    cli = place / "bin" / "llamafactory-cli"
    plain = cli.read_text()
    cli.write_text(plain.partition('enrol("cli")')[0] + POOL)
    with running(place, train(place), 3) as process:
        assert groups_of(place, root) == []
        process.kill()
        process.wait(10)
        (group,) = wait_until(lambda: groups_of(place, root), 10, "the pool is a stray")
        assert [(s.reason, s.process.role) for s in group.strays] == [("pool_without_trainer", "pool")] * 2
        cli.write_text(plain)
        script = f"{' '.join(train(place))} & {' '.join(train(place))} &"
        with running(place, ["/bin/sh", "-c", script], 2):
            (still,) = groups_of(place, root)
            assert still == group
            swept(group, root)
            assert set(alive(place / "yard").values()) == {"cli"}


def test_who_has_a_terminal_or_only_the_mark_is_shown_and_never_swept(tmp_path: Path, root: Path) -> None:
    """A terminal multiplexer that was started from a job hands its mark to every later shell."""
    main = identify(os.getpid(), PROC)
    assert main is not None
    folder = create_folder(root / "jobs", "x", 0.0, "abcd")
    record = replace(RECORD, id=folder.path.name, state="ended", main=main)
    folder.write_record(record)
    environ = {**os.environ, TOKEN_VARIABLE: token(record.id, record.nonce)}
    life = [sys.executable, "-I", "-S", "-c", "import time; time.sleep(600)"]
    master, terminal = pty.openpty()
    take = f"import fcntl, os, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv({life[0]!r}, {life!r})"
    with folder.log.open("ab") as log:
        carriers = [
            subprocess.Popen(life, env=environ, stdin=subprocess.DEVNULL, start_new_session=True),
            subprocess.Popen(
                [sys.executable, "-c", take], env=environ, stdin=terminal, stdout=log, start_new_session=True
            ),
            subprocess.Popen(life, stdout=log, stdin=subprocess.DEVNULL, start_new_session=True),
        ]
    try:
        wait_until(lambda: (s := PROC.stat(carriers[1].pid)) is not None and s.tty, 10, "has a terminal")
        (group,) = (group for group in sweeping.find_groups([root]) if group.job == record.id)
        shown = {stray.process.pid: (stray.reason, stray.obstacle) for stray in group.strays}
        assert shown == {
            carriers[0].pid: ("token", "unproven"),
            carriers[1].pid: ("token", "terminal"),
            carriers[2].pid: ("log", None),
        }
        swept(group, root)
        assert carriers[2].wait(10) == -signal.SIGTERM
        assert [carrier.poll() for carrier in carriers[:2]] == [None, None]
        (left,) = (group for group in sweeping.find_groups([root]) if group.job == record.id)
        assert left.sweepable == ()
        with pytest.raises(LlamaherdError) as refused:
            sweeping.choose([left], [left.id])
        assert (refused.value.code, refused.value.exit_code) == ("stray_unknown", 3)
    finally:
        for carrier in carriers:
            carrier.kill()
            carrier.wait()
        os.close(master)
        os.close(terminal)


def test_a_zombie_is_told_apart(root: Path) -> None:
    code = (
        "import ctypes, os, time\n"
        "if os.fork() == 0: ctypes.CDLL(None).prctl(15, b'pt_data_worker', 0, 0, 0); os._exit(0)\n"
        "time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", code]) as parent:
        try:
            (dead,) = wait_until(lambda: PROC.children(parent.pid), 10, "a child")
            wait_until(lambda: (s := PROC.stat(dead)) is not None and not s.alive, 10, "it died")
            strays = [stray for group in sweeping.find_groups([root]) for stray in group.strays]
            (stray,) = (stray for stray in strays if stray.process.pid == dead)
            assert (stray.reason, stray.obstacle, stray.process.state) == ("zombie", "zombie", "Z")
        finally:
            parent.kill()


def test_who_stays_in_the_kernel_is_not_swept(root: Path) -> None:
    """Twice seen waiting there; a wait for the disk is over by then."""

    class Hung(Proc):
        waiting = True

        def stat(self, pid: int) -> ProcessStat | None:
            found = super().stat(pid)
            is_mine = found is not None and found.comm == "pt_data_worker"
            return replace(found, state="D") if is_mine and self.waiting and found is not None else found

    code = (
        "import ctypes, os, time\n"
        "if os.fork(): os._exit(0)\n"
        "os.setsid(); ctypes.CDLL(None).prctl(15, b'pt_data_worker', 0, 0, 0)\n"
        "print(os.getpid(), flush=True); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
    try:
        obstacles = {}
        for waiting in (True, False):
            proc = Hung()
            proc.waiting = waiting
            strays = [stray for group in sweeping.find_groups([root], proc) for stray in group.strays]
            obstacles[waiting] = {stray.process.pid: stray.obstacle for stray in strays}[pid]
        assert obstacles == {True: "kernel_wait", False: None}
    finally:
        os.kill(pid, signal.SIGKILL)


def test_read_only_refuses(root: Path) -> None:
    with pytest.raises(LlamaherdError) as refused:
        sweeping.sweep(StrayGroup("1:1", None, (), None, ()), root, readonly=True)
    assert refused.value.code == "readonly"
