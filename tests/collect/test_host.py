"""What the host is, from traces on disk and from what the driver says."""

from pathlib import Path

import pytest

from tui.collect.cgroup import CgroupReading
from tui.collect.host import Traces, assemble, gpu_mode, read_traces
from tui.collect.proc import Proc
from tui.facts.machine import (
    Disk,
    Driver,
    DriverError,
    DriverErrorCode,
    DriverReading,
    GpuMode,
    GpuReading,
    HostMemory,
    SharedMemory,
)

GIB = 1 << 30
NOTHING = Traces(autodl=False, container=False, device_files=False)
DEVICES = Traces(autodl=False, container=True, device_files=True)
AUTODL = Traces(autodl=True, container=True, device_files=True)
ONE_GPU = DriverReading(Driver(), (GpuReading(0, 0, "GPU-1", "card", "lost"),), age=0.1)


def failed(code: DriverErrorCode, age: float | None = 0.1) -> DriverReading:
    return DriverReading(Driver(error=DriverError(code)), age=age)


@pytest.fixture
def proc(tmp_path: Path) -> Proc:
    (tmp_path / "proc" / "self").mkdir(parents=True)
    return Proc(tmp_path / "proc")


def look(proc: Proc, root: Path, environment: dict[str, str] | None = None, name: str = "box") -> Traces:
    return read_traces(proc, root, environment or {}, name)


def test_a_bare_machine_leaves_no_traces(proc: Proc, tmp_path: Path) -> None:
    assert look(proc, tmp_path) == NOTHING
    assert NOTHING.platform == "host"


@pytest.mark.parametrize(
    ("file", "text"),
    [
        (".dockerenv", ""),
        ("run/.containerenv", ""),
        ("proc/self/cgroup", "0::/kubepods/besteffort/pod1\n"),
        ("proc/self/mountinfo", "22 1 0:21 / / rw - overlay overlay rw\n"),
    ],
)
def test_traces_of_a_container(proc: Proc, tmp_path: Path, file: str, text: str) -> None:
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / file).write_text(text)
    traces = look(proc, tmp_path)
    assert traces.container
    assert traces.platform == "container"


def test_traces_of_autodl(proc: Proc, tmp_path: Path) -> None:
    assert look(proc, tmp_path, {"AutoDLContainerUUID": "x"}).platform == "autodl"
    assert look(proc, tmp_path, name="autodl-container-0123456789-abcdef01").platform == "autodl"
    (tmp_path / "init" / "boot").mkdir(parents=True)
    assert look(proc, tmp_path).platform == "autodl"


@pytest.mark.parametrize(("name", "found"), [("nvidia3", True), ("nvidiactl", False), ("nvidia-uvm", False)])
def test_only_a_numbered_device_is_a_card(proc: Proc, tmp_path: Path, name: str, found: bool) -> None:
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev" / name).touch()
    assert look(proc, tmp_path).device_files is found


@pytest.mark.parametrize(
    ("reading", "traces", "limit", "mode"),
    [
        (ONE_GPU, NOTHING, None, "gpu"),
        (ONE_GPU, AUTODL, 2 * GIB, "gpu"),
        (DriverReading(Driver()), NOTHING, None, "unknown"),
        (failed("library_missing"), NOTHING, None, "none"),
        (failed("no_device"), NOTHING, 90 * GIB, "none"),
        (failed("no_device"), DEVICES, 2 * GIB, "unknown"),
        (failed("no_permission"), AUTODL, 2 * GIB, "none"),
        (failed("unknown_error"), AUTODL, 3 * GIB, "none"),
        (failed("unknown_error"), AUTODL, 90 * GIB, "unknown"),
        (failed("unknown_error"), AUTODL, None, "unknown"),
        (failed("version_mismatch"), DEVICES, 90 * GIB, "unknown"),
        (failed("timed_out", None), NOTHING, 90 * GIB, "unknown"),
        (failed("crashed"), NOTHING, 90 * GIB, "unknown"),
    ],
)
def test_gpu_mode_is_never_guessed(
    reading: DriverReading, traces: Traces, limit: int | None, mode: GpuMode
) -> None:
    assert gpu_mode(reading, traces, limit) == mode


def test_a_first_look_has_no_cpu_share_yet() -> None:
    first = CgroupReading(1.0, 0.5, 10.0, 2 * GIB, GIB, None, 0, {"memory.high": "not_supported"})
    disks = (Disk("/", 1, 1, 1, "system"),)
    host = assemble(first, None, disks, SharedMemory(64, 32), AUTODL, failed("no_device"))
    assert host.unknown == {"memory.high": "not_supported", "cpu_used": "not_yet"}
    assert host.memory == HostMemory(2 * GIB, GIB, None)
    assert (host.cpu_count, host.cpu_used, host.oom_kills) == (0.5, None, 0)
    assert (host.platform, host.gpu_mode, host.disks) == ("autodl", "none", disks)


def test_a_second_look_has_one() -> None:
    first, second = CgroupReading(1.0, 2.0, 10.0), CgroupReading(3.0, 2.0, 13.0)
    host = assemble(second, first, (), SharedMemory(None, None), NOTHING, ONE_GPU)
    assert host.cpu_used == 1.5
    assert host.unknown == {"shm": "missing_file"}


def test_a_missing_counter_keeps_its_own_reason() -> None:
    without = CgroupReading(1.0, unknown={"cpu_used": "missing_file"})
    host = assemble(without, without, (), SharedMemory(1, 1), NOTHING, ONE_GPU)
    assert host.unknown == {"cpu_used": "missing_file"}


def test_this_machine_can_be_read() -> None:
    assert read_traces(Proc()).platform in ("autodl", "container", "host")
