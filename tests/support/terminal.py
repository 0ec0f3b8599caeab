"""The real program in a pseudo-terminal, read through a terminal emulator."""

import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pyte

Look = tuple[str, str, str, bool, bool, bool]
"""One cell: character, foreground, background, bold, reverse, underscore."""


class Terminal:
    """A program behind a terminal of this size; ``screen`` is what a person would see."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        columns: int,
        lines: int,
        environ: Mapping[str, str],
        cwd: Path | None = None,
    ) -> None:
        self.screen = pyte.Screen(columns, lines)
        self._stream = pyte.ByteStream(self.screen)
        self.bytes = 0
        self.newest = b""
        """The last piece of what the program wrote, as it came."""
        self.status: int | None = None
        self.pid, self.fd = pty.fork()
        if self.pid == 0:  # pragma: no cover  # the child
            try:
                if cwd is not None:
                    os.chdir(cwd)
                os.execve(argv[0], list(argv), dict(environ))  # noqa: S606  # that is the point
            finally:
                os._exit(127)
        self.resize(columns, lines)

    def resize(self, columns: int, lines: int) -> None:
        """Another size, as a window that is dragged."""
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self.screen.resize(lines, columns)

    def read(self, seconds: float = 0.05) -> bytes:
        """Everything the program writes within that time, fed to the emulator."""
        deadline = time.monotonic() + seconds
        received = b""
        while (left := deadline - time.monotonic()) > 0:
            ready, _, _ = select.select([self.fd], [], [], left)
            if not ready:
                break
            try:
                piece = os.read(self.fd, 1 << 16)
            except OSError:  # the program has closed its side
                break
            if not piece:
                break
            received += piece
            self._stream.feed(piece)
            self.newest = (self.newest + piece)[-(1 << 14) :]
        self.bytes += len(received)
        return received

    def type(self, keys: str) -> None:
        """Press keys."""
        os.write(self.fd, keys.encode())

    @property
    def text(self) -> str:
        """The lines of the screen."""
        return "\n".join(line.rstrip() for line in self.screen.display)

    def looks(self) -> list[list[Look]]:
        """Every cell with its attributes."""
        return [
            [
                (cell.data, cell.fg, cell.bg, cell.bold, cell.reverse, cell.underscore)
                for cell in (self.screen.buffer[y][x] for x in range(self.screen.columns))
            ]
            for y in range(self.screen.lines)
        ]

    def wait_for(self, condition: Callable[[str], bool], seconds: float, what: str) -> str:
        """Read until the text of the screen is as wanted."""
        deadline = time.monotonic() + seconds
        while True:
            self.read(0.05)
            if condition(self.text):
                return self.text
            if time.monotonic() > deadline:
                raise AssertionError(f"not within {seconds} s: {what}\n{self.text}")

    def settle(self, quiet: float = 0.4, seconds: float = 10.0) -> None:
        """Read until nothing has come for ``quiet`` seconds."""
        deadline = time.monotonic() + seconds
        while self.read(quiet):
            if time.monotonic() > deadline:
                raise AssertionError("the program never stops writing")

    def wait_exit(self, seconds: float) -> int:
        """Its exit code once it has ended by itself."""
        deadline = time.monotonic() + seconds
        while self.status is None:
            self.read(0.02)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
            elif time.monotonic() > deadline:
                raise AssertionError(f"it did not end within {seconds} s\n{self.text}")
        return self.status

    def close(self) -> None:
        """End it if it still lives; its process is our child, so the PID is certain."""
        os.close(self.fd)
        if self.status is None:
            signal.pidfd_send_signal(os.pidfd_open(self.pid), signal.SIGKILL)
            _, status = os.waitpid(self.pid, 0)
            self.status = os.waitstatus_to_exitcode(status)
