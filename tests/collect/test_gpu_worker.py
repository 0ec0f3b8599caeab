"""The GPU source: what a driver that hangs or aborts costs its reader, with real helper processes."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from support.fake_nvml import GIB, FakeGpu, FakeNvml, FakeProcess, cards
from support.waiting import wait_until

from tui.collect.gpu_worker import GpuSource
from tui.facts.machine import Driver, DriverReading

SLOW = "sleep nvmlDeviceGetMemoryInfo_v2 600000"
CRASH = "crash nvmlDeviceGetMemoryInfo_v2"

Start = Callable[..., GpuSource]


@pytest.fixture
def start(fake_nvml: FakeNvml) -> Iterator[Start]:
    """Start a source on the stand-in library; every helper is gone at the end."""
    sources: list[GpuSource] = []

    def run(period: float = 0.05, deadline: float = 5.0, replace_after: float = 60.0) -> GpuSource:
        environment = {**os.environ, **fake_nvml.env(count_calls=True)}
        source = GpuSource(environment, period=period, deadline=deadline, replace_after=replace_after)
        sources.append(source)
        source.start()
        return source

    yield run
    for source in sources:
        source.close()
    wait_until(lambda: not helpers(), 5, "the helpers are gone")


def helpers(parent: int | None = None) -> list[psutil.Process]:
    found = []
    for child in psutil.Process(parent).children():
        try:
            if any("gpu_child" in argument for argument in child.cmdline()):
                found.append(child)
        except psutil.NoSuchProcess:
            continue
    return found


def the_helper() -> psutil.Process:
    return wait_until(helpers, 10, "a helper runs")[0]


def error_code(reading: DriverReading) -> str | None:
    return reading.driver.error.code if reading.driver.error else None


def wait_for_error(source: GpuSource, code: str | None) -> DriverReading:
    return wait_until(
        lambda: reading if error_code(reading := source.latest()) == code else None,
        10,
        f"the driver's error is {code}",
    )


def test_readings_arrive_and_have_an_age(fake_nvml: FakeNvml, start: Start) -> None:
    fake_nvml.write([FakeGpu(used=GIB)])
    source = start()
    reading = source.first(10)
    assert reading.driver == Driver("580.105.08", "13.580.105.08")
    assert [gpu.used for gpu in reading.gpus] == [GIB]
    assert reading.age is not None
    assert 0 <= reading.age < 5
    fake_nvml.write([FakeGpu(used=2 * GIB)])
    wait_until(lambda: source.latest().gpus[0].used == 2 * GIB, 5, "the new figure arrives")


def test_age_grows_between_readings(start: Start) -> None:
    source = start(period=60)
    first = source.first(10).age
    assert first is not None
    time.sleep(0.2)
    later = source.latest().age
    assert later is not None
    assert 0.2 <= later - first < 5


def test_nothing_yet_is_neither_a_card_nor_an_error(fake_nvml: FakeNvml, start: Start) -> None:
    fake_nvml.write(rules=["sleep nvmlInitWithFlags 600000"])
    source = start(deadline=1.0)
    assert source.latest() == DriverReading(Driver())
    began = time.monotonic()
    assert error_code(source.first(0.3)) == "timed_out"
    assert 0.3 <= time.monotonic() - began < 5
    reading = wait_for_error(source, "timed_out")
    assert (reading.gpus, reading.age) == ((), None)
    assert time.monotonic() - began < 5
    fake_nvml.write()
    assert wait_for_error(source, None).gpus


def test_a_hang_keeps_the_last_good_cards_with_a_growing_age(fake_nvml: FakeNvml, start: Start) -> None:
    source = start(deadline=0.3)
    before = source.first(10)
    fake_nvml.write([FakeGpu(used=GIB)], rules=[SLOW])
    hung = wait_for_error(source, "timed_out")
    assert hung.gpus == before.gpus
    assert hung.driver.version == "580.105.08"
    assert hung.age is not None
    assert hung.age >= 0.3
    began = time.monotonic()
    for _ in range(100):
        source.latest()
    assert time.monotonic() - began < 5
    later = source.latest().age
    assert later is not None
    assert later > hung.age
    fake_nvml.write([FakeGpu(used=GIB)])
    assert wait_for_error(source, None).gpus[0].used == GIB


def test_a_driver_that_fails_keeps_the_last_good_cards(fake_nvml: FakeNvml, start: Start) -> None:
    source = start()
    before = source.first(10)
    fake_nvml.write(rules=["error * 999"])
    failed = wait_for_error(source, "unknown_error")
    assert failed.gpus == before.gpus
    age = failed.age
    assert age is not None
    wait_until(lambda: (source.latest().age or 0) > age + 0.2, 5, "the age grows")
    fake_nvml.write()
    assert wait_for_error(source, None).age is not None


def test_a_lost_card_is_news_and_not_the_driver(fake_nvml: FakeNvml, start: Start) -> None:
    fake_nvml.write(cards(2))
    source = start()
    source.first(10)
    fake_nvml.write(cards(2), rules=["error * gpu=1 15"])
    wait_until(lambda: source.latest().gpus[1].state == "lost", 5, "the card is lost")
    assert error_code(source.latest()) is None
    assert source.latest().gpus[0].state == "ok"


def test_a_crash_in_the_library_is_named_and_outlived(fake_nvml: FakeNvml, start: Start) -> None:
    source = start()
    before = source.first(10)
    fake_nvml.write(rules=[CRASH])
    crashed = wait_for_error(source, "crashed")
    assert crashed.driver.error is not None
    assert crashed.driver.error.detail == "SIGABRT"
    assert crashed.gpus == before.gpus
    fake_nvml.write([FakeGpu(used=GIB)])
    assert wait_for_error(source, None).gpus[0].used == GIB


def test_a_library_that_always_crashes_is_not_hammered(fake_nvml: FakeNvml, start: Start) -> None:
    fake_nvml.write(rules=[CRASH])
    began = time.monotonic()
    source = start()
    first = source.first(10)
    assert (error_code(first), first.gpus, first.age) == ("crashed", (), None)
    wait_until(lambda: fake_nvml.calls()["nvmlInitWithFlags"] == 3, 10, "the third helper started")
    assert time.monotonic() - began >= 3.0  # one second, then two


def test_a_silent_helper_is_replaced(fake_nvml: FakeNvml, start: Start) -> None:
    source = start(deadline=0.2, replace_after=0.5)
    source.first(10)
    old = the_helper()
    fake_nvml.write(rules=[SLOW])
    wait_until(lambda: not old.is_running(), 10, "the silent helper ended")
    assert error_code(source.latest()) == "timed_out"
    fake_nvml.write()
    wait_for_error(source, None)
    assert the_helper().pid != old.pid


@pytest.mark.parametrize("rules", [[], [SLOW]])
def test_closing_is_quick_and_ends_the_helper(fake_nvml: FakeNvml, start: Start, rules: list[str]) -> None:
    source = start()
    source.first(10)
    helper = the_helper()
    calls = fake_nvml.calls()["nvmlDeviceGetMemoryInfo_v2"]
    fake_nvml.write(rules=rules)
    wait_until(lambda: fake_nvml.calls()["nvmlDeviceGetMemoryInfo_v2"] > calls, 5, "it met the new state")
    began = time.monotonic()
    source.close()
    assert time.monotonic() - began < 5
    wait_until(lambda: not helper.is_running(), 2, "the helper ended")
    source.close()


def test_closing_leaves_behind_a_helper_that_no_signal_reaches(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """State D stood in for: the helper is stopped, and the kill does not arrive."""
    source = start()
    source.first(10)
    helper = the_helper()
    helper.send_signal(signal.SIGSTOP)
    with monkeypatch.context() as patch:
        patch.setattr(subprocess.Popen, "kill", lambda _: None)
        began = time.monotonic()
        source.close()
        assert time.monotonic() - began < 5
    assert helper.is_running()
    helper.kill()
    helper.wait(5)


PARENT = """
import time
from tui.collect.gpu_worker import GpuSource
source = GpuSource(period=0.05)
source.start()
source.first(10)
print("reading", flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("rules", [[], [SLOW]])
def test_the_helper_ends_with_a_parent_that_is_killed(fake_nvml: FakeNvml, rules: list[str]) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PARENT],
        env={**os.environ, **fake_nvml.env(count_calls=True)},
        stdout=subprocess.PIPE,
    ) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"reading\n"
        (helper,) = helpers(parent.pid)
        calls = fake_nvml.calls()["nvmlDeviceGetMemoryInfo_v2"]
        fake_nvml.write(rules=rules)
        wait_until(lambda: fake_nvml.calls()["nvmlDeviceGetMemoryInfo_v2"] > calls, 5, "it met the new state")
        parent.kill()
        wait_until(lambda: not helper.is_running(), 5, "the helper ended with its parent")


