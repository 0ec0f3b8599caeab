"""GPU readings that never block the reader: NVML runs in a helper process (``gpu_child.py``).

A call into the driver can hang in the kernel, where no thread can be cancelled and no signal
arrives, or abort the whole process. Here that costs freshness only.
"""

import importlib.util
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import IO, cast

import msgspec

from tui.facts.machine import Driver, DriverError, DriverReading

_CHILD = (
    "import sys; sys.path[:0] = sys.argv[2:]; "
    "from tui.collect.gpu_child import main; main(float(sys.argv[1]))"
)
_CLOSE_PATIENCE = 0.1  # seconds for a killed helper to end before it is left behind
_FIRST_RESTART, _LAST_RESTART = 1.0, 60.0  # seconds before a helper that ended is started again
_STEADY = 60.0  # a helper that lived so long did not crash at start
_MAX_FRAME = 4 << 20


class _Record(msgspec.Struct, frozen=True):
    at: float
    reading: DriverReading


_DECODER = msgspec.json.Decoder(_Record)


class GpuSource:
    """The latest GPU reading, taken every ``period`` seconds by a helper process.

    ``environ`` is the helper's environment, by default this process's. A reading that is ``deadline``
    seconds late makes the driver ``timed_out``; a helper silent for ``replace_after`` seconds is
    replaced, once it is gone.
    """

    def __init__(
        self,
        environ: Mapping[str, str] | None = None,
        *,
        period: float = 1.0,
        deadline: float = 5.0,
        replace_after: float = 60.0,
    ) -> None:
        self._environ = environ
        self._period = period
        self._deadline = deadline
        self._replace_after = replace_after
        self._started = time.monotonic()
        self._changed = threading.Condition()
        self._newest: _Record | None = None
        self._good: _Record | None = None
        self._failure: DriverError | None = None
        self._closing = threading.Event()
        self._wake_read, self._wake_write = -1, -1
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the helper in the background."""
        if self._thread is None:
            self._started = time.monotonic()
            self._wake_read, self._wake_write = os.pipe()
            self._thread = threading.Thread(target=self._run, name="gpu-source", daemon=True)
            self._thread.start()

    def latest(self) -> DriverReading:
        """What is known now, at once.

        While the driver has an error (its own, ``timed_out``, ``crashed``), the cards are the last
        good ones, with their growing ``age``. Before the first reading there is no card and no age.
        """
        now = time.monotonic()
        with self._changed:
            newest, good, error = self._newest, self._good, self._failure
        if newest is None:
            if error is None and now - self._started > self._deadline:
                error = DriverError("timed_out")
            return DriverReading(Driver(error=error))
        if error is None:
            late = now - newest.at > self._period + self._deadline
            error = DriverError("timed_out") if late else newest.reading.driver.error
        shown = newest if error is None or good is None else good
        driver = replace(newest.reading.driver, error=error)
        return replace(shown.reading, driver=driver, age=now - shown.at)

    def first(self, deadline_s: float) -> DriverReading:
        """The first reading, waited for at most ``deadline_s`` seconds, else a ``timed_out`` driver."""
        with self._changed:
            heard = self._changed.wait_for(self._heard, deadline_s)
        return self.latest() if heard else DriverReading(Driver(error=DriverError("timed_out")))

    def close(self) -> None:
        """End the helper; one that hangs in the kernel is left to end when its call returns."""
        if self._thread is None or self._closing.is_set():
            return
        self._closing.set()
        os.close(self._wake_write)
        self._thread.join(2 * _CLOSE_PATIENCE)

    def __enter__(self) -> "GpuSource":
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _heard(self) -> bool:
        return self._newest is not None or self._failure is not None

    def _run(self) -> None:
        """The thread: keep one helper running, wait longer each time before the next."""
        delay = _FIRST_RESTART
        while True:
            began = time.monotonic()
            failure = self._serve()
            if failure is None:
                break
            with self._changed:
                self._failure = failure
                self._changed.notify_all()
            delay = _FIRST_RESTART if time.monotonic() - began > _STEADY else delay
            if self._closing.wait(delay):
                break
            delay = min(2 * delay, _LAST_RESTART)
        os.close(self._wake_read)

    def _serve(self) -> DriverError | None:
        """One helper from its start to its end; ``None`` when it ends because this source closes."""
        try:
            helper = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _CHILD, str(self._period), *_import_paths()],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env=self._environ,
                start_new_session=True,  # Ctrl-C in the terminal is not meant for it
            )
        except OSError as error:
            return DriverError("unknown_error", f"helper process: {error}")
        with cast("IO[bytes]", helper.stdin), cast("IO[bytes]", helper.stdout) as frames:
            silent = self._follow(frames.fileno())
            helper.kill()
            gone = self._reap(helper)
        if self._closing.is_set() or not gone:
            return None
        return (
            DriverError("timed_out") if silent else DriverError("crashed", _how_it_ended(helper.returncode))
        )

    def _follow(self, frames: int) -> bool:
        """Take in readings until the helper ends or this source closes; true: it fell silent."""
        poller = select.poll()
        poller.register(frames, select.POLLIN)
        poller.register(self._wake_read, select.POLLIN)
        rest = b""
        while True:
            ready = poller.poll(self._replace_after * 1000)
            if self._closing.is_set():
                return False
            if not ready:
                return True
            chunk = os.read(frames, 1 << 16)
            if not chunk:
                return False
            *lines, rest = (rest + chunk).split(b"\n")
            if lines:
                self._take(lines[-1])
            elif len(rest) > _MAX_FRAME:
                rest = b""

    def _take(self, line: bytes) -> None:
        try:
            record = _DECODER.decode(line)
        except msgspec.DecodeError:
            return
        with self._changed:
            self._newest = record
            if record.reading.driver.error is None:
                self._good = record
            self._failure = None
            self._changed.notify_all()

    def _reap(self, helper: "subprocess.Popen[bytes]") -> bool:
        """Wait for a killed helper: as long as it takes, since a second one would hang beside it."""
        while True:
            try:
                helper.wait(_CLOSE_PATIENCE)
            except subprocess.TimeoutExpired:
                if self._closing.is_set():
                    return False
            else:
                return True


def _import_paths() -> list[str]:
    """Where the helper, which has no site-packages of its own, finds this package and the binding."""
    package = Path(__file__).parents[2]
    binding = importlib.util.find_spec("pynvml")
    found = [package] if binding is None or binding.origin is None else [package, Path(binding.origin).parent]
    return [str(path) for path in found]


def _how_it_ended(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    return signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
