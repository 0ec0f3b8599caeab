"""Cells: widths of Chinese text, exact fitting, wrapping, and harmless outside text."""

import re
import subprocess
import sys
import time
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tui.text.cells import ASCII, CLEAN_LIMIT, clean, cut, cut_middle, fit, width, wrap

ANY_TEXT = st.text(max_size=120)
MIXED = st.text(alphabet="ab 训练，。（）x/", max_size=80)


def test_width_counts_cells_not_characters() -> None:
    assert width("训练 loss") == 9
    assert width("█░●─…") == 5
    assert width("e\u0301") == 1


def test_cut_ends_in_an_ellipsis_only_when_something_is_missing() -> None:
    assert cut("abcdef", 6) == "abcdef"
    assert cut("abcdefg", 6) == "abcde…"
    assert cut("abcdefg", 6, ASCII) == "abc..."
    assert cut("训练进度", 6) == "训练…"
    assert cut("abc", 2, ASCII) == "ab"
    assert cut("abc", 0) == ""


def test_the_middle_of_a_path_goes_first() -> None:
    assert cut_middle("/root/autodl-tmp/saves/qwen/lora/sft", 16) == "/root…n/lora/sft"
    assert cut_middle("short", 16) == "short"
    assert cut_middle("abcdef", 2, ASCII) == "ab"


@given(ANY_TEXT.map(clean), st.integers(0, 40))
@example("训练", 3)
def test_fit_is_exact_for_any_cleaned_text(text: str, cells: int) -> None:
    for fitted in (fit(text, cells), fit(text, cells, "right"), fit(text, cells, glyphs=ASCII)):
        assert width(fitted) == cells
    assert width(cut_middle(text, cells)) <= max(cells, 0)


def test_fit_aligns() -> None:
    assert fit("显存", 6) == "显存  "
    assert fit("显存", 6, "right") == "  显存"


@given(MIXED, st.integers(2, 30))
def test_wrapped_lines_fit_and_lose_nothing_but_spaces(text: str, cells: int) -> None:
    lines = wrap(text, cells)
    assert all(width(line) <= cells for line in lines)
    assert re.sub(r"\s", "", "".join(lines)) == re.sub(r"\s", "", text)


def test_words_stay_whole_and_punctuation_does_not_start_a_line() -> None:
    assert wrap("memory is used by nobody", 10) == ["memory is", "used by", "nobody"]
    assert wrap("显存不够，训练失败。", 10) == ["显存不够，", "训练失败。"]
    assert wrap("显存不够，训练失败。", 9) == ["显存不", "够，训练", "失败。"]
    assert wrap("", 10) == [""]
    assert wrap("abcdefghij", 4) == ["abcd", "efgh", "ij"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b[2J\x1b[1;1Hgone", "gone"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b]0;never closed", "0;never closed"),
        ("\x9b31mred", "red"),
        ("\x9d0;title\x9ctext", "text"),
        ("a\x00b\x07c\x7fd\x85e", "a b c d e"),
        ("two\r\nlines\tand", "two  lines and"),
        ("    raise ValueError(x)", "    raise ValueError(x)"),
        ("\u202eevil\u2066x\u200b\u200d\ufeff", "evilx"),
        ("bad\udc80name", "bad?name"),
        ("☺\ufe0f 1\u20e3", "☺ 1"),
        ("e\u0301", "é"),
        ("e\u200d\u0301", "é"),
        ("训练\u3000集", "训练 集"),
        ("\x1b", ""),
    ],
)
def test_clean(text: str, expected: str) -> None:
    assert clean(text) == expected


@given(st.one_of(ANY_TEXT, st.binary(max_size=80).map(lambda raw: raw.decode("utf-8", "surrogateescape"))))
@example("\x1b\x1b[[mm")
@example("\x1b[\x1b[0m31m")
def test_cleaned_text_cannot_move_hide_or_break_anything(text: str) -> None:
    cleaned = clean(text)
    assert not any(unicodedata.category(character) in {"Cc", "Cf", "Cs", "Zl", "Zp"} for character in cleaned)
    cleaned.encode("utf-8")
    assert clean(cleaned) == cleaned


def test_clean_is_bounded_in_length_and_time() -> None:
    assert len(clean("x" * 10_000)) == CLEAN_LIMIT
    assert clean("abcdef", 5) == "ab..."
    for piece in ("\x1b[", "\x1b]", "\x9d", "\x1b]0;", "\x1b"):
        began = time.process_time()
        clean(piece * 1_000_000)
        assert time.process_time() - began < 1


def test_cells_do_not_import_the_console() -> None:
    code = "import sys, tui.text.cells; print(sorted({'rich.console', 'textual'} & set(sys.modules)))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.strip() == "[]"
