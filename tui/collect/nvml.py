"""NVML, the driver's own library, read through its official binding: the only importer of ``pynvml``.

Any call may hang in the kernel, so nothing but a helper process uses this module:
``collect/gpu_worker.py`` starts one for the program, ``jobs/sampler.py`` is one for a job.
"""

import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import TypeAlias, TypeVar

from tui.facts.machine import (
    Clocks,
    Driver,
    DriverError,
    DriverErrorCode,
    DriverReading,
    GpuReading,
    NvmlProcess,
    ThrottleReason,
)
from tui.facts.unknown import UnknownReason

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # the deprecated package of the same name warns at import
    import pynvml

T = TypeVar("T")
_Handle: TypeAlias = pynvml.c_nvmlDevice_t

_MHZ = 1_000_000
_MAX_GPUS = 64
_MAX_PROCESSES = 4096  # per card and list; a scrambled list may claim any number
_MAX_DETAIL = 200
_FIRST_RETRY, _LAST_RETRY = 1.0, 30.0  # seconds between attempts to open a broken session anew

# What can be true: broken drivers answer with 0xFFFFFFFF and the like.
_MAX_TEMPERATURE = 200  # degrees Celsius
_MAX_POWER = 10_000_000  # milliwatts
_MAX_CLOCK = 10_000  # MHz
_MAX_PID = 1 << 22  # Linux gives out no higher one; seen: 0 and 0xFFFFFFFF, where structures differ

_DRIVER_ERRORS: dict[int, DriverErrorCode] = {
    pynvml.NVML_ERROR_NO_PERMISSION: "no_permission",
    pynvml.NVML_ERROR_DRIVER_NOT_LOADED: "driver_not_loaded",
    pynvml.NVML_ERROR_TIMEOUT: "timed_out",
    pynvml.NVML_ERROR_LIBRARY_NOT_FOUND: "library_missing",
    pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH: "version_mismatch",
}
_REASONS: dict[int, UnknownReason] = {
    pynvml.NVML_ERROR_NOT_SUPPORTED: "not_supported",
    pynvml.NVML_ERROR_NO_PERMISSION: "no_permission",
    pynvml.NVML_ERROR_TIMEOUT: "timed_out",
}
# This driver is too old or too new for the call: an older or newer one may answer.
_NO_SUCH_CALL = (pynvml.NVML_ERROR_FUNCTION_NOT_FOUND, pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH)
_LOST = (pynvml.NVML_ERROR_GPU_IS_LOST, pynvml.NVML_ERROR_RESET_REQUIRED)

_THROTTLE_BITS: tuple[tuple[int, ThrottleReason], ...] = (
    (0x1, "idle"),
    (0x2, "application_clocks"),
    (0x4, "sw_power_cap"),
    (0x8, "hw_slowdown"),
    (0x10, "sync_boost"),
    (0x20, "sw_thermal"),
    (0x40, "hw_thermal"),
    (0x80, "hw_power_brake"),
    (0x100, "display_clocks"),
)

_READINGS = (
    "total",
    "used",
    "reserved",
    "free",
    "utilization",
    "power",
    "temperature",
    "power_limit",
    "clocks",
    "throttle",
    "processes",
)


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
                driver = Driver(
                    _text(pynvml.nvmlSystemGetDriverVersion), _text(pynvml.nvmlSystemGetNVMLVersion)
                )
            count = min(int(pynvml.nvmlDeviceGetCount()), _MAX_GPUS)
        except pynvml.NVMLError as error:
            return DriverReading(replace(driver, error=_driver_error(error.value)))
        if count == 0:
            return DriverReading(replace(driver, error=DriverError("no_device")))
        cards = [self._read_card(index) for index in range(count)]
        faults = [fault for _, fault in cards if fault is not None]
        if faults and all(gpu.state != "ok" for gpu, _ in cards):
            driver = replace(driver, error=_driver_error(faults[0]))
        return DriverReading(driver, tuple(gpu for gpu, _ in cards))

    def _read_card(self, index: int) -> tuple[GpuReading, int | None]:
        """One card, and the code by which it fails as a whole, if it does."""
        known = self._known.get(index, GpuReading(index, None, "", "", "error"))
        answers = _Answers()
        try:
            handle = pynvml.nvmlDeviceGetHandleByIndex(index)
            known = self._known[index] = _identity(handle, answers, known)
            answers.any = False  # the library remembers who a card is: that proves nothing of the card
            reading = _brief(handle, answers, known)
            if not self._brief:
                reading = _rest(handle, answers, reading)
        except pynvml.NVMLError as error:
            if error.value in _LOST:
                return replace(known, state="lost", unknown=dict.fromkeys(_READINGS, "gpu_lost")), None
            reason = _REASONS.get(error.value, "driver_error")
            return replace(known, unknown=dict.fromkeys(_READINGS, reason)), error.value
        if answers.fault is not None and not answers.any:
            return replace(reading, state="error"), answers.fault
        return reading, None


