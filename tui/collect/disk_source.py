"""Disk readings that never hold up their reader: a network disk may take its whole deadline."""

import threading
import time
from collections.abc import Iterable

from tui.collect.disks import DiskReader
from tui.facts.machine import Disk

_CLOSE_PATIENCE = 0.1


class DiskSource:
    """The latest look at the disks, taken every ``period`` seconds by a thread."""

    def __init__(self, reader: DiskReader, period: float = 10.0) -> None:
        self._reader = reader
        self._period = period
        self._changed = threading.Condition()
        self._paths: tuple[str, ...] = ()
        self._newest: tuple[float, tuple[Disk, ...]] | None = None
        self._closing = False
        self._is_stale = True
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to look; a second start is nothing."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="disk-source", daemon=True)
            self._thread.start()

    def watch(self, paths: Iterable[str]) -> None:
        """Show the disks of ``paths``, too; new ones are looked at without waiting for the period."""
        wanted = tuple(dict.fromkeys(paths))
        with self._changed:
            if wanted != self._paths:
                self._paths, self._is_stale = wanted, True
                self._changed.notify_all()

    def latest(self, patience: float = 0.0) -> tuple[float | None, tuple[Disk, ...]]:
        """Age in seconds, and the disks; at once unless there is no first look yet, which is waited for."""
        with self._changed:
            self._changed.wait_for(lambda: self._newest is not None, patience)
            if self._newest is None:
                return None, ()
            at, disks = self._newest
        return time.monotonic() - at, disks

    def close(self) -> None:
        """Look no more; a look that hangs is left behind."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(_CLOSE_PATIENCE)

    def _run(self) -> None:
        while True:
            with self._changed:
                if self._closing:
                    return
                paths, self._is_stale = self._paths, False
            at = time.monotonic()
            disks = self._reader.read(paths)
            with self._changed:
                self._newest = (at, disks)
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._closing or self._is_stale, self._period)
