"""Starts a command that cannot run before it is recorded.

The child waits at a gate; the keeper writes its identity to disk and only then opens it. If the keeper
dies in between, the gate closes and the child ends without having run anything.
"""

import errno
import os
import resource
import signal
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

NEVER_RAN = 127
"""Exit code of a child that did not come to run its command."""

_OUT_OF_MEMORY_BIAS = 300
_REPORT_LIMIT = 500
_DESCRIPTORS = 256


@dataclass(frozen=True, slots=True)
class GatedChild:
    """A child at its gate. ``gate``: write one byte to let it go; ``report``: what exec said."""

    pid: int
    gate: int
    report: int


def fork_at_gate(command: tuple[str, ...], cwd: str, environ: Mapping[bytes, bytes], log: Path) -> GatedChild:
    """Fork the child. The caller must not have threads yet."""
    gate_read, gate_write = os.pipe()
    report_read, report_write = os.pipe()
    pid = os.fork()
    if pid == 0:
        # The keeper's lock too: a child that hangs before exec must not look like a keeper.
        _close_all_but(gate_read, report_write)
        _run_at_gate(gate_read, report_write, command, cwd, environ, log)
    os.close(gate_read)
    os.close(report_write)
    os.set_blocking(report_read, False)
    return GatedChild(pid, gate_write, report_read)


def open_gate(child: GatedChild) -> None:
    """Let the child run its command."""
    with suppress(BrokenPipeError):  # killed at the gate: its exit status tells
        os.write(child.gate, b"1")
    os.close(child.gate)


def read_report(child: GatedChild) -> str | None:
    """``""`` once the command runs (or the child is gone), the reason why it cannot, ``None``: not yet."""
    try:
        data = os.read(child.report, _REPORT_LIMIT)
    except BlockingIOError:
        return None
    return data.decode("utf-8", "replace")


def _run_at_gate(
    gate: int, report: int, command: tuple[str, ...], cwd: str, environ: Mapping[bytes, bytes], log: Path
) -> NoReturn:
    what, subject = "gate", ""
    try:
        if os.read(gate, 1):
            what, subject = "log", str(log)
            _redirect(log)
            _leave_terminal_and_habits()
            what, subject = "chdir", cwd
            os.chdir(cwd)
            what, subject = "exec", command[0]
            os.execvpe(command[0], command, environ)  # noqa: S606  # an argument list, no shell
    except (OSError, ValueError) as error:
        code = errno.errorcode.get(error.errno or 0, "EIO") if isinstance(error, OSError) else "EINVAL"
        text = f"{what} {code} {subject}".encode("utf-8", "replace")
        os.write(report, text[:_REPORT_LIMIT])
    finally:
        os._exit(NEVER_RAN)


def _close_all_but(*kept: int) -> None:
    begin = 3
    for descriptor in sorted(kept):
        os.closerange(begin, descriptor)
        begin = descriptor + 1
    os.closerange(begin, begin + _DESCRIPTORS)


def _redirect(log: Path) -> None:
    nothing = os.open(os.devnull, os.O_RDONLY)
    output = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.dup2(nothing, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)


def _leave_terminal_and_habits() -> None:
    """A session of its own, and none of the dispositions that were inherited.

    A shell starts background jobs with SIGINT ignored, and Python ignores SIGPIPE; both would be
    inherited by the training, which then could not be interrupted.
    """
    os.setsid()
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    # SIGABRT, which asks for a save, must not write 100 GB of memory to the disk when nobody catches it.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(OSError, ValueError):
        score = Path("/proc/self/oom_score_adj")
        bias = min(1000, int(score.read_text(encoding="ascii")) + _OUT_OF_MEMORY_BIAS)
        score.write_text(str(bias), encoding="ascii")