class _Answers:
    """What one card answers; a value that cannot be had becomes ``None`` with a reason.

    ``any``: something could be read. ``fault``: the code of a call that failed and should not have.
    """

    def __init__(self) -> None:
        self.unknown: dict[str, UnknownReason] = {}
        self.any = False
        self.fault: int | None = None

    def ask(self, field: str, *calls: Callable[[], T], before: T | None = None) -> T | None:
        """What the first of ``calls`` says that this driver and this binding know.

        ``before`` is what the card said earlier of something that does not change.

        Raises:
            pynvml.NVMLError: the card is lost.
        """
        reason: UnknownReason = "not_supported"
        for call in calls:
            try:
                answer = call()
            except AttributeError:
                continue  # the binding is older than the call
            except UnicodeDecodeError:
                reason = "out_of_range"
                break
            except pynvml.NVMLError as error:
                if error.value in _LOST:
                    raise
                if error.value in _NO_SUCH_CALL:
                    continue
                reason = _REASONS.get(error.value, "driver_error")
                if reason == "driver_error":
                    self.fault = error.value
                break
            self.any = True
            return answer
        if before is None:
            self.unknown[field] = reason
        return before

    def within(self, field: str, value: int | None, lowest: int, highest: int | None) -> int | None:
        """``value``, or ``None`` with a reason where it cannot be true."""
        if value is None or (lowest <= value and (highest is None or value <= highest)):
            return value
        self.unknown[field] = "out_of_range"
        return None


def _identity(handle: _Handle, answers: _Answers, before: GpuReading) -> GpuReading:
    uuid = answers.ask("uuid", lambda: str(pynvml.nvmlDeviceGetUUID(handle)), before=before.uuid or None)
    name = answers.ask("name", lambda: str(pynvml.nvmlDeviceGetName(handle)), before=before.name or None)
    minor = answers.ask("minor", lambda: int(pynvml.nvmlDeviceGetMinorNumber(handle)), before=before.minor)
    return GpuReading(before.index, minor, uuid or "", name or "", "error")


def _brief(handle: _Handle, answers: _Answers, known: GpuReading) -> GpuReading:
    total, used, reserved, free = _memory(handle, answers)
    percent = answers.ask("utilization", lambda: int(pynvml.nvmlDeviceGetUtilizationRates(handle).gpu))
    percent = answers.within("utilization", percent, 0, 100)
    power = answers.ask("power", lambda: int(pynvml.nvmlDeviceGetPowerUsage(handle)))
    return replace(
        known,
        state="ok",
        total=total,
        used=used,
        reserved=reserved,
        free=free,
        utilization=None if percent is None else percent / 100,
        power=_watts(answers.within("power", power, 0, _MAX_POWER)),
        unknown=answers.unknown,
    )


def _rest(handle: _Handle, answers: _Answers, reading: GpuReading) -> GpuReading:
    temperature = answers.ask(
        "temperature",
        lambda: int(pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU)),
        lambda: int(pynvml.nvmlDeviceGetTemperatureV(handle, pynvml.NVML_TEMPERATURE_GPU)),
    )
    limit = answers.ask(
        "power_limit",
        lambda: int(pynvml.nvmlDeviceGetEnforcedPowerLimit(handle)),
        lambda: int(pynvml.nvmlDeviceGetPowerManagementLimit(handle)),
    )
    throttle = answers.ask(
        "throttle",
        lambda: int(pynvml.nvmlDeviceGetCurrentClocksEventReasons(handle)),
        lambda: int(pynvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle)),
    )
    return replace(
        reading,
        temperature=answers.within("temperature", temperature, 0, _MAX_TEMPERATURE),
        power_limit=_watts(answers.within("power_limit", limit, 0, _MAX_POWER)),
        clocks=_clocks(handle, answers),
        throttle=tuple(name for bit, name in _THROTTLE_BITS if (throttle or 0) & bit),
        processes=_processes(handle, answers, reading.total),
    )


