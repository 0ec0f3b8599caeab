"""The keeper's hand on the disk, on a thread of its own.

A full disk, or one that is busy with a checkpoint of 60 GB, must cost the record its freshness and
never a stop its promptness: the keeper hands over what is to be written and goes on.
"""

import os
import threading
import time
from collections import deque
from contextlib import suppress

from tui.facts.job import JobRecord
from tui.jobs.folder import JobFolder
from tui.jobs.logcap import LogCap

_HOUSEKEEPING = 10.0
_RETRY = 1.0
_EVENTS_HELD = 10_000

EventValue = str | int | float | bool | None


class Scribe:
    """Writes the newest record and all events, in order, until it succeeds."""

    def __init__(self, folder: JobFolder, retry: float = _RETRY) -> None:
        self._folder = folder
        self._retry = retry
        self._cap = LogCap(folder.log)
        self._record: JobRecord | None = None
        self._events: deque[dict[str, EventValue]] = deque(maxlen=_EVENTS_HELD)
        self._work = threading.Condition()
        self._closing = False
        self._complaint = ""
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def record(self, record: JobRecord) -> None:
        """Have this written; an older one still waiting is skipped."""
        with self._work:
            self._record = record
            self._work.notify()

    def event(self, name: str, **values: EventValue) -> None:
        """Have a line added to the events, with the time of now."""
        with self._work:
            self._events.append({"at": round(time.time(), 3), "event": name, **values})
            self._work.notify()

    def close(self) -> None:
        """Return when everything is on disk, however long the disk stays full."""
        with self._work:
            self._closing = True
            self._work.notify()
        self._thread.join()

    def _run(self) -> None:
        while True:
            with self._work:
                if not (self._record or self._events or self._closing):
                    self._work.wait(_HOUSEKEEPING)
                closing = self._closing
            # Before the writing: it may free the room that the record needs.
            self._keep_house()
            if not (self._write_record() and self._write_events()):
                time.sleep(self._retry)
            elif closing and not (self._record or self._events):
                return

    def _write_record(self) -> bool:
        record = self._record
        if record is None:
            return True
        try:
            self._folder.write_record(record)
        except OSError as error:
            if self._folder.path.exists():
                self._complain(f"record not written yet: {error}")
                return False
            # Somebody removed the folder: there is nothing left to be true to.
        with self._work:
            if self._record is record:
                self._record = None
        return True

    def _write_events(self) -> bool:
        with self._work:
            events = list(self._events)
            self._events.clear()
        try:
            self._folder.append_events(events)
        except OSError as error:
            if self._folder.path.exists():
                self._complain(f"events not written yet: {error}")
                with self._work:
                    self._events.extendleft(reversed(events))
                return False
        return True

    def _keep_house(self) -> None:
        try:
            freed = self._cap.enforce()
        except OSError as error:
            self._complain(f"log not shortened: {error}")
            return
        if freed:
            self.event("log_shortened", bytes=freed)

    def _complain(self, complaint: str) -> None:
        if complaint == self._complaint:
            return
        self._complaint = complaint
        with suppress(OSError):  # keeper.log lies on the same disk
            os.write(2, f"{complaint}\n".encode())
