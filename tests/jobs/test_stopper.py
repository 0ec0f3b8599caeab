"""The only signaller: what it sends, to whom it refuses, and how sure it is."""

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from support.jobs import PROC, alive
from support.waiting import wait_until

from tui.collect.proc import Proc
from tui.facts.job import KEEPER_TITLE, Identity
from tui.jobs.identity import identify
from tui.jobs.stopper import PidFds, Refusal, SendResult, Stopper

SLEEP = "import time; time.sleep(600)"


@contextmanager
def process(*command: str) -> Iterator[Identity]:
    with subprocess.Popen(command or (sys.executable, "-I", "-S", "-c", SLEEP)) as child:
        try:
            identity = identify(child.pid, PROC)
            assert identity is not None
            yield identity
        finally:
            child.kill()


class Refusing(PidFds):
    """A kernel or a container that knows neither call, or one of them."""

    def __init__(self, opens: bool, number: int) -> None:
        self._opens = opens
        self._number = number

    def open(self, pid: int) -> int:
        if self._opens:
            return super().open(pid)
        raise OSError(self._number, os.strerror(self._number))

    def send(self, descriptor: int, number: int) -> None:
        raise OSError(self._number, os.strerror(self._number))


def ends(identity: Identity) -> None:
    wait_until(lambda: not alive(identity), 10, f"{identity.pid} ended")


def test_a_signal_goes_to_the_recorded_process() -> None:
    with process() as target:
        assert Stopper(PROC).send(target, signal.SIGTERM) == SendResult("sent")
        ends(target)
        assert Stopper(PROC).send(target, signal.SIGTERM) == SendResult("gone")  # a zombie
    assert Stopper(PROC).send(target, signal.SIGTERM) == SendResult("gone")


def test_somebody_else_with_the_pid_gets_nothing() -> None:
    with process() as target:
        for other in (
            replace(target, start=target.start - 1),
            replace(target, boot_id="another"),
            replace(target, init_start=target.init_start + 1),
        ):
            assert Stopper(PROC).send(other, signal.SIGKILL) == SendResult("mismatch")
        assert alive(target)


def test_a_pid_that_is_reused_between_look_and_signal_gets_nothing() -> None:
    """The handle is opened on the old process; by the time of the check another has the PID."""

    class Late(PidFds):
        def open(self, pid: int) -> int:
            descriptor = super().open(pid)
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return descriptor

    child = subprocess.Popen([sys.executable, "-I", "-S", "-c", SLEEP])
    target = identify(child.pid, PROC)
    assert target is not None
    assert Stopper(PROC, pidfds=Late()).send(target, signal.SIGTERM) == SendResult("gone")
    child.wait()

    class Stale(PidFds):
        """As if the new holder of the PID even had the old one's start ticks."""

        def open(self, pid: int) -> int:
            gone = subprocess.Popen([sys.executable, "-I", "-S", "-c", SLEEP])
            descriptor = super().open(gone.pid)
            gone.kill()
            gone.wait()
            return descriptor

    with process() as stranger:
        assert Stopper(PROC, pidfds=Stale()).send(stranger, signal.SIGKILL) == SendResult("gone")
        assert alive(stranger)


def test_without_the_names_in_python_the_calls_go_by_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "pidfd_open")
    monkeypatch.delattr(signal, "pidfd_send_signal")
    with process() as target:
        assert Stopper(PROC).send(target, signal.SIGTERM) == SendResult("sent", sure=True)
        ends(target)
    assert Stopper(PROC).send(target, signal.SIGTERM) == SendResult("gone")
    with pytest.raises(ProcessLookupError):
        PidFds().open(target.pid)


@pytest.mark.parametrize("opens", [False, True])
@pytest.mark.parametrize("number", [errno.ENOSYS, errno.EPERM])
def test_where_the_kernel_refuses_the_check_is_made_and_its_weakness_said(opens: bool, number: int) -> None:
    stopper = Stopper(PROC, pidfds=Refusing(opens, number))
    with process() as target:
        assert stopper.send(replace(target, start=1), signal.SIGTERM) == SendResult("mismatch")
        assert stopper.send(target, signal.SIGTERM) == SendResult("sent", sure=False)
        ends(target)


def test_what_must_never_be_signalled() -> None:
    stopper = Stopper(PROC)

    def refused(pid: int) -> SendResult:
        identity = identify(pid, PROC)
        return stopper.send(identity or Identity("", 0, pid, 0), 0)

    assert refused(1) == SendResult("refused", "init")
    assert refused(0) == SendResult("refused", "init")
    assert refused(-1) == SendResult("refused", "init")
    assert refused(os.getpid()) == SendResult("refused", "self")
    assert refused(os.getppid()) == SendResult("refused", "ancestor")


