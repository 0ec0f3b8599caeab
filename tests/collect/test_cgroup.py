"""The cgroup reader on trees of both versions as real containers show them, and on this machine."""

import os
import time
from pathlib import Path

import pytest

from tui.collect.cgroup import CgroupReading, cpu_used, read_cgroup
from tui.collect.proc import Proc

GIB = 1 << 30
V1_UNLIMITED = "9223372036854771712"


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")


@pytest.fixture
def proc(tmp_path: Path) -> Proc:
    """A 754 GiB host with 144 CPUs, of which this process may use 144."""
    root = tmp_path / "proc"
    write(
        root,
        {
            "meminfo": f"MemTotal: {754 << 20} kB\nMemFree: 1 kB\nMemAvailable: {700 << 20} kB",
            "self/status": "Name:\tpython\nCpus_allowed_list:\t0-143",
            "self/cgroup": "0::/",
        },
    )
    return Proc(root)


def read(proc: Proc, root: Path) -> CgroupReading:
    return read_cgroup(proc, root, clock=lambda: 100.0)


def groups(proc: Proc, *lines: str) -> None:
    Path(proc.root, "self", "cgroup").write_text("\n".join(lines) + "\n")


def test_v2_in_a_namespace_of_its_own(proc: Proc, tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "cgroup.controllers": "cpu memory",
            "cpu.max": "1800000 100000",
            "cpu.stat": "usage_usec 12500000\nuser_usec 1\nnr_throttled 4",
            "memory.max": str(90 * GIB),
            "memory.high": str(86 * GIB),
            "memory.current": str(40 * GIB),
            "memory.stat": f"anon 5\nactive_file 7\ninactive_file {15 * GIB}",
            "memory.events": "low 0\nhigh 3300000\nmax 0\noom 2\noom_kill 3\noom_group_kill 0",
        },
    )
    assert read(proc, tmp_path) == CgroupReading(
        taken_at=100.0,
        cpu_count=18.0,
        cpu_seconds=12.5,
        memory_limit=90 * GIB,
        memory_used=25 * GIB,
        memory_high=86 * GIB,
        oom_kills=3,
    )


def test_v2_without_any_limit_is_the_whole_machine_as_docker_shows_it(proc: Proc, tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "cgroup.controllers": "cpu memory",
            "cpu.max": "max 100000",
            "memory.max": "max",
            "memory.high": "max",
            "memory.current": str(3 * GIB),
            "memory.stat": f"inactive_file {4 * GIB}",
            "memory.events": "oom 0",
        },
    )
    reading = read(proc, tmp_path)
    assert reading.memory_limit == 754 * GIB
    assert reading.memory_used == 0
    assert reading.cpu_count == 144.0
    assert reading.memory_high is None
    assert reading.cpu_seconds is None
    assert reading.oom_kills is None
    assert reading.unknown == {
        "memory.high": "not_reported",
        "oom_kills": "not_reported",
        "cpu_used": "missing_file",
    }


def test_v2_parent_limits_bind_and_are_read_where_they_are(proc: Proc, tmp_path: Path) -> None:
    groups(proc, "0::/kubepods/pod1/me")
    write(
        tmp_path,
        {
            "cgroup.controllers": "cpu memory",
            "cpu.stat": "usage_usec 99000000",
            "kubepods/memory.max": "max",
            "kubepods/pod1/memory.max": str(60 * GIB),
            "kubepods/pod1/memory.high": str(55 * GIB),
            "kubepods/pod1/memory.current": str(50 * GIB),
            "kubepods/pod1/memory.stat": f"inactive_file {GIB}",
            "kubepods/pod1/me/memory.max": str(80 * GIB),
            "kubepods/pod1/me/memory.high": str(70 * GIB),
            "kubepods/pod1/me/memory.current": str(GIB),
            "kubepods/pod1/cpu.max": "400000 100000",
            "kubepods/pod1/cpu.stat": "usage_usec 2000000",
            "kubepods/pod1/me/cpu.max": "800000 100000",
        },
    )
    reading = read(proc, tmp_path)
    assert (reading.memory_limit, reading.memory_used) == (60 * GIB, 49 * GIB)
    assert reading.memory_high == 55 * GIB
    assert (reading.cpu_count, reading.cpu_seconds) == (4.0, 2.0)


