"""From a thread to the screen through a latest-value slot: asked for by a timer, never queued.

A stalled terminal stops the screen's loop; the thread goes on, and what is drawn afterwards is the
newest picture, not all the ones in between.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from tui.facts.snapshot import Snapshot


ASK_EVERY = 0.25
"""Seconds between two looks into the slot; a look costs microseconds."""


class Feed(Protocol):
    """Whatever has the newest picture."""

    def start(self) -> None:
        """Begin to take pictures."""

    def latest(self) -> Snapshot | None:
        """The newest picture, at once; ``None`` before the first."""

    def trouble(self) -> str:
        """Why no picture comes at the moment; empty while they come."""

    def close(self) -> None:
        """Take no more pictures."""


class Camera(Protocol):
    """Whatever takes pictures; made in the feed's thread, since making one imports half the program."""

    def snapshot(self) -> Snapshot:
        """A picture of now."""

    def close(self) -> None:
        """Let go of everything."""


class ThreadFeed:
    """Takes a picture every ``period`` seconds in a thread of its own.

    A camera that breaks costs the figures their freshness: it is said, and a new one is tried.
    """

    def __init__(self, make_camera: Callable[[], Camera], period: float, *, again_after: float = 5.0) -> None:
        self._make_camera = make_camera
        self._period = period
        self._again_after = again_after
        self._newest: Snapshot | None = None
        self._trouble = ""
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin; a second start is nothing."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="feed", daemon=True)
            self._thread.start()

    def latest(self) -> Snapshot | None:
        """The newest picture."""
        return self._newest

    def trouble(self) -> str:
        """What broke the camera, until pictures come again."""
        return self._trouble

    def close(self, patience: float = 3.0) -> None:
        """Ask the thread to end, and wait for it a little: it may hang in a dead disk."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(patience)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                with closing(self._make_camera()) as camera:
                    self._take(camera)
            except Exception as error:  # noqa: BLE001  # whatever it was, it is shown, and tried again
                self._trouble = f"{type(error).__name__}: {error}"
                self._stop.wait(self._again_after)

    def _take(self, camera: Camera) -> None:
        due = time.monotonic()
        while not self._stop.is_set():
            # Numbers go on over a change of cameras: the screen draws what has another number.
            picture = camera.snapshot()
            before = self._newest.number if self._newest is not None else 0
            self._newest = replace(picture, number=before + 1)
            self._trouble = ""
            # Late pictures are not caught up with: the newest is all that counts.
            due = max(due + self._period, time.monotonic())
            self._stop.wait(max(0.0, due - time.monotonic()))
