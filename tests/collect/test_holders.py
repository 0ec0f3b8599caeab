"""Holders of cards among real processes that open and map files named like devices."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.waiting import wait_until

from tui.collect.holders import HolderScanner
from tui.collect.proc import Proc, ProcessStat
from tui.facts.machine import Holder

PRELUDE = """
import mmap, os, signal, sys, time
prefix = sys.argv[1]
opened, areas = [], []
def say(text):
    os.write(1, f"{text}\\n".encode())
def hold(name):
    opened.append(os.open(prefix + name, os.O_RDWR))
def map_last():
    areas.append(mmap.mmap(opened[-1], mmap.PAGESIZE))
def fork_worker(title=None):
    worker = os.fork()
    if worker == 0:
        # A worker must not outlive a test that fails: it ends with the pipe of its grandparent.
        if title:
            open("/proc/self/comm", "w").write(title)
        say(os.getpid())
        sys.stdin.read()
        os._exit(0)
    return worker
def work(seconds):
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass
"""
POSTLUDE = """
say("ready")
for line in sys.stdin:
    exec(line)
    say("done")
"""


class Child:
    """A real process that does as it is told."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        self.pid = process.pid

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def worker(self) -> int:
        """The PID that its own child says, while it says that it is ready itself."""
        lines = sorted([self.line(), self.line()])
        assert lines[1] == "ready"
        return int(lines[0])

    def tell(self, code: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(code + "\n")
        self.process.stdin.flush()
        assert self.line() == "done"


Start = Callable[[str], Child]


@pytest.fixture
def prefix(tmp_path: Path) -> str:
    for name in ("0", "1", "7", "ctl", "-uvm"):
        (tmp_path / f"nvidia{name}").write_bytes(b"\0" * 65536)
    return str(tmp_path / "nvidia")


@pytest.fixture
def start(prefix: str) -> Iterator[Start]:
    children: list[subprocess.Popen[str]] = []

    def start_child(setup: str) -> Child:
        process = subprocess.Popen(
            [sys.executable, "-c", PRELUDE + setup + POSTLUDE, prefix],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        children.append(process)
        return Child(process)

    yield start_child
    for process in children:
        assert process.stdin is not None
        process.stdin.close()  # the workers read the same pipe: its end is theirs
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.read()  # ends when the last worker has gone
        process.stdout.close()


def find(scanner: HolderScanner) -> dict[int, Holder]:
    return {holder.pid: holder for holder in scanner.find(Proc().table())}


def test_open_and_mapped_are_told_apart_by_card(prefix: str, start: Start) -> None:
    mapping = start("hold('0'); hold('7'); map_last()")
    opening = start("hold('1')")
    asking = start("hold('ctl'); hold('-uvm'); map_last()")
    assert [child.line() for child in (mapping, opening, asking)] == ["ready"] * 3
    found = find(HolderScanner(Proc(), prefix))
    starts = {pid: stat.start for pid, stat in Proc().table().items()}
    assert found == {
        mapping.pid: Holder(mapping.pid, starts[mapping.pid], frozenset({0, 7}), frozenset({7})),
        opening.pid: Holder(opening.pid, starts[opening.pid], frozenset({1})),
    }


def test_a_process_that_opens_maps_closes_and_ends_later(prefix: str, start: Start) -> None:
    scanner = HolderScanner(Proc(), prefix)
    child = start("")
    assert child.line() == "ready"
    assert child.pid not in find(scanner)
    child.tell("hold('1'); work(0.1)")
    assert find(scanner)[child.pid].minors == {1}, "a process that works is looked at in the next scan"
    child.tell("map_last()")
    assert wait_until(lambda: find(scanner)[child.pid].mapped_minors, 10, "the mapping") == {1}
    child.tell("hold('0')")
    wait_until(lambda: find(scanner)[child.pid].minors == {0, 1}, 10, "the idle process in its turn")
    child.tell("areas.clear(); [os.close(each) for each in opened]; work(0.1)")
    assert child.pid not in find(scanner)
    child.tell("hold('7'); work(0.1)")
    assert child.pid in find(scanner)
    child.process.kill()
    child.process.wait()
    assert child.pid not in find(scanner)


def test_a_zombie_holds_nothing(prefix: str, start: Start) -> None:
    child = start("hold('0')")
    assert child.line() == "ready"
    scanner = HolderScanner(Proc(), prefix)
    assert child.pid in find(scanner)
    child.process.kill()
    wait_until(lambda: (stat := Proc().stat(child.pid)) and stat.state == "Z", 10, "a zombie")
    assert child.pid not in find(scanner)


def test_a_forked_child_that_only_kept_the_handle_is_marked(prefix: str, start: Start) -> None:
    rank = start("hold('0'); fork_worker(); map_last()")
    worker = rank.worker()
    found = find(HolderScanner(Proc(), prefix))
    assert (found[rank.pid].inherited, found[worker].inherited) == (False, True)
    assert found[worker].minors == {0}


def test_a_titled_data_worker_is_marked_though_it_kept_the_mapping(prefix: str, start: Start) -> None:
    rank = start("hold('0'); map_last(); fork_worker('pt_data_worker')")
    worker = rank.worker()
    scanner = HolderScanner(Proc(), prefix)
    assert find(scanner)[worker].inherited
    # Its rank dies without a clean-up: now the worker is what keeps the card.
    rank.process.kill()
    rank.process.wait()
    orphan = find(scanner)[worker]
    assert not orphan.inherited
    assert orphan.mapped_minors == {0}


def test_a_forked_child_with_a_mapping_of_its_own_is_a_holder(prefix: str, start: Start) -> None:
    server = start("hold('0'); map_last(); fork_worker()")
    worker = server.worker()
    assert not find(HolderScanner(Proc(), prefix))[worker].inherited


def test_a_child_with_a_command_of_its_own_is_no_copy(prefix: str, start: Start) -> None:
    code = "import os, sys; os.open(sys.argv[1], os.O_RDWR); print(os.getpid(), flush=True); sys.stdin.read()"
    parent = start(
        "import subprocess; hold('0');"
        f"subprocess.Popen([sys.executable, '-c', {code!r}, prefix + '0'], stdin=0)"
    )
    other = parent.worker()
    assert not find(HolderScanner(Proc(), prefix))[other].inherited


class CountingProc(Proc):
    """Counts the reads that are dear or may block."""

    maps = 0
    commands = 0

    def mapped_minors(self, pid: int, prefix: str = "/dev/nvidia") -> frozenset[int]:
        self.maps += 1
        return super().mapped_minors(pid, prefix)

    def command(self, pid: int) -> tuple[str, ...] | None:
        self.commands += 1
        return super().command(pid)


def fixture_process(root: Path, pid: int, maps: str = "") -> None:
    folder = root / str(pid)
    (folder / "fd").mkdir(parents=True)
    (folder / "fd" / "3").symlink_to("/dev/nvidia0")
    (folder / "fd" / "4").symlink_to("/dev/null")
    (folder / "maps").write_text(maps)
    (folder / "cmdline").write_bytes(b"python\0train.py\0")


def stat(pid: int, ppid: int = 1, *, start: int = 5, state: str = "S", ticks: int = 0) -> ProcessStat:
    return ProcessStat(pid, "python", state, ppid, pid, pid, 0, ticks, 0, start, 0)


MAPPED = "7f00-7f01 rw-s 00000000 00:06 123                        /dev/nvidia0\n"


def test_maps_are_read_once_when_mapped_and_ever_more_rarely_when_not(tmp_path: Path) -> None:
    proc = CountingProc(tmp_path)
    fixture_process(tmp_path, 10, MAPPED)
    scanner = HolderScanner(proc)
    for _ in range(64):
        assert scanner.find({10: stat(10)})[0].mapped_minors == {0}
    assert proc.maps == 1
    fixture_process(tmp_path, 11)
    for _ in range(64):
        assert scanner.find({11: stat(11)})[0].mapped_minors == frozenset()
    assert proc.maps == 1 + 7
    assert proc.commands == 0


def test_a_process_that_waits_in_the_kernel_is_not_asked_what_could_block(tmp_path: Path) -> None:
    proc = CountingProc(tmp_path)
    fixture_process(tmp_path, 10, MAPPED)
    fixture_process(tmp_path, 11)
    scanner = HolderScanner(proc)
    stuck = {10: stat(10, state="D"), 11: stat(11, 10, state="D")}
    assert [(holder.pid, holder.mapped_minors) for holder in scanner.find(stuck)] == [
        (10, frozenset()),
        (11, frozenset()),
    ]
    assert (proc.maps, proc.commands) == (0, 0)
    awake = scanner.find({10: stat(10), 11: stat(11, 10)})
    assert [(holder.mapped_minors, holder.inherited) for holder in awake] == [
        (frozenset({0}), False),
        (frozenset(), True),
    ]


def test_a_reused_pid_is_looked_at_afresh(tmp_path: Path) -> None:
    proc = CountingProc(tmp_path)
    fixture_process(tmp_path, 10, MAPPED)
    scanner = HolderScanner(proc)
    assert scanner.find({10: stat(10)})[0].mapped_minors == {0}
    (tmp_path / "10" / "fd" / "3").unlink()
    assert scanner.find({10: stat(10, start=6)}) == ()
    (tmp_path / "10" / "fd" / "3").symlink_to("/dev/nvidia2")
    (tmp_path / "10" / "maps").write_text("")
    assert scanner.find({10: stat(10, start=7)}) == (Holder(10, 7, frozenset({2})),)


def test_a_holder_that_ended_is_remembered_for_a_while(tmp_path: Path) -> None:
    fixture_process(tmp_path, 10, MAPPED)
    scanner = HolderScanner(Proc(tmp_path))
    scanner.find({10: stat(10), 11: stat(11)})
    assert scanner.ended == frozenset()
    scanner.find({})
    assert scanner.ended == {10}, "and 11 held nothing"
    scanner.find({10: stat(10, start=99)})
    assert scanner.ended == frozenset(), "the PID lives again"
    for _ in range(29):
        scanner.find({})
        assert scanner.ended == {10}
    scanner.find({})
    assert scanner.ended == frozenset()


def test_descriptors_of_others_that_may_not_be_read_make_no_holder(tmp_path: Path) -> None:
    assert HolderScanner(Proc(tmp_path)).find({10: stat(10)}) == ()


def test_this_process_holds_nothing() -> None:
    assert os.getpid() not in find(HolderScanner(Proc(), "/no/such/device"))


def test_a_dead_leader_whose_threads_live_on_still_holds_its_card(start: Start, prefix: str) -> None:
    """The leader's own descriptors are gone; NVML would list the PID of a process that looks dead."""
    child = start(
        "import ctypes, threading; hold('0'); map_last();"
        "threading.Thread(target=sys.stdin.read, daemon=True).start();"
        "say('ready'); ctypes.CDLL(None).syscall(60, 0)"
    )
    assert child.line() == "ready"
    proc = Proc()

    def leader() -> ProcessStat | None:
        stat = proc.stat(child.pid)
        return stat if stat is not None and not stat.alive else None

    stat = wait_until(leader, 10, "the leader is dead")
    assert (stat.state, stat.threads) == ("Z", 2)
    assert not proc.descriptors(child.pid)
    (holder,) = HolderScanner(proc, prefix).find({child.pid: stat})
    assert holder == Holder(child.pid, stat.start, frozenset({0}), frozenset({0}))
