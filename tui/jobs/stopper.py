"""The only signaller.

A signal goes to a recorded identity, never to a number: a pidfd is opened first, which pins whoever has
the PID at that moment; then the start ticks are read again and compared; then the signal goes through
the pidfd. So a PID that is reused between the look and the signal gets nothing.
"""

import errno
import os
import signal
import time
from dataclasses import dataclass
from pathlib import PurePath
from typing import Literal

from tui.collect.proc import Proc, ancestors
from tui.facts.job import KEEPER_TITLE, Identity
from tui.jobs.deadline import within
from tui.jobs.identity import same_boot
from tui.jobs.kernel import system_call

SendStatus = Literal["sent", "gone", "mismatch", "refused", "denied"]
Refusal = Literal[
    "readonly",
    "init",
    "self",
    "ancestor",
    "keeper",
    "remote_login",
    "notebook_server",
    "tensorboard",
    "platform",
    "unknown_program",
    "not_a_process",
]

PLATFORM: dict[str, Refusal] = {
    "sshd": "remote_login",
    "sshd-session": "remote_login",
    "dropbear": "remote_login",
    "jupyter": "notebook_server",
    "jupyter-lab": "notebook_server",
    "jupyter-labhub": "notebook_server",
    "jupyter-notebook": "notebook_server",
    "jupyter-server": "notebook_server",
    "jupyterhub-singleuser": "notebook_server",
    "tensorboard": "tensorboard",
    "autopanel": "platform",
    "supervisord": "platform",
    "tini": "platform",
    "dumb-init": "platform",
}
"""Programs that the instance itself lives on: ending them takes away the login, the panel, or the bill."""

_PLATFORM_FOLDERS = ("/init/",)
"""Where the rented instance keeps its own start scripts."""

_KEEPER_MODULE = "tui.jobs.keeper"
_COMMAND_DEADLINE = 0.5
_COMMAND_PAUSES = (0.005, 0.02, 0.1)

# The numbers are the same on x86_64 and aarch64, and on every architecture newer than them.
_PIDFD_SEND_SIGNAL, _PIDFD_OPEN = 424, 434
_NO_SUCH_CALL = (errno.ENOSYS, errno.EPERM, errno.EACCES)


@dataclass(frozen=True, slots=True)
class SendResult:
    """What became of a signal. ``sure``: it went through a pidfd, so no other process can have got it.

    ``mismatch``: somebody else has the PID by now. ``denied``: the kernel forbids it (another user).
    """

    status: SendStatus
    refusal: Refusal | None = None
    sure: bool = True


class PidFds:
    """The kernel's handles on processes. Conda's Python is built without these names: then by number."""

    def open(self, pid: int) -> int:
        """A handle on whoever has the PID now; ``OSError`` as the system call gives it."""
        if hasattr(os, "pidfd_open"):
            return os.pidfd_open(pid)
        return system_call(_PIDFD_OPEN, pid, 0)

    def send(self, descriptor: int, number: int) -> None:
        """Signal the process behind a handle."""
        if hasattr(signal, "pidfd_send_signal"):
            signal.pidfd_send_signal(descriptor, number)
        else:
            system_call(_PIDFD_SEND_SIGNAL, descriptor, number, 0, 0)


class Stopper:
    """Sends signals, or says why not."""

    def __init__(self, proc: Proc, *, readonly: bool = False, pidfds: PidFds | None = None) -> None:
        self._proc = proc
        self._readonly = readonly
        self._pidfds = PidFds() if pidfds is None else pidfds

    def send(self, target: Identity, number: int, *, descends: bool = False) -> SendResult:
        """Send one signal to one process.

        Args:
            target: recorded when it was known who the process is.
            number: the signal.
            descends: the caller has shown that the process comes from a job's own command, so it is
                none of the platform's, whatever it is named; its command line, which may hang, is not read.
        """
        refusal = self.refusal(target.pid, descends=descends)
        if refusal is not None:
            return SendResult("refused", refusal)
        try:
            descriptor: int | None = self._pidfds.open(target.pid)
        except ProcessLookupError:
            return SendResult("gone")
        except OSError as error:
            if error.errno not in _NO_SUCH_CALL:
                return SendResult("refused", "not_a_process")
            descriptor = None
        try:
            return self._send_checked(target, number, descriptor)
        finally:
            if descriptor is not None:
                os.close(descriptor)

    def refusal(self, pid: int, *, descends: bool = False) -> Refusal | None:
        """Why this PID is never signalled; ``None``: it may be."""
        if self._readonly:
            return "readonly"
        if pid <= 1:
            return "init"
        if pid == os.getpid():
            return "self"
        if pid in ancestors(os.getpid(), self._proc.stat):
            return "ancestor"
        stat = self._proc.stat(pid)
        if stat is not None and stat.comm == KEEPER_TITLE and _KEEPER_MODULE in self._command(pid):
            return "keeper"
        return None if descends or stat is None or not stat.lives_on else self._platform(pid)

    def _platform(self, pid: int) -> Refusal | None:
        command = self._command(pid)
        if not command:
            # A kernel thread, or nobody could say in time who it is: then it may be anybody.
            return "unknown_program"
        # The first two words: a script's name comes after its interpreter's.
        programs = [self._proc.executable(pid) or "", *command[:2]]
        for program in programs:
            if program.startswith(_PLATFORM_FOLDERS):
                return "platform"
            # sshd writes its title as "sshd: root@pts/0".
            refusal = PLATFORM.get(PurePath(program.partition(":")[0]).name)
            if refusal is not None:
                return refusal
        return None

    def _command(self, pid: int) -> tuple[str, ...]:
        """The command line; for an instant within exec the kernel shows none, so it is asked again."""
        for pause in _COMMAND_PAUSES:
            command = within(_COMMAND_DEADLINE, lambda: self._proc.command(pid)) or ()
            if command:
                return command
            time.sleep(pause)
        return ()

    def _send_checked(self, target: Identity, number: int, descriptor: int | None) -> SendResult:
        stat = self._proc.stat(target.pid)
        if stat is None:
            return SendResult("gone")
        if stat.start != target.start or not same_boot(target, self._proc):
            return SendResult("mismatch")
        if not stat.lives_on:
            return SendResult("gone")
        try:
            if descriptor is not None and self._send_through(descriptor, number):
                return SendResult("sent")
            # No pidfd here (an old kernel, a strict container): the check was a moment ago, no closer.
            os.kill(target.pid, number)
        except ProcessLookupError:
            return SendResult("gone")
        except PermissionError:
            return SendResult("denied")
        return SendResult("sent", sure=False)

    def _send_through(self, descriptor: int, number: int) -> bool:
        try:
            self._pidfds.send(descriptor, number)
        except OSError as error:
            if error.errno in _NO_SUCH_CALL:
                return False
            raise
        return True
