"""Keeps a log from filling the disk without ever stopping who writes it.

The beginning (what was started, with which settings) and the end are kept; the middle is given back in
place. Rotation would lose lines, and a pipe through this program would freeze the training with it.
"""

import errno
import os
from pathlib import Path

from tui.jobs.kernel import punch_hole

HEAD = 1 << 20
TAIL = 64 << 20
_SLACK = 8 << 20
_BLOCK = 4096


class LogCap:
    """The cap on one log file that others append to."""

    def __init__(self, path: Path, head: int = HEAD, tail: int = TAIL, slack: int = _SLACK) -> None:
        self._path = path
        self._head = head
        self._tail = tail
        self._slack = slack
        self._end = head
        self.supported = True

    def enforce(self) -> int:
        """Give the middle back once it has grown by the slack; the bytes newly covered.

        Raises:
            OSError: anything but a missing log or a file system without holes.
        """
        if not self.supported:
            return 0
        try:
            size = self._path.stat().st_size
        except FileNotFoundError:
            return 0
        end = (size - self._tail) // _BLOCK * _BLOCK
        begin = self._end
        if end - begin < self._slack:
            return 0
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            punch_hole(descriptor, self._head, end - self._head)
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.ENOSYS):
                raise
            self.supported = False
            return 0
        finally:
            os.close(descriptor)
        self._end = end
        return end - begin
