"""The tables of ``nvidia-smi``: every text that is no figure, and a program that hangs or fails."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.waiting import wait_until

from tui.collect.gpu_worker import GpuSource
from tui.collect.nvidia_smi import NvidiaSmi, parse
from tui.collect.proc import Proc
from tui.facts.machine import Clocks, Driver, GpuDetail, NvmlProcess
from tui.facts.unknown import UnknownReason

MIB = 1 << 20
GOOD = (
    "0, GPU-aa, NVIDIA GeForce RTX 4090, 550.90.07, 24564, 7000, 17164,"
    " 37, 61, 251.50, 450.00, 1800, 9501, P2, 43"
)
WORKING = {"GPU": GOOD, "PID": "GPU-aa, 4321, 6000"}


def with_cell(number: int, text: str) -> str:
    cells = GOOD.split(", ")
    cells[number] = text
    return ", ".join(cells)


def test_a_table_of_cards_and_one_of_processes() -> None:
    reading = parse(GOOD + "\n", "GPU-aa, 4321, 6000\nGPU-bb, 5, 1\nGPU-aa, 4321, 100\n")
    assert reading.driver == Driver("550.90.07", source="nvidia_smi")
    (card,) = reading.gpus
    assert (card.index, card.uuid, card.name, card.state) == (0, "GPU-aa", "NVIDIA GeForce RTX 4090", "ok")
    assert (card.total, card.used, card.free) == (24564 * MIB, 7000 * MIB, 17164 * MIB)
    assert (card.utilization, card.temperature, card.power, card.power_limit) == (0.37, 61, 251.5, 450)
    assert card.clocks == Clocks(1_800_000_000, 9_501_000_000)
    assert card.processes == (NvmlProcess(4321, 6000 * MIB),)
    assert card.unknown == dict.fromkeys(("minor", "reserved", "throttle"), "not_reported")
    missing: dict[str, UnknownReason] = dict.fromkeys(("pcie", "ecc", "mig"), "not_reported")
    assert card.detail == GpuDetail(performance=2, fan=0.43, unknown=missing)


COLUMNS = {
    4: "total",
    5: "used",
    6: "free",
    7: "utilization",
    8: "temperature",
    9: "power",
    10: "power_limit",
}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[N/A]", "not_supported"),
        ("N/A", "not_supported"),
        ("[Not Supported]", "not_supported"),
        ("[Insufficient Permissions]", "no_permission"),
        ("[Unknown Error]", "driver_error"),
        ("ERR!", "driver_error"),
        ("Unknown", "out_of_range"),
        ("", "out_of_range"),
        ("37100000000000", "out_of_range"),
        ("-5", "out_of_range"),
        ("1e9", "out_of_range"),
        ("nan", "out_of_range"),
        ("18446744073709551615", "out_of_range"),
        ("٣", "out_of_range"),
    ],
)
@pytest.mark.parametrize("column", COLUMNS)
def test_what_is_no_figure_is_unknown_with_its_reason(column: int, text: str, reason: UnknownReason) -> None:
    (card,) = parse(with_cell(column, text), "").gpus
    assert getattr(card, COLUMNS[column]) is None
    assert card.unknown[COLUMNS[column]] == reason


def test_a_lost_card_keeps_the_others() -> None:
    lost = GOOD.replace("24564, 7000, 17164", "[GPU is lost], [GPU is lost], [GPU is lost]").replace(
        "0, GPU-aa", "1, GPU-bb"
    )
    reading = parse(f"{GOOD}\n{lost}\n", None)
    assert [card.state for card in reading.gpus] == ["ok", "lost"]
    assert [card.processes for card in reading.gpus] == [None, None]
    assert reading.gpus[0].unknown["processes"] == "driver_error"


def test_a_comma_in_a_name_moves_no_figure() -> None:
    (card,) = parse(GOOD.replace("RTX 4090", "RTX, 4090, D"), "").gpus
    assert (card.name, card.used) == ("NVIDIA GeForce RTX, 4090, D", 7000 * MIB)


def test_lines_that_are_no_row_are_left_out() -> None:
    assert parse("No devices were found\n", "").gpus == ()
    table = "GPU-aa, 0, 5\nGPU-aa, 4294967295, 5\nGPU-aa, x, 5\nGPU-aa, 7, [N/A]\nGPU-aa\n"
    (card,) = parse(f"Warning: infoROM is corrupted\n\n{GOOD}\n", table).gpus
    assert card.processes == (NvmlProcess(7, None),)


@given(st.text(max_size=400), st.text(max_size=200))
def test_any_text_is_read_without_an_exception(cards: str, processes: str) -> None:
    parse(cards, processes)
    parse(f"{GOOD}\n{cards}", processes)


def program(folder: Path, body: str) -> Sequence[str]:
    """A stand-in that knows which table it was asked for as ``kind``."""
    path = folder / "nvidia-smi"
    head = (
        f"#!{sys.executable}\nimport os, sys, time\nkind = 'GPU' if 'query-gpu' in sys.argv[1] else 'PID'\n"
    )
    path.write_text(head + body + "\n")
    path.chmod(0o755)
    return (str(path),)


def test_it_is_asked_rarely(tmp_path: Path) -> None:
    command = program(
        tmp_path, f"open({str(tmp_path / 'runs')!r}, 'a').write(kind); print({WORKING!r}[kind])"
    )
    now = 100.0
    smi = NvidiaSmi(find=lambda: command, clock=lambda: now)
    first = smi.read()
    assert first is not None
    assert first[0] == 100.0
    now = 102.9
    assert smi.read() == first
    now = 103.0
    again = smi.read()
    assert again == (103.0, first[1])
    assert (tmp_path / "runs").read_text() == "GPUPIDGPUPID"


@pytest.mark.parametrize("body", ["sys.exit(9)", "print('No devices were found')", "os.abort()"])
def test_one_that_fails_says_nothing(tmp_path: Path, body: str) -> None:
    command = program(tmp_path, body)
    assert NvidiaSmi(find=lambda: command).read() is None


def test_there_may_be_none(tmp_path: Path) -> None:
    assert NvidiaSmi(find=lambda: None).read() is None
    assert NvidiaSmi(find=lambda: (str(tmp_path / "none"),)).read() is None


def test_one_that_hangs_is_ended_at_its_deadline(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    command = program(tmp_path, f"open({str(pid_file)!r}, 'w').write(str(os.getpid())); time.sleep(600)")
    smi = NvidiaSmi(find=lambda: command, deadline=1.0)
    assert smi.read() is None
    stat = Proc().stat(int(pid_file.read_text()))
    assert stat is None or not stat.alive


def test_the_source_asks_it_where_the_library_cannot_be_loaded(tmp_path: Path) -> None:
    (tmp_path / "libnvidia-ml.so.1").write_bytes(b"\x7fELF not a library")
    program(tmp_path, f"print({WORKING!r}[kind])")
    environment = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path), "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    source = GpuSource(environment, period=0.05)
    source.start()
    try:
        reading = wait_until(lambda: source.latest() if source.latest().gpus else None, 20, "a card")
    finally:
        source.close()
    assert reading.driver == Driver("550.90.07", source="nvidia_smi")
    assert [card.used for card in reading.gpus] == [7000 * MIB]
