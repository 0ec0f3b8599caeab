"""The machine: GPUs, who holds their memory, the host, its disks."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from tui.facts.unknown import Unknown

Evidence = Literal["exact", "sole_holder", "inferred", "holder", "hidden"]
"""How an owner row was proved.

``exact``: the driver's PID holds the device here and has a size. ``sole_holder``: the only holder of
the card, its size is what the card has in use. ``inferred``: a host PID paired with a local holder.
``holder``: has the device mapped or open, size unknown. ``hidden``: memory that no visible process
explains, or a host PID that cannot be matched.
"""

ProcessKind = Literal["train", "data_worker", "webui", "chat", "api", "vllm", "notebook", "monitor", "other"]
ProcessState = Literal["running", "sleeping", "disk_wait", "stopped", "zombie", "gone", "unknown"]

DATA_WORKER_TITLE = "pt_data_worker"
"""The title that torch gives to its data loaders, which are forked and keep all handles open."""

PidRegime = Literal["own_with_memory", "own_without_memory", "host", "empty", "error", "no_gpu", "unknown"]
"""What the driver's process lists hold in this PID namespace."""

DiskRole = Literal["system", "data", "shared"]
Platform = Literal["autodl", "container", "host"]
GpuMode = Literal["gpu", "none", "unknown"]

DriverErrorCode = Literal[
    "library_missing",
    "driver_not_loaded",
    "no_device",
    "version_mismatch",
    "no_permission",
    "timed_out",
    "crashed",
    "unknown_error",
]

ThrottleReason = Literal[
    "idle",
    "application_clocks",
    "sw_power_cap",
    "hw_slowdown",
    "sync_boost",
    "sw_thermal",
    "hw_thermal",
    "hw_power_brake",
    "display_clocks",
]
"""Why a card does not clock higher. Only ``hw_slowdown``, ``sw_thermal``, ``hw_thermal`` and
``hw_power_brake`` are a worry: ``sw_power_cap`` is the rule under load, ``idle`` without one.
"""


@dataclass(frozen=True, slots=True)
class DriverError:
    """The driver as a whole does not answer. ``detail`` is the library's own text, bounded."""

    code: DriverErrorCode
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Driver:
    """The NVIDIA driver; versions are ``None`` when it never answered.

    ``source``: who was asked. ``nvidia_smi`` only where the library cannot be loaded; it tells less.
    """

    version: str | None = None
    nvml: str | None = None
    pid_regime: PidRegime = "unknown"
    error: DriverError | None = None
    source: Literal["nvml", "nvidia_smi"] = "nvml"


@dataclass(frozen=True, slots=True)
class GpuMemory:
    """Bytes. ``used`` is what nvidia-smi shows (without ``reserved``); ``unattributed`` is what of
    ``used`` no owner row with a size explains. ``unified``: the card has no memory of its own and
    shares the host's, so all of these are ``None`` for good.
    """

    total: int | None
    used: int | None
    reserved: int | None
    free: int | None
    unattributed: int | None = None
    unified: bool = False


@dataclass(frozen=True, slots=True)
class Clocks:
    """Hertz."""

    graphics: int | None
    memory: int | None


LinkKind = Literal["nvlink", "board", "switch", "switches", "host_bridge", "node", "system"]
"""How two cards are joined, the nearest first: NVLink, one board, one PCIe switch, several, one host
bridge, one processor's memory, the link between processors.
"""


@dataclass(frozen=True, slots=True)
class Link:
    """The way from a card to the card of NVML index ``index``."""

    index: int
    kind: LinkKind


@dataclass(frozen=True, slots=True)
class Pcie:
    """The card's way to the host: bytes per second as the card receives and sends them, the
    generation and the number of lanes now in use (both fall while the card idles), and of lanes at most.
    """

    receive: int | None
    send: int | None
    generation: int | None
    lanes: int | None
    most_lanes: int | None


@dataclass(frozen=True, slots=True)
class EccErrors:
    """Memory errors since the driver was loaded."""

    corrected: int | None
    uncorrected: int | None


@dataclass(frozen=True, slots=True)
class GpuDetail:
    """What is shown of a card on demand; all but the first two is read rarely.

    ``performance`` is the N of P-state PN: 0 is the fastest. ``fan`` is a fraction of the highest
    speed, as intended, not measured. ``ecc``: ``None`` with the reason ``not_supported`` where the
    card has none, or has it switched off. ``mig`` tells whether the card is cut into instances, whose
    uuids are ``instances``. ``unknown`` names fields of ``pcie`` and ``ecc`` with a dot.
    """

    performance: int | None = None
    fan: float | None = None
    pcie: Pcie | None = None
    ecc: EccErrors | None = None
    mig: bool | None = None
    instances: tuple[str, ...] = ()
    links: tuple[Link, ...] = ()
    unknown: Unknown = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NvmlProcess:
    """One entry of the driver's process list. ``pid`` may be a host PID: never signal it.

    ``memory`` is bytes as the driver says, which may be a wrong 0; ``None`` when it gives no size
    (``driver_without_figure``).
    """

    pid: int
    memory: int | None


@dataclass(frozen=True, slots=True)
class GpuReading:
    """What NVML says of one card, before owners are joined.

    Bytes, fractions, degrees Celsius, watts. ``used`` is without ``reserved`` where the driver tells
    them apart, as nvidia-smi shows it.
    ``processes`` is ``None`` when the list could not be read, which is not an empty list.
    ``total`` has the reason ``not_supported`` on a card that shares the host's memory.
    ``minor`` is the N of ``/dev/nvidiaN`` and differs from the NVML index in containers.
    ``uuid`` and ``name`` are empty when the card was lost before it could say them.
    """

    index: int
    minor: int | None
    uuid: str
    name: str
    state: Literal["ok", "lost", "error"]
    total: int | None = None
    used: int | None = None
    reserved: int | None = None
    free: int | None = None
    utilization: float | None = None
    temperature: float | None = None
    power: float | None = None
    power_limit: float | None = None
    clocks: Clocks | None = None
    throttle: tuple[str, ...] = ()
    processes: tuple[NvmlProcess, ...] | None = None
    unknown: Unknown = field(default_factory=dict)
    detail: GpuDetail = GpuDetail()


