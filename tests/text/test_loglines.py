"""Bars, controls, secrets and broken pieces of a console log."""

import random

from hypothesis import given
from hypothesis import strategies as st

from tui.text.loglines import LINE_LIMIT, LogLines


def lines_of(data: bytes) -> list[str]:
    lines = LogLines()
    finished = lines.feed(data)
    return [*finished, lines.unfinished]


def test_a_bar_shows_its_last_state() -> None:
    assert lines_of(b"\r  0%|   | 0/4\r 50%|## | 2/4\r100%|####| 4/4\nnext\n") == [
        "100%|####| 4/4",
        "next",
        "",
    ]
    assert lines_of(b"\r 25%|#  | 1/4") == [" 25%|#  | 1/4"]


def test_windows_line_ends_keep_the_line() -> None:
    assert lines_of(b"one\r\ntwo\r\n") == ["one", "two", ""]


def test_controls_and_escapes_are_removed() -> None:
    shown = "".join(lines_of(b"\x1b[31mred\x1b[0m\x07 \x1b]52;c;aGk=\x07 \x9b2J done\x00\n"))
    assert "red" in shown
    assert "done" in shown
    assert all(character >= " " for character in shown)


def test_secrets_are_masked() -> None:
    assert (
        "hf_abcdefghijklmnopqrstuvwxyz0123456789"
        not in lines_of(b"login with hf_abcdefghijklmnopqrstuvwxyz0123456789\n")[0]
    )


def test_memory_is_bounded_by_one_endless_line() -> None:
    lines = LogLines()
    for _ in range(64):
        lines.feed(b"x" * LINE_LIMIT)
        lines.feed(b"\r 1/2" * 1000)
    assert len(lines._pending) <= 2 * LINE_LIMIT


@given(st.binary(max_size=300), st.integers(0, 2**32))
def test_pieces_do_not_matter(data: bytes, seed: int) -> None:
    cuts = sorted(random.Random(seed).sample(range(len(data) + 1), k=min(5, len(data) + 1)))
    lines = LogLines()
    finished: list[str] = []
    for begin, end in zip([0, *cuts], [*cuts, len(data)], strict=True):
        finished += lines.feed(data[begin:end])
    assert [*finished, lines.unfinished] == lines_of(data)
