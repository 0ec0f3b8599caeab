import time

import pytest

from tui.llamafactory.clocktext import clock, duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("01:07", 67),
        ("1:02:03", 3723),
        ("25:00:00", 90000),
        ("0:02:39", 159),
        ("0:02:39.36", 159.36),
        ("1 day, 2:03:04", 93784),
        ("12 days, 0:00:01", 1036801),
        ("?", None),
        ("", None),
        ("1:2:3:4", None),
        ("2:03:04 left", None),
    ],
)
def test_duration(text: str, seconds: float | None) -> None:
    assert duration(text) == (None if seconds is None else pytest.approx(seconds))


def test_clock_text_is_read_in_this_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        for zone, epoch in (("UTC0", 1795963446.472), ("CST-8", 1795934646.472)):
            monkeypatch.setenv("TZ", zone)
            time.tzset()
            assert clock("trainer.py:2519 2026-11-29 14:44:06,472") == pytest.approx(epoch)
            assert clock("2026-11-29 14:44:06 llamafactory.data.loader:144") == pytest.approx(epoch - 0.472)
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize("text", ["", "trainer.py:2519", "2026-13-45 99:99:99", "2026-11-29"])
def test_what_is_no_clock(text: str) -> None:
    assert clock(text) is None
