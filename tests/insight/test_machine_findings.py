"""What is said of a machine, at and around every threshold."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from tui.facts.finding import Finding, Level
from tui.facts.job import Job, JobKind, JobState
from tui.facts.machine import (
    Cause,
    CauseCode,
    Disk,
    Driver,
    DriverError,
    DriverErrorCode,
    Gpu,
    GpuMemory,
    Host,
    HostMemory,
    Owner,
    SharedMemory,
)
from tui.insight.machine_findings import machine_findings

GIB, MIB = 1 << 30, 1 << 20
HOST = Host(
    cpu_count=16.0,
    cpu_used=1.0,
    memory=HostMemory(90 * GIB, 20 * GIB, 86 * GIB),
    oom_kills=0,
    disks=(Disk("/", 30 * GIB, 20 * GIB, 900_000, "system"),),
    shm=SharedMemory(45 * GIB, 45 * GIB),
    platform="autodl",
    gpu_mode="gpu",
)


def gpu(
    *owners: Owner, unattributed: int | None = 0, reserved: int | None = 400 * MIB, age: float = 0.2
) -> Gpu:
    return Gpu(
        index=3,
        minor=0,
        uuid="GPU-3",
        name="card",
        state="ok",
        age=age,
        memory=GpuMemory(24 * GIB, 20 * GIB, reserved, 4 * GIB, unattributed),
        utilization=0.5,
        temperature=60.0,
        power=200.0,
        power_limit=450.0,
        clocks=None,
        throttle=(),
        peak_memory=20 * GIB,
        owners=owners,
    )


def owner(pid: int, memory: int | None = GIB, job: str | None = None) -> Owner:
    return Owner(pid, None, pid * 10, memory, "exact" if memory else "holder", "train", job=job)


def stranger(memory: int | None) -> Owner:
    return Owner(None, 914222, None, memory, "hidden", "other")


def job(name: str, *gpus: str, kind: JobKind = "training", state: JobState = "running") -> Job:
    return Job(
        id=name,
        kind=kind,
        state=state,
        ending=None,
        exit_code=None,
        failure=None,
        keeper=True,
        main_pid=None,
        members=(),
        config=None,
        output_dir=None,
        started_at=None,
        ended_at=None,
        gpus=gpus,
        peak_memory={},
        ports=(),
        progress=None,
    )


def found(
    *gpus: Gpu,
    host: Host = HOST,
    error: DriverErrorCode | None = None,
    jobs: Iterable[Job] = (),
    kills_before: int | None = 0,
) -> tuple[Finding, ...]:
    driver = Driver("580", "13", "own_with_memory", None if error is None else DriverError(error, "text"))
    return machine_findings(driver, gpus, host, jobs, kills_before)


def codes(findings: tuple[Finding, ...]) -> list[tuple[str, str]]:
    return [(finding.code, finding.level) for finding in findings]


def test_a_healthy_machine_has_none() -> None:
    assert found(gpu(owner(50)), jobs=[job("a", "GPU-3")]) == ()


def test_no_gpu_mode_is_no_fault_of_the_driver() -> None:
    small = replace(HOST, gpu_mode="none", memory=HostMemory(2 * GIB, GIB, None))
    assert found(host=small, error="unknown_error") == (
        Finding("no_gpu_mode", "info", evidence={"memory_limit": 2 * GIB}),
    )
    assert codes(found(host=small)) == [("no_gpu_mode", "info")]


@pytest.mark.parametrize(
    ("error", "code", "level"),
    [
        ("library_missing", "driver_missing", "warning"),
        ("driver_not_loaded", "driver_missing", "warning"),
        ("no_device", "driver_missing", "warning"),
        ("version_mismatch", "version_mismatch", "danger"),
        ("timed_out", "driver_silent", "danger"),
        ("crashed", "driver_error", "danger"),
        ("no_permission", "driver_error", "danger"),
        ("unknown_error", "driver_error", "danger"),
    ],
)
def test_each_fault_of_the_driver_is_named(error: DriverErrorCode, code: str, level: str) -> None:
    unsure = replace(HOST, gpu_mode="unknown")
    assert codes(found(host=unsure, error=error)) == [(code, level)]


def test_a_machine_that_never_had_a_gpu_is_only_told_so() -> None:
    bare = replace(HOST, gpu_mode="none", platform="host")
    assert found(host=bare, error="library_missing") == (
        Finding("driver_missing", "info", evidence={"code": "library_missing"}),
    )


def test_the_silence_of_a_driver_is_as_old_as_its_oldest_card() -> None:
    silent = found(gpu(age=12.0), gpu(age=14.0), error="timed_out")
    assert silent == (Finding("driver_silent", "danger", evidence={"seconds": 14.0}),)
    assert found(error="timed_out")[0].evidence == {"seconds": None}


def test_lost_and_failing_cards_are_named() -> None:
    lost, failing = replace(gpu(unattributed=None), state="lost"), replace(gpu(), state="error")
    assert found(lost) == (Finding("gpu_lost", "danger", "GPU-3", {"index": 3}),)
    assert found(failing) == (Finding("gpu_failing", "danger", "GPU-3", {"index": 3}),)


def test_unexplained_memory_is_what_is_beyond_the_drivers_own() -> None:
    assert found(gpu(unattributed=400 * MIB)) == ()
    assert found(gpu(unattributed=800 * MIB, reserved=None)) == ()
    assert found(gpu(owner(50), unattributed=9 * GIB)) == (
        Finding("gpu_memory_unexplained", "warning", "GPU-3", {"index": 3, "memory": 9 * GIB}),
    )
    assert found(gpu(unattributed=9 * GIB), error="crashed")[0].code == "driver_error"
    assert len(found(gpu(unattributed=9 * GIB), error="crashed")) == 1


def test_memory_of_processes_outside_is_unexplained_too() -> None:
    assert found(gpu(stranger(7 * GIB), unattributed=GIB))[0].evidence == {"index": 3, "memory": 8 * GIB}


def test_a_holder_of_unknown_size_may_be_the_explanation() -> None:
    assert found(gpu(owner(50, None), stranger(7 * GIB), unattributed=GIB)) == ()
    paired = replace(owner(50), host_pid=901, evidence="inferred")
    assert found(gpu(paired, unattributed=0)) == ()


def test_two_trainings_on_one_card() -> None:
    by_claim = found(gpu(), jobs=[job("b", "GPU-3"), job("a", "GPU-3", "GPU-4")])
    assert by_claim == (Finding("jobs_share_gpu", "warning", "GPU-3", {"index": 3, "jobs": "a, b"}),)
    by_owner = found(
        gpu(owner(50, job="a"), owner(51, job="a"), owner(60, job="b")), jobs=[job("a"), job("b")]
    )
    assert by_owner == by_claim


def test_a_service_beside_a_training_is_advice_and_two_services_are_nothing() -> None:
    training, webui, chat = (
        job("a", "GPU-3"),
        job("w", "GPU-3", kind="service"),
        job("c", "GPU-3", kind="service"),
    )
    assert codes(found(gpu(), jobs=[training, webui])) == [("jobs_share_gpu", "advice")]
    assert found(gpu(), jobs=[webui, chat]) == ()


def test_a_job_that_ended_shares_nothing() -> None:
    over = [job("b", "GPU-3", state="ended"), job("c", "GPU-3", state="lost")]
    assert found(gpu(owner(50, job="b")), jobs=[job("a", "GPU-3"), *over]) == ()


@pytest.mark.parametrize(
    ("kills", "before", "expected"),
    [
        (None, 0, []),
        (0, None, []),
        (3, 3, []),
        (2, 3, []),
        (4, 3, [Finding("oom_kill_seen", "warning", evidence={"count": 1})]),
        (4, None, [Finding("oom_kill_seen", "info", evidence={"count": 4})]),
    ],
)
def test_kills_since_watching_began(kills: int | None, before: int | None, expected: list[Finding]) -> None:
    assert list(found(host=replace(HOST, oom_kills=kills), kills_before=before)) == expected


@pytest.mark.parametrize(
    ("memory", "expected"),
    [
        (HostMemory(100 * GIB, 89 * GIB, None), []),
        (HostMemory(100 * GIB, 90 * GIB, None), [("host_memory_high", "warning")]),
        (HostMemory(100 * GIB, 97 * GIB, None), [("host_memory_high", "danger")]),
        (HostMemory(100 * GIB, 50 * GIB, 51 * GIB), [("memory_throttled", "warning")]),
        (HostMemory(100 * GIB, 49 * GIB, 51 * GIB), []),
        (HostMemory(None, 49 * GIB, None), []),
        (HostMemory(100 * GIB, None, 1), []),
    ],
)
def test_host_memory(memory: HostMemory, expected: list[tuple[str, str]]) -> None:
    assert codes(found(host=replace(HOST, memory=memory))) == expected


@pytest.mark.parametrize(
    ("total", "free", "inodes", "expected"),
    [
        (30 * GIB, 2 * GIB, 900_000, []),
        (30 * GIB, 2 * GIB - 1, 900_000, [("disk_nearly_full", "warning")]),
        (200 * GIB, 10 * GIB - 1, None, [("disk_nearly_full", "warning")]),
        (200 * GIB, 10 * GIB, None, []),
        (30 * GIB, 0, 9_999, [("disk_nearly_full", "danger"), ("inodes_nearly_gone", "warning")]),
        (None, None, None, []),
    ],
)
def test_disks(
    total: int | None, free: int | None, inodes: int | None, expected: list[tuple[str, str]]
) -> None:
    disk = Disk("/root/autodl-tmp", total, free, inodes, "data")
    findings = found(host=replace(HOST, disks=(disk,)))
    assert codes(findings) == expected
    assert all(finding.subject == "/root/autodl-tmp" for finding in findings)


def test_small_shared_memory() -> None:
    small = replace(HOST, shm=SharedMemory(64 * MIB, 64 * MIB))
    assert found(host=small) == (Finding("shm_small", "info", "/dev/shm", {"total": 64 * MIB}),)
    assert found(host=replace(HOST, shm=SharedMemory(None, None))) == ()


@pytest.mark.parametrize(("code", "level"), [("just_ended", "info"), ("nothing_visible", "warning")])
def test_memory_of_who_has_just_ended_is_no_alarm(code: CauseCode, level: Level) -> None:
    row = Owner(None, None, None, 9 * GIB, "hidden", "other", causes=(Cause(code),))
    assert machine_findings(Driver(), [gpu(row, unattributed=9 * GIB)], HOST, []) == (
        Finding("gpu_memory_unexplained", level, "GPU-3", {"index": 3, "memory": 9 * GIB}),
    )
