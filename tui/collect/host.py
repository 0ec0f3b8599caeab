"""The container or machine around the GPUs: what it is, and whether it has a GPU at all."""

import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tui.collect.cgroup import CgroupReading, cpu_used
from tui.collect.disks import mount_types
from tui.collect.proc import Proc
from tui.facts.machine import (
    Disk,
    DriverErrorCode,
    DriverReading,
    GpuMode,
    Host,
    HostMemory,
    Platform,
    SharedMemory,
)
from tui.facts.unknown import UnknownReason

_GIB = 1 << 30
_NO_GPU_MEMORY = 3 * _GIB
"""AutoDL's no-GPU mode has 2 GiB; no instance with a GPU has so little."""

_NOTHING_TO_SAY: frozenset[DriverErrorCode] = frozenset({"timed_out", "crashed"})
"""Errors of the reading itself, which tell nothing about whether there is a GPU."""

_AUTODL_VARIABLE = "AutoDLContainerUUID"
_AUTODL_BOOT = "init/boot"
_AUTODL_HOST = "autodl-container-"
_CONTAINER_FILES = (".dockerenv", "run/.containerenv")
_CONTAINER_GROUPS = ("docker", "kubepods", "containerd", "libpod", "lxc")


@dataclass(frozen=True, slots=True)
class Traces:
    """What tells where this runs. ``device_files``: there is a ``/dev/nvidiaN``."""

    autodl: bool
    container: bool
    device_files: bool

    @property
    def platform(self) -> Platform:
        """The most special of what fits."""
        if self.autodl:
            return "autodl"
        return "container" if self.container else "host"


def read_traces(
    proc: Proc,
    root: Path = Path("/"),
    environment: Mapping[str, str] = os.environ,
    hostname: str | None = None,
) -> Traces:
    """Look for the traces. A login that is not interactive lacks the variables, so files count too."""
    name = socket.gethostname() if hostname is None else hostname
    try:
        groups = Path(proc.root, "self", "cgroup").read_text(encoding="ascii", errors="replace")
    except OSError:
        groups = ""
    return Traces(
        autodl=_AUTODL_VARIABLE in environment
        or (root / _AUTODL_BOOT).exists()
        or name.startswith(_AUTODL_HOST),
        container=any((root / file).exists() for file in _CONTAINER_FILES)
        or any(word in groups for word in _CONTAINER_GROUPS)
        or mount_types(proc).get("/") == "overlay",
        device_files=any((root / "dev").glob("nvidia[0-9]*")),
    )


def gpu_mode(reading: DriverReading, traces: Traces, memory_limit: int | None) -> GpuMode:
    """Whether there is a GPU to use: ``none`` is no fault of the driver's, and is said only when sure.

    In AutoDL's no-GPU mode the driver answers in many ways (an empty list, no permission, cannot
    communicate), and device files may be there; its small memory tells.
    """
    if reading.gpus:
        return "gpu"
    error = reading.driver.error
    if reading.age is None and error is None:
        return "unknown"
    if traces.autodl and memory_limit is not None and memory_limit <= _NO_GPU_MEMORY:
        return "none"
    if traces.device_files or (error is not None and error.code in _NOTHING_TO_SAY):
        return "unknown"
    return "none"


def assemble(
    cgroup: CgroupReading,
    before: CgroupReading | None,
    disks: tuple[Disk, ...],
    shm: SharedMemory,
    traces: Traces,
    gpus: DriverReading,
) -> Host:
    """The host out of its readings; ``before`` is the previous look at the cgroup."""
    used = None if before is None else cpu_used(before, cgroup)
    unknown: dict[str, UnknownReason] = dict(cgroup.unknown)
    if used is None:
        unknown.setdefault("cpu_used", "not_yet")
    if shm.total is None:
        unknown["shm"] = "missing_file"
    return Host(
        cpu_count=cgroup.cpu_count,
        cpu_used=used,
        memory=HostMemory(cgroup.memory_limit, cgroup.memory_used, cgroup.memory_high),
        oom_kills=cgroup.oom_kills,
        disks=disks,
        shm=shm,
        platform=traces.platform,
        gpu_mode=gpu_mode(gpus, traces, cgroup.memory_limit),
        unknown=unknown,
    )
