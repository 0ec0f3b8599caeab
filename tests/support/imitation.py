"""Trees of processes that escape from naive stops; run as ``python -I -S imitation.py SHAPE YARD``.

Every process leaves a file ``PID`` in the folder YARD that holds its start ticks, so that a test can
tell for each, by identity, whether it is gone. ``ready`` appears there once the tree stands. Standard
library only, and little of it: dozens of these start in a test.
"""

import _thread
import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

FOREVER = 600.0


def enrol(yard: str, title: str = "") -> None:
    """Leave this process's identity in the yard."""
    if title:
        ctypes.CDLL(None).prctl(15, title.encode(), 0, 0, 0)
    start = Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()[19]
    mine = Path(yard, str(os.getpid()))
    mine.with_suffix(".new").write_bytes(start)
    mine.with_suffix(".new").rename(mine)


def ignore(*numbers: int) -> None:
    for number in numbers:
        signal.signal(number, signal.SIG_IGN)


def linger() -> None:
    """Do nothing for long, whatever the handlers do."""
    end = time.monotonic() + FOREVER
    while time.monotonic() < end:
        time.sleep(1.0)


def child(yard: str, life: Callable[[], None] = linger, title: str = "", session: bool = False) -> int:
    """Fork a process that enrols and lives; its PID."""
    pid = os.fork()
    if pid == 0:
        try:
            if session:
                os.setsid()
            enrol(yard, title)
            life()
        finally:
            os._exit(0)
    return pid


def daemon(yard: str, life: Callable[[], None] = linger) -> None:
    """Double fork: the parent of what lives on is gone."""
    pid = os.fork()
    if pid == 0:
        os.setsid()
        child(yard, life)
        os._exit(0)
    os.waitpid(pid, 0)


def ready(yard: str, count: int) -> None:
    """Say that the tree stands, once so many have enrolled."""
    while sum(name.isdigit() for name in os.listdir(yard)) < count:  # noqa: PTH208
        time.sleep(0.01)
    Path(yard, "ready").touch()


def sleeper(yard: str) -> None:
    ready(yard, 1)
    linger()


def stubborn(yard: str) -> None:
    ignore(signal.SIGINT, signal.SIGTERM)
    ready(yard, 1)
    linger()


def daemons(yard: str) -> None:
    daemon(yard)
    daemon(yard)
    ready(yard, 3)
    linger()


def sessions(yard: str) -> None:
    for _ in range(3):
        child(yard, session=True)
    ready(yard, 4)
    linger()


def outliving(yard: str) -> None:
    """Workers that do not care that their parent is gone, as a tokeniser's pool."""

    def worker() -> None:
        ignore(signal.SIGINT, signal.SIGHUP)
        linger()

    for session in (False, True):
        child(yard, worker, session=session)
    ready(yard, 3)
    linger()


def forks_on_term(yard: str) -> None:
    def spawn(*_: object) -> None:
        child(yard)

    signal.signal(signal.SIGTERM, spawn)
    ignore(signal.SIGINT)
    ready(yard, 1)
    linger()


def respawner(yard: str) -> None:
    """Starts a new worker for every one that dies."""
    ignore(signal.SIGINT, signal.SIGTERM)
    worker = child(yard)
    ready(yard, 2)
    end = time.monotonic() + FOREVER
    while time.monotonic() < end:
        os.waitpid(worker, 0)
        worker = child(yard)


def hopper(yard: str) -> None:
    """Lives on in a child of its own, every few milliseconds or faster."""

    def hop() -> None:
        ignore(signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        end = time.monotonic() + 60
        while time.monotonic() < end:
            time.sleep(0.001)
            if os.fork():
                os._exit(0)

    child(yard, hop)
    ready(yard, 2)
    linger()


def stopped(yard: str) -> None:
    def freeze() -> None:
        os.kill(os.getpid(), signal.SIGSTOP)
        linger()

    pid = child(yard, freeze)
    os.waitpid(pid, os.WUNTRACED)
    ready(yard, 2)
    linger()


def emptied(yard: str) -> None:
    """A daemon that execs with an empty environment and closes its log."""

    def empty() -> None:
        os.closerange(0, 3)
        os.execve("/bin/sleep", ["sleep", str(FOREVER)], {})  # noqa: S606

    daemon(yard, empty)
    ready(yard, 2)
    linger()


def renamed(yard: str) -> None:
    for title in ("VLLM::EngineCor", "kworker/0:1"):
        child(yard, title=title, session=True)
    ready(yard, 3)
    linger()


def leaderless(yard: str) -> None:
    """The first thread of the worker is gone: it looks like a zombie, and works on."""

    def worker() -> None:
        _thread.start_new_thread(linger, ())
        ctypes.CDLL(None).pthread_exit(None)

    child(yard, worker)
    ready(yard, 2)
    linger()


def zombies(yard: str) -> None:
    """Never reaps its dead children."""
    for _ in range(3):
        child(yard, lambda: None)
    ready(yard, 4)
    linger()


def torchrun(yard: str) -> None:
    """The wrapper over an agent over two ranks with data workers, as LLaMA-Factory runs it.

    The wrapper kills its agent when it is interrupted, and the agent forwards what it gets: an
    interrupt of the wrapper would leave ranks that train on.
    """

    def rank() -> None:
        for _ in range(2):
            child(yard, title="pt_data_worker")
        linger()

    def agent() -> None:
        ranks = [child(yard, rank, title="python3", session=True) for _ in range(2)]

        def forward(number: int, _: object) -> None:
            Path(yard, f"agent-got-{number}").touch()
            for pid in ranks:
                os.killpg(pid, number)
            for pid in ranks:
                os.waitpid(pid, 0)
            os._exit(1)

        signal.signal(signal.SIGINT, forward)
        signal.signal(signal.SIGTERM, forward)
        linger()

    pid = child(yard, agent, title="pt_elastic")

    def interrupted(*_: object) -> None:
        Path(yard, "wrapper-got-2").touch()
        os.kill(pid, signal.SIGKILL)
        os._exit(1)

    signal.signal(signal.SIGINT, interrupted)
    ready(yard, 8)
    os.waitpid(pid, 0)
    os._exit(1)


def saves_on_abort(yard: str) -> None:
    """A trainer that catches SIGABRT, ends its step, saves and leaves."""

    def save(*_: object) -> None:
        Path(yard, "saved").touch()
        os._exit(0)

    signal.signal(signal.SIGABRT, save)
    sleeper(yard)


def leaves_daemon(yard: str) -> None:
    """Ends by itself, with success, and leaves a process behind."""
    daemon(yard)
    ready(yard, 2)


SHAPES: dict[str, Callable[[str], None]] = {
    shape.__name__: shape
    for shape in (
        sleeper,
        stubborn,
        daemons,
        sessions,
        outliving,
        forks_on_term,
        respawner,
        hopper,
        stopped,
        emptied,
        renamed,
        leaderless,
        zombies,
        torchrun,
        saves_on_abort,
        leaves_daemon,
    )
}

if __name__ == "__main__":
    enrol(sys.argv[2])
    SHAPES[sys.argv[1]](sys.argv[2])
