"""The GPU sampler as a program: real process, real lock, the stand-in NVML library."""

import fcntl
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path

import psutil
import pytest
from support.fake_nvml import GIB, FakeGpu, FakeNvml, FakeProcess, cards
from support.waiting import wait_until

from tui.jobs.samples import HEADER, PEAKS_NAME, SAMPLES_NAME, read_peaks

PROGRAM = """
import sys
import tui.jobs.sampler as program
program._KEEPER_PATIENCE = 3.0
sys.exit(program.main(sys.argv[1:]))
"""

Sampler = subprocess.Popen[bytes]
StartSampler = Callable[[], Sampler]


class Keeper:
    """Holds the lock of a job folder, as a keeper does for its life."""

    def __init__(self, folder: Path) -> None:
        self.descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        self.lock()

    def lock(self) -> None:
        fcntl.flock(self.descriptor, fcntl.LOCK_EX)

    def end(self) -> None:
        fcntl.flock(self.descriptor, fcntl.LOCK_UN)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "job"
    path.mkdir(mode=0o700)
    return path


@pytest.fixture
def keeper(folder: Path) -> Iterator[Keeper]:
    keeper = Keeper(folder)
    yield keeper
    os.close(keeper.descriptor)


@pytest.fixture
def start(fake_nvml: FakeNvml, folder: Path) -> Iterator[StartSampler]:
    samplers: list[Sampler] = []

    def run() -> Sampler:
        command = [sys.executable, "-I", "-c", PROGRAM, str(folder)]
        environment = {**os.environ, **fake_nvml.env(count_calls=True)}
        samplers.append(subprocess.Popen(command, cwd="/", env=environment, stderr=subprocess.PIPE))
        return samplers[-1]

    yield run
    for sampler in samplers:
        sampler.kill()
        assert sampler.communicate(timeout=10)[1] == b""


def rows(folder: Path) -> list[list[str]]:
    path = folder / SAMPLES_NAME
    # The file is made a moment before its first line is written.
    text = path.read_text() if path.exists() else ""
    lines = text.splitlines(keepends=True) or [HEADER]
    assert lines[0] == HEADER
    assert all(line.endswith("\n") and line.count(",") == HEADER.count(",") for line in lines)
    return [line.rstrip("\n").split(",") for line in lines[1:]]


def peak_is(folder: Path, used: int) -> bool:
    return read_peaks(folder).get(FakeGpu.uuid) == used


def wait_for_rows(folder: Path, count: int) -> list[list[str]]:
    return wait_until(lambda: found if len(found := rows(folder)) >= count else None, 15, f"{count} rows")


def test_samples_and_peaks(fake_nvml: FakeNvml, folder: Path, keeper: Keeper, start: StartSampler) -> None:
    first, second = cards(2)
    fake_nvml.write([FakeGpu(uuid=first.uuid, used=GIB, utilization=40, power=120_500), second])
    began = time.time()
    sampler = start()
    row = wait_for_rows(folder, 2)[0]
    assert began - 1 < float(row[0]) < time.time() + 1
    assert row[1:] == ["0", first.uuid, "1024.0", "40.0", "120.5", "sample"]
    fake_nvml.write([FakeGpu(uuid=first.uuid, used=3 * GIB), second])
    wait_until(lambda: read_peaks(folder).get(first.uuid) == 3 * GIB, 10, "the peak is written")
    fake_nvml.write([FakeGpu(uuid=first.uuid, used=2 * GIB), second])
    wait_until(lambda: rows(folder)[-2][3] == "2048.0", 10, "the lower figure arrives")
    keeper.end()
    assert sampler.wait(10) == 0
    assert read_peaks(folder) == {first.uuid: 3 * GIB, second.uuid: 0}
    assert all((folder / name).stat().st_mode & 0o777 == 0o600 for name in (SAMPLES_NAME, PEAKS_NAME))
    assert {path.name for path in folder.iterdir()} == {PEAKS_NAME, SAMPLES_NAME, "lock"}