def test_v2_whole_machine_counts_by_meminfo(proc: Proc, tmp_path: Path) -> None:
    groups(proc, "0::/user.slice/session-1.scope")
    write(
        tmp_path,
        {
            "cgroup.controllers": "cpu memory",
            "cpu.stat": "usage_usec 1000000",
            "user.slice/memory.current": str(GIB),
            "user.slice/session-1.scope/memory.current": str(GIB),
        },
    )
    reading = read(proc, tmp_path)
    assert (reading.memory_limit, reading.memory_used) == (754 * GIB, 54 * GIB)
    assert reading.cpu_seconds == 1.0
    assert reading.unknown == {"memory.high": "missing_file", "oom_kills": "missing_file"}


V1_LINES = (
    "12:memory:/docker/abc",
    "4:cpu,cpuacct:/docker/abc",
    "1:name=systemd:/docker/abc",
    "0::/docker/abc",
)
V1_FILES = {
    "cpu,cpuacct/{}cpu.cfs_quota_us": "50000",
    "cpu,cpuacct/{}cpu.cfs_period_us": "100000",
    "cpu,cpuacct/{}cpuacct.usage": "7500000000",
    "memory/{}memory.limit_in_bytes": "2147483648",
    "memory/{}memory.usage_in_bytes": "600000000",
    "memory/{}memory.stat": "inactive_file 5\ntotal_inactive_file 100000000",
    "memory/{}memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 1",
}


@pytest.mark.parametrize("place", ["", "docker/abc/", "abc/"])
def test_v1_of_a_no_gpu_instance_wherever_the_group_is_mounted(
    proc: Proc, tmp_path: Path, place: str
) -> None:
    groups(proc, *V1_LINES)
    write(tmp_path, {name.format(place): text for name, text in V1_FILES.items()})
    assert read(proc, tmp_path) == CgroupReading(
        taken_at=100.0,
        cpu_count=0.5,
        cpu_seconds=7.5,
        memory_limit=2 * GIB,
        memory_used=500_000_000,
        oom_kills=1,
        unknown={"memory.high": "not_supported"},
    )


def test_v1_no_limits_and_separate_mounts(proc: Proc, tmp_path: Path) -> None:
    groups(proc, "3:memory:/", "2:cpu:/", "1:cpuacct:/")
    write(
        tmp_path,
        {
            "cpu/cpu.cfs_quota_us": "-1",
            "cpu/cpu.cfs_period_us": "100000",
            "cpuacct/cpuacct.usage": "1000000000",
            "memory/memory.limit_in_bytes": V1_UNLIMITED,
            "memory/memory.usage_in_bytes": str(9 * GIB),
            "memory/memory.stat": f"total_inactive_file {GIB}",
            "memory/memory.oom_control": "oom_kill_disable 0",
        },
    )
    reading = read(proc, tmp_path)
    assert (reading.cpu_count, reading.cpu_seconds) == (144.0, 1.0)
    assert (reading.memory_limit, reading.memory_used) == (754 * GIB, 8 * GIB)
    assert reading.unknown["oom_kills"] == "not_reported"


def test_v1_parent_limit_and_kills_of_the_own_group(proc: Proc, tmp_path: Path) -> None:
    groups(proc, "1:memory:/box/run")
    write(
        tmp_path,
        {
            "memory/memory.limit_in_bytes": V1_UNLIMITED,
            "memory/box/memory.limit_in_bytes": str(8 * GIB),
            "memory/box/memory.usage_in_bytes": str(6 * GIB),
            "memory/box/memory.oom_control": "oom_kill 0",
            "memory/box/run/memory.limit_in_bytes": V1_UNLIMITED,
            "memory/box/run/memory.usage_in_bytes": str(GIB),
            "memory/box/run/memory.oom_control": "oom_kill 2",
        },
    )
    reading = read(proc, tmp_path)
    assert (reading.memory_limit, reading.memory_used, reading.oom_kills) == (8 * GIB, 6 * GIB, 2)


