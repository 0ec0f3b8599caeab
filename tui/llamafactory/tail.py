"""Following a growing log by an own offset, whatever happens to the file.

The keeper frees the middle of a big ``train.log`` in place: such a hole reads as zeros, so it is skipped
with ``SEEK_DATA``. Where bytes are left out, the pieces before and after must not be joined.
"""

import errno
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

READ_LIMIT = 4 << 20
"""Bytes of one read: a reader that fell behind catches up in several."""

HEAD = 1 << 20
TAIL = 1 << 19
"""Of a big log that is opened late, only its beginning (the plan, a resume) and its end are read."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes of the log. ``gap``: they do not follow the piece before, since the file was replaced or
    cut, has a hole there, or was read only in part. ``restarted``: the file began anew before them.
    """

    data: bytes
    gap: bool = False
    restarted: bool = False


class LogTail:
    """Reads what a log has grown by since the last read.

    ``missing`` tells that there is no such file now; it may come (back). An unreadable file raises
    ``OSError`` when it is opened.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: int | None = None
        self._identity: tuple[int, int] | None = None
        self._offset = 0
        self._skipped = False
        self._restarted = False
        self.missing = True

    def __enter__(self) -> "LogTail":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def read(self) -> Piece:
        """What is new, at most ``READ_LIMIT`` bytes; empty when there is nothing new."""
        data = self._read_open()
        # The old file is read to its end before a replacement is looked at.
        if not data and self._follow_path():
            data = self._read_open()
        piece = Piece(data, self._skipped, self._restarted)
        if data:
            self._skipped = self._restarted = False
        return piece

    def start_late(self) -> Iterator[Piece]:
        """Everything so far, but only the ends of a big log; later reads go on from there."""
        self._follow_path()
        size = self._size()
        until = HEAD if size > HEAD + TAIL else size
        while self._offset < until and (piece := self._read_until(until)) is not None:
            yield piece
        if until < size:
            self._offset = max(self._offset, size - TAIL)
            self._skipped = True
            while self._offset < size and (piece := self._read_until(size)) is not None:
                yield piece

    @property
    def changed_at(self) -> float | None:
        """When the file was last written, epoch seconds."""
        return os.fstat(self._file).st_mtime if self._file is not None else None

    def _size(self) -> int:
        return os.fstat(self._file).st_size if self._file is not None else 0

    def _read_until(self, end: int) -> Piece | None:
        data = self._read_open(end - self._offset)
        if not data:
            return None
        piece = Piece(data, self._skipped)
        self._skipped = False
        return piece

    def _follow_path(self) -> bool:
        """Open the file that the path names now; true when it is another one than before."""
        try:
            found = self._path.stat()
        except (FileNotFoundError, NotADirectoryError):
            self.missing = True
            return False
        identity = (found.st_dev, found.st_ino)
        self.missing = False
        if identity == self._identity and self._file is not None:
            return False
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(self._path))
        opened = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        is_first = self._identity is None
        self.close()
        real = os.fstat(opened)
        self._file, self._identity = opened, (real.st_dev, real.st_ino)
        self._offset = 0
        if not is_first:
            self._skipped = self._restarted = True
        return True

    def _read_open(self, limit: int = READ_LIMIT) -> bytes:
        if self._file is None:
            return b""
        if os.fstat(self._file).st_size < self._offset:
            self._offset = 0
            self._skipped = self._restarted = True
        data = os.pread(self._file, self._data_ahead(min(limit, READ_LIMIT)), self._offset)
        self._offset += len(data)
        return data

    def _data_ahead(self, limit: int) -> int:
        """Skip a hole at the offset, and say how many bytes stand before the next one."""
        if self._file is None:
            return 0
        try:
            data_at = os.lseek(self._file, self._offset, os.SEEK_DATA)
            hole_at = os.lseek(self._file, data_at, os.SEEK_HOLE)
        except OSError:
            # No data after the offset, or a file system that cannot tell: then zeros are read.
            return limit
        if data_at > self._offset:
            self._offset = data_at
            self._skipped = True
        return min(limit, hole_at - data_at)