@dataclass(frozen=True, slots=True)
class DriverReading:
    """One answer of the GPU source. ``age`` is seconds since it was taken; ``None``: never taken."""

    driver: Driver
    gpus: tuple[GpuReading, ...] = ()
    age: float | None = None


CauseCode = Literal[
    "orphaned",
    "kernel_wait",
    "zombie_leader",
    "notebook",
    "just_ended",
    "unsized",
    "driver_reserve",
    "nothing_visible",
]
"""Why memory may be in use without an owner: trainers or their workers whose parent is gone; a process
that waits in the kernel; a dead leader whose threads live on; a notebook's kernel; a holder that ended
moments ago; a holder that stands beside without a size; what a driver keeps for itself and counts as
used; none of these in sight.
"""


@dataclass(frozen=True, slots=True)
class Cause:
    """A likely cause of unexplained memory. ``pids`` are local processes that it is about."""

    code: CauseCode
    pids: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Owner:
    """One row of a card's owner table.

    ``pid`` is always a PID of this namespace; a host PID goes to ``host_pid`` and gets no action.
    ``memory`` is bytes on this card, ``resident`` bytes of the host's memory, ``cpu_used`` CPUs since
    the last look, ``started_at`` epoch seconds. ``title`` is what the process calls itself, from
    outside: a notebook's file, the part of a server. ``ancestors`` are the PIDs of parent, its parent,
    and so on. ``causes`` stand in the row of unexplained memory only, the likeliest first.
    """

    pid: int | None
    host_pid: int | None
    start: int | None
    memory: int | None
    evidence: Evidence
    kind: ProcessKind
    rank: int | None = None
    job: str | None = None
    user: str | None = None
    command: tuple[str, ...] = ()
    state: ProcessState = "unknown"
    unknown: Unknown = field(default_factory=dict)
    title: str | None = None
    cpu_used: float | None = None
    resident: int | None = None
    started_at: float | None = None
    ancestors: tuple[int, ...] = ()
    causes: tuple[Cause, ...] = ()


@dataclass(frozen=True, slots=True)
class Gpu:
    """One card as shown. ``peak_memory`` is the highest ``used`` since this program watches."""

    index: int
    minor: int | None
    uuid: str
    name: str
    state: Literal["ok", "lost", "error"]
    age: float | None
    memory: GpuMemory
    utilization: float | None
    temperature: float | None
    power: float | None
    power_limit: float | None
    clocks: Clocks | None
    throttle: tuple[str, ...]
    peak_memory: int | None
    owners: tuple[Owner, ...]
    unknown: Unknown = field(default_factory=dict)
    detail: GpuDetail = GpuDetail()


@dataclass(frozen=True, slots=True)
class Disk:
    """One file system. Roles: ``system`` holds ``/``, ``data`` is the instance's local data disk,
    ``shared`` is network storage that survives the instance.
    """

    path: str
    total: int | None
    free: int | None
    inodes_free: int | None
    role: DiskRole
    unknown: Unknown = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SharedMemory:
    """``/dev/shm``, bytes."""

    total: int | None
    free: int | None


@dataclass(frozen=True, slots=True)
class HostMemory:
    """Bytes as the container counts them (``docker stats``); ``high`` is the cgroup v2 throttle mark."""

    limit: int | None
    used: int | None
    high: int | None


@dataclass(frozen=True, slots=True)
class Host:
    """The container or machine around the GPUs.

    ``cpu_count`` may be fractional (0.5 in AutoDL's no-GPU mode); ``cpu_used`` is in CPUs.
    ``oom_kills`` counts since this cgroup exists. ``unknown`` names nested fields with a dot, such as
    ``memory.high``, which is ``not_reported`` where no mark is set.
    """

    cpu_count: float | None
    cpu_used: float | None
    memory: HostMemory
    oom_kills: int | None
    disks: tuple[Disk, ...]
    shm: SharedMemory
    platform: Platform
    gpu_mode: GpuMode
    unknown: Unknown = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Holder:
    """A local process that has a card's device file open or mapped.

    ``minors`` are the cards it has open or mapped; ``mapped_minors`` those it has mapped, which is
    stronger: a monitor opens the device, a CUDA context maps it.
    ``inherited``: a child that merely kept the handle of its parent (same argv, no mapping).
    """

    pid: int
    start: int
    minors: frozenset[int]
    mapped_minors: frozenset[int] = frozenset()
    inherited: bool = False


@dataclass(frozen=True, slots=True)
class ProcessInfo:
    """What is shown of a local process, secrets masked; text fields are otherwise raw, whoever shows
    them cleans them. An empty ``command`` or ``environment`` that could not be read is in ``unknown``.
    ``cpu_used`` is CPUs since the last look, ``resident`` bytes of the host's memory, ``started_at``
    epoch seconds; ``title`` as in ``Owner``. A zombie with more than one thread is a dead leader whose
    threads live on.
    """

    pid: int
    ppid: int
    start: int
    state: ProcessState
    user: str | None
    command: tuple[str, ...]
    kind: ProcessKind
    rank: int | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    unknown: Unknown = field(default_factory=dict)
    title: str | None = None
    cpu_used: float | None = None
    resident: int | None = None
    started_at: float | None = None
    threads: int = 1
