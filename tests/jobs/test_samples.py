"""Rows and peaks of a job's GPU samples."""

import json
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tui.facts.machine import GpuReading
from tui.jobs.samples import HEADER, PEAKS_NAME, SAMPLES_NAME, Recorder, append_rows, read_peaks, write_peaks

MIB = 1 << 20


def card(
    used: int | None,
    utilization: float | None = 0.5,
    power: float | None = 100.0,
    index: int = 0,
    uuid: str = "GPU-a",
) -> GpuReading:
    return GpuReading(index, 0, uuid, "card", "ok", used=used, utilization=utilization, power=power)


def test_first_every_sample_then_windows() -> None:
    recorder = Recorder(fine_seconds=1.0, window_seconds=1.0)
    assert recorder.add(1000.0, 0.0, [card(100 * MIB)]) == "1000.000,0,GPU-a,100.0,50.0,100.0,sample\n"
    assert recorder.add(1000.9, 0.9, [card(200 * MIB)]) == "1000.900,0,GPU-a,200.0,50.0,100.0,sample\n"
    assert recorder.add(1001.0, 1.0, [card(300 * MIB, 0.0, 50.0)]) == ""
    assert recorder.add(1001.5, 1.5, [card(900 * MIB, 1.0, 300.0)]) == ""
    assert recorder.add(1001.9, 1.9, [card(600 * MIB, 0.2, 40.0)]) == ""
    assert recorder.add(1002.0, 2.0, [card(5 * MIB)]) == (
        "1001.900,0,GPU-a,300.0,0.0,40.0,min\n"
        "1001.900,0,GPU-a,600.0,40.0,130.0,mean\n"
        "1001.900,0,GPU-a,900.0,100.0,300.0,max\n"
    )
    assert recorder.finish().splitlines()[2] == "1002.000,0,GPU-a,5.0,50.0,100.0,max"
    assert recorder.finish() == ""
    assert recorder.peaks == {"GPU-a": 900 * MIB}


def test_the_defaults_are_thirty_minutes_and_ten_seconds() -> None:
    recorder = Recorder()
    assert recorder.add(0.0, 1799.9, [card(MIB)]).endswith(",sample\n")
    assert recorder.add(0.0, 1800.0, [card(MIB)]) == ""
    assert recorder.add(0.0, 1809.9, [card(MIB)]) == ""
    assert len(recorder.add(0.0, 1810.0, [card(MIB)]).splitlines()) == 3


def test_unknown_is_an_empty_cell_and_no_zero() -> None:
    recorder = Recorder(fine_seconds=1.0, window_seconds=1.0)
    assert recorder.add(0.0, 0.0, [card(None)]) == "0.000,0,GPU-a,,50.0,100.0,sample\n"
    assert recorder.peaks == {}
    recorder.add(1.0, 1.0, [card(None, None, 10.0)])
    recorder.add(1.2, 1.2, [card(4 * MIB, None, None)])
    assert recorder.finish().splitlines()[1] == "1.200,0,GPU-a,4.0,,10.0,mean"


def test_lost_and_nameless_cards_give_no_row() -> None:
    lost = GpuReading(0, 0, "GPU-a", "card", "lost")
    assert Recorder().add(0.0, 0.0, [lost, card(MIB, uuid="")]) == ""


def test_every_card_has_rows_and_a_peak_of_its_own() -> None:
    recorder = Recorder()
    rows = recorder.add(0.0, 0.0, [card(MIB), card(7 * MIB, index=1, uuid="GPU-b")])
    assert [row.split(",")[1:3] for row in rows.splitlines()] == [["0", "GPU-a"], ["1", "GPU-b"]]
    recorder.add(0.0, 0.2, [card(3 * MIB), card(2 * MIB, index=1, uuid="GPU-b")])
    assert recorder.peaks == {"GPU-a": 3 * MIB, "GPU-b": 7 * MIB}


def test_files_have_one_header_and_belong_to_the_user_alone(tmp_path: Path) -> None:
    append_rows(tmp_path, "")
    assert not (tmp_path / SAMPLES_NAME).exists()
    append_rows(tmp_path, "a\n")
    append_rows(tmp_path, "b\n")
    assert (tmp_path / SAMPLES_NAME).read_text() == HEADER + "a\nb\n"
    assert write_peaks(tmp_path, {"GPU-a": 5})
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}
    assert len(list(tmp_path.iterdir())) == 2


def test_samples_are_not_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("mine")
    (tmp_path / SAMPLES_NAME).symlink_to("other")
    append_rows(tmp_path, "a\n")
    assert (tmp_path / "other").read_text() == "mine"


@contextmanager
def full_disk() -> Iterator[None]:
    """No file can grow past 100 bytes; a write that would is cut short, as on a full disk.

    For as few lines as can be: it holds for all of this process, the file of its standard output too.
    """
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_takes_whole_rows_or_none(tmp_path: Path) -> None:
    with full_disk():
        append_rows(tmp_path, "x" * 20 + "\n")
        whole = (tmp_path / SAMPLES_NAME).read_text()
        append_rows(tmp_path, "y" * 40 + "\n")
        append_rows(tmp_path, "y" * 40 + "\n")
        assert (tmp_path / SAMPLES_NAME).read_text() == whole
        append_rows(tmp_path, "z\n")
        assert (tmp_path / SAMPLES_NAME).read_text() == whole + "z\n"


def test_peaks_that_do_not_fit_leave_the_old_ones(tmp_path: Path) -> None:
    with full_disk():
        assert write_peaks(tmp_path, {"GPU-a": 5})
        assert not write_peaks(tmp_path, {f"GPU-{number}": 5 for number in range(100)})
        assert read_peaks(tmp_path) == {"GPU-a": 5}


def test_peaks_are_read_back(tmp_path: Path) -> None:
    assert read_peaks(tmp_path) == {}
    write_peaks(tmp_path, {"GPU-a": 5, "GPU-b": 0})
    assert read_peaks(tmp_path) == {"GPU-a": 5, "GPU-b": 0}


@pytest.mark.parametrize(
    "content",
    [b"", b"[1]", b"{", b"\xff", b"[" * 70_000, json.dumps({"a": -1, "b": "5", "c": True}).encode()],
)
def test_peaks_that_cannot_be_understood_are_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / PEAKS_NAME).write_bytes(content)
    assert read_peaks(tmp_path) == {}
