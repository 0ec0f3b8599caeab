"""Snapshots from real parts: the stand-in driver, real processes that hold devices, and sources that hang."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.fake_nvml import GIB, FakeGpu, FakeNvml, FakeProcess, cards
from support.waiting import wait_until

from tui.collect.gpu_worker import GpuSource
from tui.facts.errors import LlamaherdError
from tui.facts.machine import Gpu, Owner
from tui.facts.snapshot import Snapshot
from tui.operate.observe import Observer

HOLD = """
import mmap, os, sys
fd = os.open(sys.argv[1], os.O_RDWR)
area = mmap.mmap(fd, mmap.PAGESIZE)
print("ready", flush=True)
sys.stdin.read()
"""
EVERYTHING_FAILS = ["error * 999"]


@dataclass
class Machine:
    """An observer on a machine of two cards, whose device files lie in a folder."""

    nvml: FakeNvml
    observer: Observer
    folder: Path
    children: "list[subprocess.Popen[str]]"

    def hold(self, minor: int, **environment: str) -> int:
        """A real process that has a card mapped; its PID."""
        child = subprocess.Popen(
            [sys.executable, "-c", HOLD, str(self.folder / f"nvidia{minor}"), "--api_key", "abc123"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **environment},
        )
        self.children.append(child)
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        return child.pid

    def look(self, seen: Callable[[Snapshot], object], what: str) -> Snapshot:
        """The first snapshot of which ``seen`` is true."""

        def look() -> Snapshot | None:
            snapshot = self.observer.snapshot()
            return snapshot if seen(snapshot) else None

        return wait_until(look, 20, what)

    def in_regime(self, regime: str) -> Snapshot:
        """A snapshot of the one card in this regime."""
        return self.look(
            lambda snapshot: len(snapshot.gpus) == 1 and snapshot.driver.pid_regime == regime, regime
        )

    def owner(self, pid: int) -> tuple[Snapshot, Gpu, Owner]:
        """The row of a process, once the driver has told its size."""
        snapshot = self.look(
            lambda snapshot: any(owner.memory for _, owner in _rows(snapshot, pid)), f"a row for {pid}"
        )
        gpu, owner = next(_rows(snapshot, pid))
        return snapshot, gpu, owner


def _rows(snapshot: Snapshot, pid: int) -> Iterator[tuple[Gpu, Owner]]:
    return ((gpu, owner) for gpu in snapshot.gpus for owner in gpu.owners if owner.pid == pid)


@pytest.fixture
def machine(fake_nvml: FakeNvml, tmp_path: Path) -> Iterator[Machine]:
    folder = tmp_path / "dev"
    folder.mkdir()
    for minor in range(2):
        (folder / f"nvidia{minor}").write_bytes(b"\0" * 65536)
    fake_nvml.write(cards(2))
    source = GpuSource({**os.environ, **fake_nvml.env()}, period=0.05, deadline=0.5)
    observer = Observer([tmp_path / "jobs"], gpus=source, device_prefix=str(folder / "nvidia"))
    children: list[subprocess.Popen[str]] = []
    with observer:
        observer.snapshot(10.0)
        yield Machine(fake_nvml, observer, folder, children)
    for child in children:
        child.kill()
        child.communicate()


def test_an_owner_with_all_that_is_said_of_it(machine: Machine) -> None:
    pid = machine.hold(1)
    machine.nvml.write(cards(2), processes=[FakeProcess(pid, 3 * GIB, extra=True)])
    _, gpu, _ = machine.owner(pid)
    assert (gpu.index, gpu.minor, gpu.memory.unattributed) == (0, 1, 0)
    snapshot = machine.look(
        lambda snapshot: any(owner.cpu_used is not None for _, owner in _rows(snapshot, pid)), "CPU"
    )
    _, owner = next(_rows(snapshot, pid))
    assert (owner.memory, owner.evidence, owner.host_pid, owner.unknown) == (3 * GIB, "exact", None, {})
    assert owner.command[-2:] == ("--api_key", "***")
    assert owner.cpu_used == pytest.approx(0.0, abs=0.5)
    assert owner.resident is not None
    assert owner.resident > 1 << 20
    assert owner.started_at == pytest.approx(time.time(), abs=60)
    assert owner.ancestors[0] == os.getpid()
    assert snapshot.driver.pid_regime == "own_with_memory"


def test_every_regime_of_the_driver_is_told_by_what_it_lists(machine: Machine) -> None:
    pid, innocent = machine.hold(1), os.getpid()
    lists = "nvmlDeviceGetComputeRunningProcesses_v"
    failing = [f"error {lists}{version} 999" for version in (2, 3)]
    for listed, rules, regime, row in [
        ([FakeProcess(pid, GIB)], [], "own_with_memory", (pid, None, "exact", GIB)),
        ([FakeProcess(pid, 0)], [], "own_without_memory", (pid, None, "sole_holder", 5 * GIB)),
        ([FakeProcess(pid, None)], [], "own_without_memory", (pid, None, "sole_holder", 5 * GIB)),
        ([], [], "empty", (pid, None, "holder", None)),
        ([FakeProcess(pid, GIB)], failing, "error", (pid, None, "holder", None)),
        ([FakeProcess(innocent, GIB)], [], "host", (pid, innocent, "inferred", GIB)),
    ]:
        machine.nvml.write([FakeGpu(minor=1, used=5 * GIB)], processes=listed, rules=rules)
        snapshot = machine.in_regime(regime)
        owner = snapshot.gpus[0].owners[0]
        assert (owner.pid, owner.host_pid, owner.evidence, owner.memory) == row, regime
        assert not any(_rows(snapshot, innocent)), "whatever the driver lists"
        explained = sum(owner.memory or 0 for owner in snapshot.gpus[0].owners if owner.pid)
        assert snapshot.gpus[0].memory.unattributed == 5 * GIB - explained


def test_a_host_pid_is_paired_and_stays_so_while_another_joins(machine: Machine) -> None:
    first = machine.hold(1)
    machine.nvml.write(cards(2), processes=[FakeProcess(914222, GIB, extra=True)])
    _, _, owner = machine.owner(first)
    assert (owner.host_pid, owner.evidence) == (914222, "inferred")
    second = machine.hold(1)
    listed = [FakeProcess(914222, GIB, extra=True), FakeProcess(914300, 2 * GIB, extra=True)]
    machine.nvml.write(cards(2), processes=listed)
    snapshot = machine.look(
        lambda snapshot: any(owner.host_pid == 914300 and owner.pid for _, owner in _rows(snapshot, second)),
        "the second pair",
    )
    pairs = {owner.pid: owner.host_pid for owner in snapshot.gpus[0].owners}
    assert pairs == {first: 914222, second: 914300}


def test_the_driver_fails_after_some_looks_and_comes_back(machine: Machine) -> None:
    """The host reloads its services: every call fails from then on, and what runs goes on."""
    pid = machine.hold(1)
    machine.nvml.write(cards(2), processes=[FakeProcess(pid, 3 * GIB, extra=True)])
    machine.owner(pid)
    for _ in range(10):
        assert machine.observer.snapshot().driver.error is None
    machine.nvml.write(cards(2), processes=[FakeProcess(pid, 3 * GIB, extra=True)], rules=EVERYTHING_FAILS)
    snapshot = machine.look(lambda snapshot: snapshot.driver.error is not None, "the fault")
    assert snapshot.driver.error is not None
    assert snapshot.driver.error.code == "unknown_error"
    assert [gpu.memory.used for gpu in snapshot.gpus] == [3 * GIB, 0]
    assert [finding.code for finding in snapshot.findings if finding.code.startswith(("driver", "gpu"))] == [
        "driver_error"
    ]
    old = machine.look(lambda snapshot: (snapshot.gpus[0].age or 0) > 1.0, "the figures grow old")
    assert any(_rows(old, pid))
    machine.nvml.write(cards(2), processes=[FakeProcess(pid, 4 * GIB, extra=True)])
    again = machine.look(lambda snapshot: snapshot.driver.error is None, "recovery")
    assert again.gpus[0].memory.used == 4 * GIB
    assert again.gpus[0].peak_memory == 4 * GIB


def test_a_driver_that_hangs_holds_up_no_snapshot(machine: Machine) -> None:
    machine.nvml.write(cards(2), rules=["sleep nvmlDeviceGetMemoryInfo_v2 600000"])
    snapshot = machine.look(lambda snapshot: snapshot.driver.error is not None, "the silence is noticed")
    assert snapshot.driver.error is not None
    assert snapshot.driver.error.code == "timed_out"
    assert len(snapshot.gpus) == 2
    assert snapshot.ages["gpus"] > 0.5
    began = time.monotonic()
    for _ in range(5):
        machine.observer.snapshot()
    assert time.monotonic() - began < 10, "five of them wait for nothing"


def test_a_library_that_ends_its_process_costs_freshness_only(machine: Machine) -> None:
    machine.nvml.write(cards(2), rules=["crash nvmlDeviceGetMemoryInfo_v2"])
    machine.look(
        lambda snapshot: snapshot.driver.error is not None and snapshot.driver.error.code == "crashed",
        "the crash is named",
    )
    machine.nvml.write(cards(2))
    machine.look(lambda snapshot: snapshot.driver.error is None, "a new helper answers")


def test_the_end_of_a_holder_is_the_cause_of_memory_that_is_not_yet_free(machine: Machine) -> None:
    pid = machine.hold(1)
    gpus = [FakeGpu(uuid="GPU-0", minor=1), FakeGpu(uuid="GPU-1", minor=0)]
    machine.nvml.write(gpus, processes=[FakeProcess(pid, 5 * GIB, extra=True)])
    machine.owner(pid)
    machine.children[0].kill()
    machine.children[0].communicate()
    snapshot = machine.look(lambda snapshot: not any(_rows(snapshot, pid)), "the process is gone")
    (row,) = snapshot.gpus[0].owners
    assert (row.pid, row.host_pid, row.memory) == (None, None, 5 * GIB)
    assert [(cause.code, cause.pids) for cause in row.causes] == [("just_ended", (pid,))]
    assert snapshot.driver.pid_regime == "empty", "its PID is no process of the host"


def test_one_process_in_full(machine: Machine) -> None:
    pid = machine.hold(1, CUDA_VISIBLE_DEVICES="1", HF_TOKEN="hf_" + "Ab1" * 12)
    machine.nvml.write(cards(2), processes=[FakeProcess(pid, 3 * GIB, extra=True)])
    snapshot, _, owner = machine.owner(pid)
    detail = machine.observer.detail(pid, snapshot, owner.start)
    assert detail.info.environment["HF_TOKEN"] == "***"
    assert detail.visible == (cards(2)[1].uuid,)
    (device,) = detail.devices
    assert (device.minor, device.index, device.mapped, device.memory) == (1, 0, True, 3 * GIB)
    assert (detail.cwd, detail.inherited) == (str(Path.cwd()), False)
    assert detail.executable == os.path.realpath(sys.executable)
    (mine,) = (row for row in detail.tree if row.pid == os.getpid())
    (itself,) = (row for row in detail.tree if row.pid == pid)
    assert itself.depth == mine.depth + 1
    assert [row.depth for row in detail.tree] == sorted(row.depth for row in detail.tree)


def test_a_process_that_is_not_there_or_not_the_same_has_no_detail(machine: Machine) -> None:
    snapshot = machine.observer.snapshot()
    for pid, start in ((1 << 22, None), (os.getpid(), 1)):
        with pytest.raises(LlamaherdError) as raised:
            machine.observer.detail(pid, snapshot, start)
        assert raised.value.code == "pid_missing"
