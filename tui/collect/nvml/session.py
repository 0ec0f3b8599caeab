"""One NVML session: the driver, and every card that it has."""

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from tui.collect.nvml.answers import Answers, reason_of
from tui.collect.nvml.binding import LOST, MAX_DETAIL, pynvml
from tui.collect.nvml.card import READINGS, brief_reading, full_reading, identity
from tui.collect.nvml.detail import DetailReader
from tui.facts.machine import Driver, DriverError, DriverErrorCode, DriverReading, GpuReading

_MAX_GPUS = 64
_FIRST_RETRY, _LAST_RETRY = 1.0, 30.0  # seconds between attempts to open a broken session anew

_DRIVER_ERRORS: dict[int, DriverErrorCode] = {
    pynvml.NVML_ERROR_NO_PERMISSION: "no_permission",
    pynvml.NVML_ERROR_DRIVER_NOT_LOADED: "driver_not_loaded",
    pynvml.NVML_ERROR_TIMEOUT: "timed_out",
    pynvml.NVML_ERROR_LIBRARY_NOT_FOUND: "library_missing",
    pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH: "version_mismatch",
}


class NvmlSession:
    """One NVML session; a read never raises, and a broken session is opened anew by itself.

    ``brief`` reads memory, utilisation and power only, for a caller that samples often: the other
    fields stay ``None`` without a reason. ``clock`` tells monotonic seconds.
    """

    def __init__(self, *, brief: bool = False, clock: Callable[[], float] = time.monotonic) -> None:
        self._brief = brief
        self._clock = clock
        self._open = False
        self._driver = Driver()
        self._details = DetailReader()
        self._known: dict[int, GpuReading] = {}  # by index: who the card is, without readings
        self._faults: frozenset[str] = frozenset()
        self._retry_at = clock()
        self._retry_after = _FIRST_RETRY

    def read(self) -> DriverReading:
        """Every card as it is now; ``age`` and ``pid_regime`` are left to those who know.

        ``driver.error`` is set when the driver as a whole does not answer: no session, no card, or
        only lost and failing cards, at least one of them failing. Otherwise a lost or failing card
        keeps the others.
        """
        now = self._clock()
        if not self._open and now < self._retry_at:
            return DriverReading(self._driver)
        was_open = self._open
        reading = self._read_once(now)
        faults = _faults(reading)
        # A session does not heal when its card was reset or given back: it must be opened anew. At
        # once for a fault that was not there before, then ever more rarely.
        if faults and was_open and (faults - self._faults or now >= self._retry_at):
            self.close()
            reading = self._read_once(now)
            faults = _faults(reading)
        if not faults:
            self._retry_after = _FIRST_RETRY
        self._faults = faults
        self._driver = reading.driver
        return reading

    def close(self) -> None:
        """End the session; the next ``read`` opens a new one."""
        if self._open:
            self._open = False
            with suppress(pynvml.NVMLError):  # a broken session cannot be ended, only left
                pynvml.nvmlShutdown()

    def _read_once(self, now: float) -> DriverReading:
        driver = Driver(self._driver.version, self._driver.nvml)
        try:
            if not self._open:
                self._retry_at = now + self._retry_after
                self._retry_after = min(2 * self._retry_after, _LAST_RETRY)
                pynvml.nvmlInit()
                self._open = True
                self._details.forget()
                driver = Driver(
                    _text(pynvml.nvmlSystemGetDriverVersion), _text(pynvml.nvmlSystemGetNVMLVersion)
                )
            count = min(int(pynvml.nvmlDeviceGetCount()), _MAX_GPUS)
        except pynvml.NVMLError as error:
            return DriverReading(replace(driver, error=_driver_error(error.value)))
        if count == 0:
            return DriverReading(replace(driver, error=DriverError("no_device")))
        self._details.begin(now)
        cards = [self._read_card(index, count, now) for index in range(count)]
        faults = [fault for _, fault in cards if fault is not None]
        if faults and all(gpu.state != "ok" for gpu, _ in cards):
            driver = replace(driver, error=_driver_error(faults[0]))
        return DriverReading(driver, tuple(gpu for gpu, _ in cards))

    def _read_card(self, index: int, count: int, now: float) -> tuple[GpuReading, int | None]:
        """One card, and the code by which it fails as a whole, if it does."""
        known = self._known.get(index, GpuReading(index, None, "", "", "error"))
        answers = Answers()
        try:
            handle = pynvml.nvmlDeviceGetHandleByIndex(index)
            known = self._known[index] = identity(handle, answers, known)
            answers.any = False  # the library remembers who a card is: that proves nothing of the card
            reading = brief_reading(handle, answers, known)
            if not self._brief:
                reading = full_reading(handle, answers, reading)
                reading = replace(reading, detail=self._details.read(index, handle, count, now))
        except pynvml.NVMLError as error:
            if error.value in LOST:
                return replace(known, state="lost", unknown=dict.fromkeys(READINGS, "gpu_lost")), None
            reason = reason_of(error.value)
            return replace(known, unknown=dict.fromkeys(READINGS, reason)), error.value
        if answers.fault is not None and not answers.any:
            return replace(reading, state="error"), answers.fault
        return reading, None


def _text(call: Callable[[], str]) -> str | None:
    try:
        return str(call())[:MAX_DETAIL]
    except (pynvml.NVMLError, UnicodeDecodeError):
        return None


def _driver_error(code: int) -> DriverError:
    text = f"{pynvml.NVMLError(code)} (NVML {code})"
    return DriverError(_DRIVER_ERRORS.get(code, "unknown_error"), text[:MAX_DETAIL])


def _faults(reading: DriverReading) -> frozenset[str]:
    """What is wrong as a whole, to tell a fault that is new from one that lasts."""
    error = reading.driver.error
    found = {f"{gpu.index} {gpu.state}" for gpu in reading.gpus if gpu.state != "ok"}
    return frozenset(found if error is None else found | {error.code})