def test_the_terminals_signals_do_not_reach_the_helper(start: Start) -> None:
    start().first(10)
    helper = the_helper()
    assert os.getsid(helper.pid) == helper.pid
    assert helper.cwd() == "/"


def test_what_the_library_prints_spoils_no_reading(fake_nvml: FakeNvml, start: Start) -> None:
    fake_nvml.write(rules=["print WARNING:stub"])
    assert error_code(start(period=60).first(10)) is None


def test_a_reading_larger_than_the_pipe_arrives_whole(fake_nvml: FakeNvml, start: Start) -> None:
    processes = [FakeProcess(pid, GIB, gpu=gpu) for gpu in range(4) for pid in range(1, 1001)]
    fake_nvml.write(cards(4), processes=processes)
    reading = start(period=60).first(10)
    assert [len(gpu.processes or ()) for gpu in reading.gpus] == [1000] * 4


def test_a_helper_that_cannot_be_started_is_an_error(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(sys, "executable", "/nowhere/python")
        source = start()
        reading = source.first(10)
        assert error_code(reading) == "unknown_error"
        assert reading.driver.error is not None
        assert "/nowhere/python" in reading.driver.error.detail
    assert wait_for_error(source, None).gpus


def test_a_machine_without_a_driver_answers_at_once(tmp_path: Path) -> None:
    (tmp_path / "libnvidia-ml.so.1").write_bytes(b"no library")
    with GpuSource({**os.environ, "LD_LIBRARY_PATH": str(tmp_path)}) as source:
        reading = source.first(10)
    assert error_code(reading) == "library_missing"
    assert reading.gpus == ()


def test_memory_of_the_helper_is_flat(fake_nvml: FakeNvml, start: Start) -> None:
    processes = [FakeProcess(pid, GIB, gpu=gpu) for gpu in range(8) for pid in range(1, 21)]
    fake_nvml.write(cards(8), processes=processes)
    start(period=0.0).first(10)
    helper = the_helper()

    def reads() -> int:
        return fake_nvml.calls()["nvmlDeviceGetCount_v2"]

    wait_until(lambda: reads() > 100, 20, "the helper has warmed up")
    before = helper.memory_info().rss
    wait_until(lambda: reads() > 500, 60, "four hundred more readings")
    assert helper.memory_info().rss - before < 1 << 20