def test_five_samples_a_second(folder: Path, keeper: Keeper, start: StartSampler) -> None:
    start()
    found = wait_for_rows(folder, 16)
    steps = sorted(float(later[0]) - float(sooner[0]) for sooner, later in pairwise(found))
    # Never faster; on a machine that is busy otherwise, slower.
    assert 0.19 < steps[len(steps) // 2] < 1


def test_it_asks_the_driver_for_no_more_than_it_writes(
    fake_nvml: FakeNvml, folder: Path, keeper: Keeper, start: StartSampler
) -> None:
    start()
    wait_for_rows(folder, 3)
    calls = fake_nvml.calls()
    assert calls["nvmlInitWithFlags"] == 1
    assert calls["nvmlDeviceGetComputeRunningProcesses_v3"] == 0


def test_it_ends_soon_after_the_keeper(folder: Path, keeper: Keeper, start: StartSampler) -> None:
    sampler = start()
    wait_for_rows(folder, 1)
    with pytest.raises(subprocess.TimeoutExpired):
        sampler.wait(2)
    keeper.end()
    assert sampler.wait(10) == 0


def test_it_waits_for_a_keeper_that_starts_later(folder: Path, start: StartSampler) -> None:
    sampler = start()
    wait_for_rows(folder, 5)
    keeper = Keeper(folder)
    wait_for_rows(folder, 20)
    assert sampler.poll() is None
    keeper.end()
    assert sampler.wait(10) == 0
    os.close(keeper.descriptor)


def test_without_a_keeper_it_ends(folder: Path, start: StartSampler) -> None:
    assert start().wait(20) == 0


@pytest.mark.parametrize(
    "rule", ["error nvmlInitWithFlags 9", "error nvmlInitWithFlags 12", "error nvmlInitWithFlags 18"]
)
def test_without_a_gpu_it_ends_and_writes_nothing(
    fake_nvml: FakeNvml, folder: Path, keeper: Keeper, start: StartSampler, rule: str
) -> None:
    fake_nvml.write(rules=[rule])
    assert start().wait(10) == 0
    fake_nvml.write([])
    assert start().wait(10) == 0
    assert [path.name for path in folder.iterdir()] == ["lock"]


def test_a_driver_that_fails_for_a_while_leaves_a_gap(
    fake_nvml: FakeNvml, folder: Path, keeper: Keeper, start: StartSampler
) -> None:
    start()
    wait_for_rows(folder, 2)
    fake_nvml.write(rules=["error * 999"])
    calls = fake_nvml.calls()["nvmlInitWithFlags"]
    wait_until(lambda: fake_nvml.calls()["nvmlInitWithFlags"] > calls, 10, "it met the fault")
    count = len(rows(folder))
    fake_nvml.write([FakeGpu(used=GIB)])
    assert wait_for_rows(folder, count + 2)[-1][3] == "1024.0"


def test_a_hung_driver_does_not_outlive_the_keeper(
    fake_nvml: FakeNvml, folder: Path, keeper: Keeper, start: StartSampler
) -> None:
    sampler = start()
    wait_for_rows(folder, 1)
    fake_nvml.write(rules=["sleep nvmlDeviceGetPowerUsage 600000"])
    calls = fake_nvml.calls()["nvmlDeviceGetPowerUsage"]
    wait_until(lambda: fake_nvml.calls()["nvmlDeviceGetPowerUsage"] > calls, 10, "it hangs")
    keeper.end()
    assert sampler.wait(10) == 0


def test_a_full_disk_costs_samples_only(
    fake_nvml: FakeNvml, folder: Path, keeper: Keeper, start: StartSampler
) -> None:
    sampler = start()
    wait_for_rows(folder, 3)
    count = len(rows(folder))
    hard = resource.prlimit(sampler.pid, resource.RLIMIT_FSIZE)[1]
    resource.prlimit(sampler.pid, resource.RLIMIT_FSIZE, ((folder / SAMPLES_NAME).stat().st_size + 200, hard))
    for used in (GIB, 2 * GIB):
        fake_nvml.write([FakeGpu(used=used)])
        wait_until(partial(peak_is, folder, used), 10, "it goes on reading")
    assert len(rows(folder)) < count + 4
    resource.prlimit(sampler.pid, resource.RLIMIT_FSIZE, (hard, hard))
    wait_for_rows(folder, count + 6)


def test_a_folder_that_disappears_ends_it(folder: Path, keeper: Keeper, start: StartSampler) -> None:
    sampler = start()
    wait_for_rows(folder, 1)
    folder.rename(folder.with_name("elsewhere"))
    assert sampler.wait(10) == 0
    assert not folder.exists()


def test_it_is_small(fake_nvml: FakeNvml, folder: Path, keeper: Keeper, start: StartSampler) -> None:
    fake_nvml.write(cards(8), processes=[FakeProcess(pid, GIB) for pid in range(1, 50)])
    sampler = psutil.Process(start().pid)
    wait_for_rows(folder, 80)
    before = sampler.cpu_times()
    wait_for_rows(folder, 160)
    after = sampler.cpu_times()
    assert sampler.memory_info().rss < 32 << 20
    assert after.user + after.system - before.user - before.system < 0.2  # in two seconds


def test_hang_up_and_the_like_end_it_quietly(folder: Path, keeper: Keeper, start: StartSampler) -> None:
    sampler = start()
    wait_for_rows(folder, 1)
    sampler.terminate()
    assert sampler.wait(10) == -signal.SIGTERM
    rows(folder)
