"""Numbers as people read them."""

import math
from datetime import timedelta, timezone

import pytest

from tui.text import units

GIB, MIB = 1 << 30, 1 << 20
EAST = timezone(timedelta(hours=8))
NOON = 1_800_000_000.0  # 2027-01-15 16:00:00 +0800


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        (None, "-"),
        (0, "0 B"),
        (512, "512 B"),
        (4 * 1024, "4 KiB"),
        (430 * MIB, "430 MiB"),
        (int(21.4 * GIB), "21.4 GiB"),
        (int(1.8 * 1024 * GIB), "1.8 TiB"),
        (-3 * GIB, "-3.0 GiB"),
    ],
)
def test_size(count: int | None, shown: str) -> None:
    assert units.size(count) == shown


@pytest.mark.parametrize(
    ("part", "whole", "shown"),
    [
        (int(21.4 * GIB), 24 * GIB, "21.4/24.0 GiB"),
        (3 * MIB, 24 * GIB, "<0.1/24.0 GiB"),
        (0, 24 * GIB, "0.0/24.0 GiB"),
        (100 * MIB, 900 * MIB, "100/900 MiB"),
        (None, 24 * GIB, "-/24.0 GiB"),
        (GIB, None, "1.0 GiB/-"),
    ],
)
def test_sizes_share_a_unit_and_never_invent_a_zero(part: int | None, whole: int | None, shown: str) -> None:
    assert units.sizes(part, whole) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (None, "-"),
        (math.nan, "-"),
        (math.inf, "-"),
        (0, "0:00"),
        (31.4, "0:31"),
        (59.6, "1:00"),
        (1026, "17:06"),
        (3723, "1:02:03"),
        (86400 + 2 * 3600 + 180, "1 d 2:03"),
        (-1, "0:00"),
    ],
)
def test_duration(seconds: float | None, shown: str) -> None:
    assert units.duration(seconds) == shown


@pytest.mark.parametrize(
    ("seconds", "each", "about", "rate"),
    [
        (None, "-", "-", "-"),
        (0.0412, "0.041 s", "0.0 s", "24.27 it/s"),
        (0.584, "0.584 s", "0.6 s", "1.71 it/s"),
        (3.62, "3.62 s", "4 s", "3.62 s/it"),
        (8.0, "8.00 s", "8 s", "8.00 s/it"),
        (31.44, "31.4 s", "31 s", "31.4 s/it"),
        (124.3, "124 s", "124 s", "124 s/it"),
        (0.0004, "0.000 s", "0.0 s", "2500 it/s"),
    ],
)
def test_step_times(seconds: float | None, each: str, about: str, rate: str) -> None:
    assert units.seconds_each(seconds) == each
    assert units.seconds_about(seconds) == about
    assert units.rate(seconds) == rate


@pytest.mark.parametrize(
    ("fraction", "shown"),
    [
        (None, "-"),
        (0.0, "0%"),
        (0.001, "<1%"),
        (0.43, "43%"),
        (0.9987, ">99%"),
        (1.0, "100%"),
        (math.nan, "-"),
    ],
)
def test_percent_is_exact_at_its_ends(fraction: float | None, shown: str) -> None:
    assert units.percent(fraction) == shown


def test_plain_figures() -> None:
    assert units.watts(287.4) == "287 W"
    assert units.watts(287.4, 450) == "287/450 W"
    assert units.watts(None, 450) == "-"
    assert units.temperature(64) == "64C"
    assert units.number(1.23456) == "1.2346"
    assert units.number(math.nan) == "nan"
    assert units.number(2e-5) == "2.000e-05"
    assert units.number(0.0) == "0.0000"
    assert units.number(None) == "-"
    assert units.cpus(16.0) == "16"
    assert units.cpus(0.5) == "0.5"


def test_clock_is_as_short_as_today_allows() -> None:
    assert units.clock(NOON, NOON, EAST) == "16:00"
    assert units.clock(NOON + 86400, NOON, EAST) == "01-16 16:00"
    assert units.clock(NOON - 86400 * 20, NOON, EAST) == "2026-12-26 16:00"
    assert units.clock(None, NOON, EAST) == "-"
    assert units.moment(NOON, EAST) == "2027-01-15 16:00:00 +0800"


def test_the_zone_is_the_containers(monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    monkeypatch.setenv("TZ", "Etc/GMT-5")
    time.tzset()
    try:
        assert units.moment(NOON) == "2027-01-15 13:00:00 +0500"
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0.2, "0 s ago"),
        (3, "3 s ago"),
        (300, "5 min ago"),
        (7300, "2 h ago"),
        (4 * 86400, "4 d ago"),
        (None, "-"),
    ],
)
def test_age(seconds: float | None, shown: str) -> None:
    assert units.age(seconds) == shown
