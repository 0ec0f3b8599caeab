"""The NVML reader on the stand-in library, through the real binding, in a process of its own."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from support.fake_nvml import GIB, FakeGpu, FakeNvml, FakeProcess, cards, match_rule
from support.nvml_reader import Reader
from support.waiting import wait_until

from tui.facts.machine import Clocks, DriverReading, GpuDetail, GpuReading, NvmlProcess
from tui.facts.unknown import UnknownReason

MIB = 1 << 20

StartReader = Callable[..., Reader]


@pytest.fixture
def start_reader() -> Iterator[StartReader]:
    readers: list[Reader] = []

    def start(environment: Mapping[str, str], brief: bool = False) -> Reader:
        readers.append(Reader(environment, brief))
        return readers[-1]

    yield start
    for reader in readers:
        assert reader.end() == ""


@pytest.fixture
def reader(fake_nvml: FakeNvml, start_reader: StartReader) -> Reader:
    return start_reader(fake_nvml.env(count_calls=True))


def error_code(reading: DriverReading) -> str | None:
    return reading.driver.error.code if reading.driver.error else None


def plain(reading: DriverReading) -> tuple[GpuReading, ...]:
    """The cards without their details, which have tests of their own."""
    return tuple(replace(card, detail=GpuDetail()) for card in reading.gpus)


def test_every_figure_in_its_unit(fake_nvml: FakeNvml, reader: Reader) -> None:
    gpu = FakeGpu(
        minor=3, used=7 * GIB, utilization=37, power=251_500, temperature=61, clock=1800, memory_clock=9501
    )
    fake_nvml.write([gpu], processes=[FakeProcess(4321, 6 * GIB)])
    reading = reader.read()
    assert (reading.driver.version, reading.driver.nvml) == ("580.105.08", "13.580.105.08")
    assert reading.driver.pid_regime == "unknown"
    assert plain(reading) == (
        GpuReading(
            index=0,
            minor=3,
            uuid=gpu.uuid,
            name="NVIDIA GeForce RTX 4090",
            state="ok",
            total=24 * GIB,
            used=7 * GIB,
            reserved=GIB // 2,
            free=24 * GIB - 7 * GIB - GIB // 2,
            utilization=0.37,
            temperature=61,
            power=251.5,
            power_limit=450.0,
            clocks=Clocks(graphics=1_800_000_000, memory=9_501_000_000),
            throttle=("idle",),
            processes=(NvmlProcess(4321, 6 * GIB),),
        ),
    )


def test_used_is_what_nvidia_smi_shows(fake_nvml: FakeNvml, reader: Reader) -> None:
    fake_nvml.write([FakeGpu(total=24564 * MIB, reserved=400 * MIB, used=7000 * MIB)])
    card = reader.card()
    assert (card.used, card.reserved, card.free) == (7000 * MIB, 400 * MIB, 17164 * MIB)


@pytest.mark.parametrize("code", [13, 25])
def test_an_old_driver_cannot_tell_reserved_memory_apart(
    fake_nvml: FakeNvml, reader: Reader, code: int
) -> None:
    fake_nvml.write([FakeGpu(reserved=GIB, used=2 * GIB)], rules=[f"error nvmlDeviceGetMemoryInfo_v2 {code}"])
    card = reader.card()
    assert (card.used, card.reserved, card.free) == (3 * GIB, None, 21 * GIB)
    assert card.unknown == {"reserved": "not_supported"}


READING_OF_CALL = {
    "nvmlDeviceGetMemoryInfo_v2": ("total", "used", "reserved", "free"),
    "nvmlDeviceGetUtilizationRates": ("utilization",),
    "nvmlDeviceGetTemperature": ("temperature",),
    "nvmlDeviceGetPowerUsage": ("power",),
    "nvmlDeviceGetEnforcedPowerLimit": ("power_limit",),
    "nvmlDeviceGetClockInfo": ("clocks", "clocks.graphics", "clocks.memory"),
    "nvmlDeviceGetCurrentClocksEventReasons": ("throttle",),
    "nvmlDeviceGetComputeRunningProcesses_v3": ("processes",),
    "nvmlDeviceGetGraphicsRunningProcesses_v3": ("processes",),
}


@pytest.mark.parametrize(
    ("code", "reason"), [(3, "not_supported"), (4, "no_permission"), (10, "timed_out"), (999, "driver_error")]
)
def test_one_failing_call_costs_its_own_reading(
    fake_nvml: FakeNvml, reader: Reader, code: int, reason: UnknownReason
) -> None:
    for call, fields in READING_OF_CALL.items():
        fake_nvml.write([FakeGpu(used=GIB)], rules=[f"error {call} {code}"])
        card = reader.card()
        assert card.state == "ok", call
        if (call, code) == ("nvmlDeviceGetGraphicsRunningProcesses_v3", 3):
            assert card.processes == ()  # the compute list is all there is
            continue
        assert card.unknown == dict.fromkeys(fields, reason), call
        values = msgspec.to_builtins(card)
        assert all(not values[field] for field in fields if "." not in field), call
        assert card.processes == (None if "processes" in fields else ()), call


@pytest.mark.parametrize(
    "call",
    [
        "nvmlDeviceGetTemperature",
        "nvmlDeviceGetEnforcedPowerLimit",
        "nvmlDeviceGetCurrentClocksEventReasons",
        "nvmlDeviceGetComputeRunningProcesses_v3",
        "nvmlDeviceGetGraphicsRunningProcesses_v3",
    ],
)
def test_a_call_the_driver_lacks_is_asked_by_its_other_name(
    fake_nvml: FakeNvml, reader: Reader, call: str
) -> None:
    fake_nvml.write(
        [FakeGpu(throttle=0x40, temperature=83)],
        processes=[FakeProcess(10, GIB), FakeProcess(11, GIB, graphics=True)],
        rules=[f"error {call} 13"],
    )
    card = reader.card()
    assert card.unknown == {}
    assert (card.temperature, card.power_limit, card.throttle) == (83, 450.0, ("hw_thermal",))
    assert card.processes == (NvmlProcess(10, GIB), NvmlProcess(11, GIB))


def test_impossible_figures_are_unknown(fake_nvml: FakeNvml, reader: Reader) -> None:
    broken = 0xFFFFFFFF
    fake_nvml.write(
        [
            FakeGpu(
                total=24 * GIB,
                used=30 * GIB,
                utilization=37100,
                power=broken,
                limit=broken,
                temperature=broken,
                clock=broken,
            )
        ]
    )
    card = reader.card()
    fields = ("used", "free", "utilization", "power", "power_limit", "temperature", "clocks.graphics")
    assert card.unknown == dict.fromkeys(fields, "out_of_range")
    assert card.clocks == Clocks(graphics=None, memory=405_000_000)
    assert card.total == 24 * GIB


@pytest.mark.parametrize("total", [0, (1 << 64) - 1])
def test_a_card_without_a_possible_size_shows_none(fake_nvml: FakeNvml, reader: Reader, total: int) -> None:
    fake_nvml.write(
        [FakeGpu(total=total, used=(1 << 64) - 1, reserved=0)], processes=[FakeProcess(7, 1 << 63)]
    )
    card = reader.card()
    assert (card.total, card.used) == (None, None)
    assert (card.unknown["total"], card.unknown["used"]) == ("out_of_range", "out_of_range")
    assert card.processes == (NvmlProcess(7, None),)


def test_a_card_that_shares_the_memory_of_the_host_has_none_of_its_own(
    fake_nvml: FakeNvml, reader: Reader
) -> None:
    fake_nvml.write(
        processes=[FakeProcess(7, 3 * GIB)],
        rules=["error nvmlDeviceGetMemoryInfo_v2 3", "error nvmlDeviceGetMemoryInfo 3"],
    )
    card = reader.card()
    assert (card.state, card.total, card.used, card.free) == ("ok", None, None, None)
    assert card.unknown["total"] == "not_supported"
    assert card.processes == (NvmlProcess(7, 3 * GIB),)


def test_throttle_bits_have_names_and_unknown_bits_are_left_out(fake_nvml: FakeNvml, reader: Reader) -> None:
    fake_nvml.write([FakeGpu(throttle=0x8 | 0x20 | 0x80 | 0x4000)])
    assert reader.card().throttle == ("hw_slowdown", "sw_thermal", "hw_power_brake")


def test_both_process_lists_become_one(fake_nvml: FakeNvml, reader: Reader) -> None:
    fake_nvml.write(
        processes=[
            FakeProcess(1184, 300 * MIB),
            FakeProcess(0, GIB),
            FakeProcess(0xFFFFFFFF, GIB),
            FakeProcess(16040, None),
            FakeProcess(1184, 700 * MIB, graphics=True),
            FakeProcess(99, 0),
            FakeProcess(98, 25 * GIB),
            FakeProcess(16040, 5 * MIB, graphics=True),
            FakeProcess(97, None),
        ]
    )
    assert reader.card().processes == (
        NvmlProcess(1184, 700 * MIB),
        NvmlProcess(16040, 5 * MIB),
        NvmlProcess(99, 0),
        NvmlProcess(98, None),
        NvmlProcess(97, None),
    )


def test_a_lost_card_keeps_the_others_and_comes_back(fake_nvml: FakeNvml, reader: Reader) -> None:
    assert [gpu.state for gpu in reader.read().gpus] == ["ok"]
    fake_nvml.write(cards(3))
    before = reader.read()
    for code in (15, 16):
        fake_nvml.write(cards(3), rules=[f"error * gpu=1 {code}"])
        reading = reader.read()
        assert reading.driver.error is None
        assert [gpu.state for gpu in reading.gpus] == ["ok", "lost", "ok"]
        lost = reading.gpus[1]
        assert (lost.uuid, lost.minor, lost.name) == (cards(3)[1].uuid, 1, "NVIDIA GeForce RTX 4090")
        assert (lost.total, lost.used, lost.processes, lost.power) == (None,) * 4
        assert set(lost.unknown.values()) == {"gpu_lost"}
        assert plain(reading)[0] == plain(before)[0]
        fake_nvml.write(cards(3))
        assert plain(reader.read()) == plain(before)


def test_a_card_that_falls_off_in_the_middle_of_a_read_is_lost(fake_nvml: FakeNvml, reader: Reader) -> None:
    fake_nvml.write(cards(2), rules=["error nvmlDeviceGetPowerUsage gpu=0 15"])
    reading = reader.read()
    assert [gpu.state for gpu in reading.gpus] == ["lost", "ok"]
    assert reading.gpus[0].used is None
    assert reading.gpus[0].uuid == cards(2)[0].uuid


def test_all_cards_lost_is_not_a_driver_error(fake_nvml: FakeNvml, reader: Reader) -> None:
    fake_nvml.write(cards(2), rules=["error * gpu=0 15", "error * gpu=1 16"])
    reading = reader.read()
    assert reading.driver.error is None
    assert [(gpu.state, gpu.uuid, gpu.name) for gpu in reading.gpus] == [("lost", "", "")] * 2


def test_one_failing_card_keeps_the_others(fake_nvml: FakeNvml, reader: Reader) -> None:
    fake_nvml.write(cards(2), rules=["error * gpu=1 999"])
    reading = reader.read()
    assert reading.driver.error is None
    assert [gpu.state for gpu in reading.gpus] == ["ok", "error"]
    assert set(reading.gpus[1].unknown.values()) == {"driver_error"}


def test_a_card_that_only_tells_its_name_fails(fake_nvml: FakeNvml, reader: Reader) -> None:
    """The library remembers who a card is, also when the card itself does not answer any more."""
    fake_nvml.write(cards(2), rules=[f"error {call} gpu=1 999" for call in READING_OF_CALL])
    reading = reader.read()
    assert error_code(reading) is None
    assert [(gpu.state, gpu.uuid) for gpu in reading.gpus] == [
        ("ok", cards(2)[0].uuid),
        ("error", cards(2)[1].uuid),
    ]
    fake_nvml.write(cards(2), rules=[f"error {call} 999" for call in READING_OF_CALL])
    reading = reader.read()
    assert error_code(reading) == "unknown_error"
    assert [gpu.state for gpu in reading.gpus] == ["error", "error"]


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (9, "driver_not_loaded"),
        (12, "library_missing"),
        (18, "version_mismatch"),
        (4, "no_permission"),
        (10, "timed_out"),
        (999, "unknown_error"),
        (77, "unknown_error"),
    ],
)
@pytest.mark.parametrize("call", ["nvmlInitWithFlags", "nvmlDeviceGetCount_v2"])
def test_a_driver_that_does_not_answer_is_named(
    fake_nvml: FakeNvml, reader: Reader, call: str, code: int, expected: str
) -> None:
    fake_nvml.write(rules=[f"error {call} {code}"])
    reading = reader.read()
    assert error_code(reading) == expected
    assert reading.driver.error is not None
    assert f"NVML {code}" in reading.driver.error.detail
    assert reading.gpus == ()
    fake_nvml.write()
    assert error_code(reader.read(at=2.0)) is None


def test_no_card_is_not_a_healthy_driver(fake_nvml: FakeNvml, reader: Reader) -> None:
    fake_nvml.write([])
    reading = reader.read()
    assert error_code(reading) == "no_device"
    assert reading.driver.version == "580.105.08"


def test_a_library_that_cannot_be_loaded(start_reader: StartReader, tmp_path: Path) -> None:
    (tmp_path / "libnvidia-ml.so.1").write_bytes(b"\x7fELF not a library")
    assert error_code(start_reader({"LD_LIBRARY_PATH": str(tmp_path)}).read()) == "library_missing"


def test_when_every_card_fails_the_driver_does(fake_nvml: FakeNvml, reader: Reader) -> None:
    """The host reloads its service manager: every call of every container answers 999."""
    fake_nvml.write(cards(2))
    assert error_code(reader.read()) is None
    for rules in (["error * 999"], ["error * gpu=0 999", "error * gpu=1 999"]):
        fake_nvml.write(cards(2), rules=rules)
        assert error_code(reader.read(at=10.0)) == "unknown_error"
        fake_nvml.write(cards(2))
        assert error_code(reader.read(at=50.0)) is None


def test_a_session_that_broke_is_opened_anew_at_once(fake_nvml: FakeNvml, reader: Reader) -> None:
    assert error_code(reader.read()) is None
    fake_nvml.write(session=1)
    assert error_code(reader.read()) is None
    assert fake_nvml.calls()["nvmlInitWithFlags"] == 2
    assert fake_nvml.calls()["nvmlShutdown"] == 1


def test_a_lasting_fault_opens_the_session_ever_more_rarely(fake_nvml: FakeNvml, reader: Reader) -> None:
    fake_nvml.write(cards(2))
    reader.read()
    fake_nvml.write(cards(2), rules=["error * gpu=0 15"])
    for second in range(1, 121):
        assert [gpu.state for gpu in reader.read(at=second).gpus] == ["lost", "ok"]
    # At 0; at 1, when the card was lost; then after 2, 4, 8, 16 and each 30 seconds.
    assert fake_nvml.calls()["nvmlInitWithFlags"] == 9
    fake_nvml.write(cards(2), session=1)
    for second in range(121, 152):
        states = [gpu.state for gpu in reader.read(at=second).gpus]
    assert states == ["ok", "ok"]


def test_a_driver_that_cannot_be_opened_is_not_hammered(fake_nvml: FakeNvml, reader: Reader) -> None:
    fake_nvml.write(rules=["error nvmlInitWithFlags 9"])
    for tenth in range(600):
        assert error_code(reader.read(at=tenth / 10)) == "driver_not_loaded"
    assert fake_nvml.calls()["nvmlInitWithFlags"] == 6  # at 0, 1, 3, 7, 15, 31
    fake_nvml.write()
    assert error_code(reader.read(at=62.0)) is None


def test_a_card_without_a_minor_number_is_still_read(fake_nvml: FakeNvml, reader: Reader) -> None:
    fake_nvml.write(rules=["error nvmlDeviceGetMinorNumber 3"])
    card = reader.card()
    assert (card.minor, card.state, card.unknown) == (None, "ok", {"minor": "not_supported"})


def test_names_that_are_no_text_do_not_stop_the_reading(fake_nvml: FakeNvml, reader: Reader) -> None:
    fake_nvml.write([FakeGpu(name=b"\xff\xfe".decode("utf-8", "surrogateescape"))])
    card = reader.card()
    assert (card.name, card.state, card.unknown) == ("", "ok", {"name": "out_of_range"})


def test_a_long_list_is_read_whole(fake_nvml: FakeNvml, reader: Reader) -> None:
    fake_nvml.write(processes=[FakeProcess(pid, MIB) for pid in range(1, 1001)])
    processes = reader.card().processes
    assert processes is not None
    assert len(processes) == 1000


def test_brief_reads_memory_utilisation_and_power_only(
    fake_nvml: FakeNvml, start_reader: StartReader
) -> None:
    fake_nvml.write([FakeGpu(used=GIB, utilization=50)], processes=[FakeProcess(7, GIB)])
    card = start_reader(fake_nvml.env(count_calls=True), brief=True).card()
    assert (card.used, card.utilization, card.power) == (GIB, 0.5, 25.0)
    assert (card.processes, card.temperature, card.clocks) == (None,) * 3
    assert card.unknown == {}
    assert not {"nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetTemperature"} & set(
        fake_nvml.calls()
    )


def test_memory_of_a_live_process_is_free_when_it_ends(fake_nvml: FakeNvml, reader: Reader) -> None:
    with subprocess.Popen(["sleep", "60"]) as holder:
        fake_nvml.write([FakeGpu(used=GIB)], processes=[FakeProcess(holder.pid, 2 * GIB, live=True)])
        card = reader.card()
        assert (card.used, card.processes) == (3 * GIB, (NvmlProcess(holder.pid, 2 * GIB),))
        holder.kill()
        wait_until(lambda: reader.card().used == GIB, 5, "the memory of the killed process is free")
        assert reader.card().processes == ()  # though nobody has reaped it yet


def test_a_rule_finds_the_ranks_and_not_their_forked_workers(fake_nvml: FakeNvml, reader: Reader) -> None:
    rank = "import os, time; os.fork() and time.sleep(60) or time.sleep(60)"
    environment = {**os.environ, "HERD_MARK": "job-1", "LOCAL_RANK": "0"}
    command = [sys.executable, "-c", rank, "train_rank.yaml"]
    with (
        subprocess.Popen(command, env=environment, start_new_session=True) as leader,
        subprocess.Popen(command, env={**environment, "LOCAL_RANK": "1"}, start_new_session=True) as other,
    ):
        rule = match_rule(0, GIB, argv="train_rank.yaml", environment=["HERD_MARK=job-1", "LOCAL_RANK=0"])
        fake_nvml.write(rules=[rule])
        children = Path(f"/proc/{leader.pid}/task/{leader.pid}/children")
        wait_until(lambda: children.read_text(), 10, "the rank forked its worker")
        try:
            card = reader.card()
            assert (card.processes, card.used) == ((NvmlProcess(leader.pid, GIB),), GIB)
        finally:
            os.killpg(leader.pid, 9)
            os.killpg(other.pid, 9)


def test_warnings_of_the_binding_stay_silent(
    fake_nvml: FakeNvml, start_reader: StartReader, tmp_path: Path
) -> None:
    """The deprecated package of the same name warns at import; stderr is checked at the end."""
    import pynvml

    warning = "import warnings\nwarnings.warn('deprecated', FutureWarning)\n"
    (tmp_path / "pynvml.py").write_text(f"{warning}exec(open({pynvml.__file__!r}).read())\n")
    reader = start_reader({**fake_nvml.env(), "PYTHONPATH": str(tmp_path)})
    assert error_code(reader.read()) is None
