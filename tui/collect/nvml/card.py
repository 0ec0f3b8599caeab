"""The figures of one card that are read at every look."""

from collections.abc import Callable
from dataclasses import replace

from tui.collect.nvml.answers import Answers
from tui.collect.nvml.binding import Handle, pynvml
from tui.facts.machine import Clocks, GpuReading, NvmlProcess, ThrottleReason

_MHZ = 1_000_000
_MAX_PROCESSES = 4096  # per card and list; a scrambled list may claim any number

# What can be true: broken drivers answer with 0xFFFFFFFF and the like.
_MAX_TEMPERATURE = 200  # degrees Celsius
_MAX_POWER = 10_000_000  # milliwatts
_MAX_CLOCK = 10_000  # MHz
_MAX_MEMORY = 1 << 44  # bytes; seen: 2^64 - 1 for "not available"
_MAX_PID = 1 << 22  # Linux gives out no higher one; seen: 0 and 0xFFFFFFFF, where structures differ

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

READINGS = (
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


def identity(handle: Handle, answers: Answers, before: GpuReading) -> GpuReading:
    """Who the card is; ``before`` is what it said earlier."""
    uuid = answers.ask("uuid", lambda: str(pynvml.nvmlDeviceGetUUID(handle)), before=before.uuid or None)
    name = answers.ask("name", lambda: str(pynvml.nvmlDeviceGetName(handle)), before=before.name or None)
    minor = answers.ask("minor", lambda: int(pynvml.nvmlDeviceGetMinorNumber(handle)), before=before.minor)
    return GpuReading(before.index, minor, uuid or "", name or "", "error")


def brief_reading(handle: Handle, answers: Answers, known: GpuReading) -> GpuReading:
    """Memory, utilisation, power."""
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


def full_reading(handle: Handle, answers: Answers, reading: GpuReading) -> GpuReading:
    """``reading`` with everything else that changes at every look."""
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


def _memory(handle: Handle, answers: Answers) -> tuple[int | None, int | None, int | None, int | None]:
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
    total = answers.within("total", figures[0], 1, _MAX_MEMORY)
    used, reserved, free = (
        answers.within(field, figure, 0, total or _MAX_MEMORY)
        for field, figure in zip(("used", "reserved", "free"), figures[1:], strict=True)
    )
    if figures[2] is None:
        answers.unknown["reserved"] = "not_supported"
    return total, used, reserved, free


def _clocks(handle: Handle, answers: Answers) -> Clocks | None:
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


def _processes(handle: Handle, answers: Answers, total: int | None) -> tuple[NvmlProcess, ...] | None:
    """Both lists as one, each PID once: a container's list may name one twice, so sizes are not added
    up, the larger counts. ``None`` when a list fails, since half a list would hide owners; only a card
    that has no graphics list (the parent of MIG instances) goes without.
    """

    def listed(call: Callable[[Handle], list[pynvml.c_nvmlProcessInfo_t]]) -> list[tuple[int, int | None]]:
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
            if memory is not None and memory <= (total or _MAX_MEMORY):
                largest[pid] = max(memory, largest.get(pid) or 0)
            else:
                largest.setdefault(pid, None)
    return tuple(NvmlProcess(pid, memory) for pid, memory in largest.items())


def _watts(milliwatts: int | None) -> float | None:
    return None if milliwatts is None else milliwatts / 1000