def test_an_unlimited_kernel_without_meminfo_invents_no_limit(tmp_path: Path) -> None:
    write(tmp_path / "proc", {"self/cgroup": "1:memory:/"})
    write(tmp_path / "cg", {"memory/memory.limit_in_bytes": V1_UNLIMITED})
    reading = read_cgroup(Proc(tmp_path / "proc"), tmp_path / "cg")
    assert reading.memory_limit is None
    assert reading.unknown["memory.limit"] == "missing_file"


def test_nothing_at_all_is_unknown_with_a_reason(tmp_path: Path) -> None:
    reading = read_cgroup(Proc(tmp_path / "none"), tmp_path / "none", clock=lambda: 1.0)
    assert reading == CgroupReading(
        taken_at=1.0,
        unknown={
            "cpu_count": "missing_file",
            "cpu_used": "missing_file",
            "memory.limit": "missing_file",
            "memory.used": "missing_file",
            "memory.high": "not_supported",
            "oom_kills": "missing_file",
        },
    )


@pytest.mark.parametrize("garbage", ["", "x", "²", "-", "9" * 40, "1 2 3", "\0"])
def test_garbage_in_every_file_never_raises(proc: Proc, tmp_path: Path, garbage: str) -> None:
    names = [
        "cpu.max",
        "cpu.stat",
        *(f"memory.{name}" for name in ("max", "high", "current", "stat", "events")),
    ]
    write(tmp_path, {"cgroup.controllers": "", **dict.fromkeys(names, garbage)})
    write(Path(proc.root), {"self/status": f"Cpus_allowed_list:\t{garbage}", "self/cgroup": garbage})
    reading = read(proc, tmp_path)
    assert reading.memory_limit == 754 * GIB
    assert reading.oom_kills is None


@pytest.mark.parametrize("path", ["/../../escape", "/a/../b", "//"])
def test_a_path_outside_the_namespace_falls_back_to_the_mount(proc: Proc, tmp_path: Path, path: str) -> None:
    groups(proc, f"0::{path}")
    write(tmp_path / "cg", {"cgroup.controllers": "memory", "memory.max": str(GIB)})
    (tmp_path / "escape").mkdir()
    assert read(proc, tmp_path / "cg").memory_limit == GIB


def test_cpu_used_needs_two_readings_with_a_counter() -> None:
    first = CgroupReading(10.0, cpu_seconds=100.0)
    assert cpu_used(first, CgroupReading(12.0, cpu_seconds=103.0)) == 1.5
    assert cpu_used(first, CgroupReading(12.0, cpu_seconds=99.0)) == 0.0
    assert cpu_used(first, first) is None
    assert cpu_used(first, CgroupReading(12.0)) is None
    assert cpu_used(CgroupReading(9.0), first) is None


def test_this_machine() -> None:
    proc = Proc()
    before = read_cgroup(proc)
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert before.memory_limit is not None
    assert 0 < before.memory_limit <= total
    assert before.memory_used is not None
    assert 0 < before.memory_used <= total
    assert before.cpu_count is not None
    assert 0 < before.cpu_count <= len(os.sched_getaffinity(0))
    if before.cpu_seconds is None:
        pytest.skip("this kernel shows no CPU counter of the group")
    burn_until = time.process_time() + 0.3
    while time.process_time() < burn_until:
        pass
    used = cpu_used(before, read_cgroup(proc))
    assert used is not None
    assert 0.01 < used <= (os.cpu_count() or 1) * 1.1