def test_readonly_refuses_everything() -> None:
    with process() as target:
        assert Stopper(PROC, readonly=True).send(target, 0) == SendResult("refused", "readonly")
        assert alive(target)


def test_a_keeper_is_never_signalled_and_the_title_alone_makes_no_keeper() -> None:
    code = f"import ctypes; ctypes.CDLL(None).prctl(15, {KEEPER_TITLE.encode()!r}, 0, 0, 0); {SLEEP}"
    python = (sys.executable, "-I", "-S", "-c", code)

    def titled(target: Identity) -> None:
        wait_until(lambda: (s := PROC.stat(target.pid)) is not None and s.comm == KEEPER_TITLE, 10, "titled")

    with process(*python, "tui.jobs.keeper") as keeper, process(*python) as impostor:
        titled(keeper)
        titled(impostor)
        assert Stopper(PROC).send(keeper, signal.SIGKILL, descends=True) == SendResult("refused", "keeper")
        assert alive(keeper)
        assert Stopper(PROC).send(impostor, signal.SIGKILL, descends=True) == SendResult("sent")


@pytest.mark.parametrize(
    ("argv0", "refusal"),
    [
        ("supervisord", "platform"),
        ("sshd: root@pts/0", "remote_login"),
        ("sshd-session: root", "remote_login"),
        ("/usr/sbin/sshd", "remote_login"),
        ("/init/boot/boot.sh", "platform"),
        ("autopanel", "platform"),
        ("tensorboard", "tensorboard"),
        ("/root/miniconda3/bin/jupyter-lab", "notebook_server"),
    ],
)
def test_the_platforms_own_processes_are_refused(argv0: str, refusal: Refusal) -> None:
    with subprocess.Popen([argv0, "600"], executable="/bin/sleep") as child:
        try:
            target = identify(child.pid, PROC)
            assert target is not None
            assert Stopper(PROC).send(target, signal.SIGKILL) == SendResult("refused", refusal)
            assert alive(target)
            # What the job itself started is the job's, whatever it is called.
            assert Stopper(PROC).send(target, signal.SIGKILL, descends=True) == SendResult("sent")
        finally:
            child.kill()


class NamelessProc(Proc):
    """No command line can be read, as of a process that hangs in the driver."""

    def command(self, pid: int) -> tuple[str, ...] | None:
        return None


def test_who_cannot_be_read_might_be_anybody() -> None:
    with subprocess.Popen(["sshd", "600"], executable="/bin/sleep") as child:
        try:
            target = identify(child.pid, PROC)
            assert target is not None
            stopper = Stopper(NamelessProc())
            assert stopper.send(target, signal.SIGKILL) == SendResult("refused", "unknown_program")
            assert alive(target)
        finally:
            child.kill()


@pytest.mark.parametrize("name", ["jupyter-lab", "supervisord", "boot"])
def test_a_script_is_known_behind_its_interpreter(tmp_path: Path, name: str) -> None:
    script = tmp_path / name
    script.write_text(SLEEP)
    with process(sys.executable, str(script)) as target:
        result = Stopper(PROC).send(target, 0)
    assert result.status == ("sent" if name == "boot" else "refused")


def test_a_thread_is_no_process() -> None:
    code = (
        "import threading, time; t = threading.Thread(target=time.sleep, args=(600,)); t.start();"
        "print(t.native_id, flush=True)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as child:
        try:
            assert child.stdout is not None
            thread = identify(int(child.stdout.readline()), PROC)
            assert thread is not None
            result = Stopper(PROC).send(thread, signal.SIGKILL)
            assert result == SendResult("refused", "not_a_process")
            assert child.poll() is None
        finally:
            child.kill()


def test_a_process_of_another_user_is_denied() -> None:
    if os.getuid() != 0:
        pytest.skip("needs root to become another user")
    code = (
        "import os, sys; from tui.collect.proc import Proc; from tui.jobs.identity import identify;"
        "from tui.jobs.stopper import Stopper; proc = Proc(); target = identify(int(sys.argv[1]), proc);"
        "os.setuid(65534); print(Stopper(proc).send(target, 15))"
    )
    with process() as target:
        done = subprocess.run(
            [sys.executable, "-c", code, str(target.pid)], check=True, capture_output=True, text=True
        )
        assert alive(target)
    assert "denied" in done.stdout
