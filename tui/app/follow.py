"""Follows a log file in a thread of its own: a hung disk costs the log its freshness, nothing else.

The newest lines are put into a slot as one tuple; whoever draws takes what is there.
"""

import os
import threading
from collections import deque
from dataclasses import dataclass
from pathlib import Path

from tui.text.loglines import LogLines

WINDOW = 4 << 20
"""Bytes at the end of a file that are read at first: a log of any size opens at once."""
LOG_NAME = "train.log"
"""The log in a job's folder."""
LINES_KEPT = 20_000
_READ_EVERY = 0.5
_PIECE = 1 << 20


@dataclass(frozen=True, slots=True)
class LogView:
    """What is known of a log now. ``cut``: the file has more before the first line shown here."""

    path: Path | None = None
    lines: tuple[str, ...] = ()
    unfinished: str = ""
    cut: bool = False
    error: str = ""


class Tail:
    """Reads what is new of one file. A file that shrank was started anew and is read again."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset: int | None = None
        self._cut = False
        self._inode = 0
        self._reader = LogLines()
        self._lines: deque[str] = deque(maxlen=LINES_KEPT)

    def read(self) -> LogView:
        """Everything there is by now."""
        try:
            with self._path.open("rb") as file:
                status = os.fstat(file.fileno())
                if self._offset is None or status.st_size < self._offset or status.st_ino != self._inode:
                    self._begin(status.st_size, status.st_ino)
                file.seek(self._offset or 0)
                while piece := file.read(_PIECE):
                    self._offset = (self._offset or 0) + len(piece)
                    # The middle of a long log is freed in place and reads as zeros.
                    self._lines.extend(self._reader.feed(piece.replace(b"\0", b"")))
        except OSError as error:
            return LogView(self._path, tuple(self._lines), "", self._cut, error.strerror or str(error))
        return LogView(self._path, tuple(self._lines), self._reader.unfinished, self._cut)

    def _begin(self, size: int, inode: int) -> None:
        self._offset = max(0, size - WINDOW)
        self._cut = self._offset > 0
        self._inode = inode
        self._reader = LogLines()
        self._lines.clear()


class Follower:
    """The thread. ``follow`` says which file, ``latest`` gives what is known of it."""

    def __init__(self) -> None:
        self._wanted: Path | None = None
        self._view = LogView()
        self._wake = threading.Event()
        self._stopped = False
        self._thread: threading.Thread | None = None

    def follow(self, path: Path | None) -> None:
        """Read this file from now on; ``None``: no file."""
        if path == self._wanted:
            return
        self._wanted = path
        if self._thread is None and path is not None:
            self._thread = threading.Thread(target=self._run, name="log-follower", daemon=True)
            self._thread.start()
        self._wake.set()

    def latest(self) -> LogView:
        """The newest view, empty while another file is being opened."""
        view = self._view
        return view if view.path == self._wanted else LogView(self._wanted)

    def close(self) -> None:
        """Read no more. A thread that hangs in a dead disk is left to the end of the process."""
        self._stopped = True
        self._wake.set()

    def _run(self) -> None:
        tail: Tail | None = None
        path: Path | None = None
        while not self._stopped:
            if self._wanted != path:
                path = self._wanted
                tail = Tail(path) if path is not None else None
            if tail is not None:
                view = tail.read()
                if view != self._view:
                    self._view = view
            self._wake.wait(_READ_EVERY)
            self._wake.clear()