def _memory(handle: _Handle, answers: _Answers) -> tuple[int | None, int | None, int | None, int | None]:
    """Total, used, reserved, free. Only the second version of the call tells ``reserved`` apart; the
    first counts it as used, as nvidia-smi of drivers before 510 does, which have no other.
    """

    def second() -> tuple[int, int, int | None, int]:
        memory = pynvml.nvmlDeviceGetMemoryInfo(handle, version=pynvml.nvmlMemory_v2)
        return int(memory.total), int(memory.used), int(memory.reserved), int(memory.free)

    def first() -> tuple[int, int, int | None, int]:
        memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
        return int(memory.total), int(memory.used), None, int(memory.free)

    figures = answers.ask("total", second, first)
    if figures is None:
        answers.unknown.update(dict.fromkeys(("used", "reserved", "free"), answers.unknown["total"]))
        return None, None, None, None
    total = answers.within("total", figures[0], 1, None)
    used, reserved, free = (
        answers.within(field, figure, 0, total)
        for field, figure in zip(("used", "reserved", "free"), figures[1:], strict=True)
    )
    if figures[2] is None:
        answers.unknown["reserved"] = "not_supported"
    return total, used, reserved, free


def _clocks(handle: _Handle, answers: _Answers) -> Clocks | None:
    """Both clocks; one that is unknown has its reason under ``clocks.graphics`` or ``clocks.memory``."""

    def clock(field: str, kind: int) -> int | None:
        mhz = answers.ask(field, lambda: int(pynvml.nvmlDeviceGetClockInfo(handle, kind)))
        mhz = answers.within(field, mhz, 0, _MAX_CLOCK)
        return None if mhz is None else mhz * _MHZ

    graphics = clock("clocks.graphics", pynvml.NVML_CLOCK_GRAPHICS)
    memory = clock("clocks.memory", pynvml.NVML_CLOCK_MEM)
    if graphics is None and memory is None:
        answers.unknown["clocks"] = answers.unknown["clocks.graphics"]
        return None
    return Clocks(graphics, memory)


def _processes(handle: _Handle, answers: _Answers, total: int | None) -> tuple[NvmlProcess, ...] | None:
    """Both lists as one, each PID once: a container's list may name one twice, so sizes are not added
    up, the larger counts. ``None`` when a list fails, since half a list would hide owners; only a card
    that has no graphics list (the parent of MIG instances) goes without.
    """

    def listed(call: Callable[[_Handle], list[pynvml.c_nvmlProcessInfo_t]]) -> list[tuple[int, int | None]]:
        return [(int(entry.pid), entry.usedGpuMemory) for entry in call(handle)[:_MAX_PROCESSES]]

    compute = answers.ask(
        "processes",
        lambda: listed(pynvml.nvmlDeviceGetComputeRunningProcesses_v3),
        lambda: listed(pynvml.nvmlDeviceGetComputeRunningProcesses_v2),
    )
    graphics = answers.ask(
        "graphics",
        lambda: listed(pynvml.nvmlDeviceGetGraphicsRunningProcesses_v3),
        lambda: listed(pynvml.nvmlDeviceGetGraphicsRunningProcesses_v2),
    )
    reason = answers.unknown.pop("graphics", "not_supported")
    if compute is None:
        return None
    if reason != "not_supported":
        answers.unknown["processes"] = reason
        return None
    largest: dict[int, int | None] = {}
    for pid, memory in (*compute, *(graphics or ())):
        if 0 < pid <= _MAX_PID:
            if memory is not None and (total is None or memory <= total):
                largest[pid] = max(memory, largest.get(pid) or 0)
            else:
                largest.setdefault(pid, None)
    return tuple(NvmlProcess(pid, memory) for pid, memory in largest.items())


def _watts(milliwatts: int | None) -> float | None:
    return None if milliwatts is None else milliwatts / 1000


def _text(call: Callable[[], str]) -> str | None:
    try:
        return str(call())[:_MAX_DETAIL]
    except (pynvml.NVMLError, UnicodeDecodeError):
        return None


def _driver_error(code: int) -> DriverError:
    text = f"{pynvml.NVMLError(code)} (NVML {code})"
    return DriverError(_DRIVER_ERRORS.get(code, "unknown_error"), text[:_MAX_DETAIL])


def _faults(reading: DriverReading) -> frozenset[str]:
    """What is wrong as a whole, to tell a fault that is new from one that lasts."""
    error = reading.driver.error
    found = {f"{gpu.index} {gpu.state}" for gpu in reading.gpus if gpu.state != "ok"}
    return frozenset(found if error is None else found | {error.code})
