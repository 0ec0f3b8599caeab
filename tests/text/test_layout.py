"""Tables that fit, bars that do not lie, labels that line up."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.text.cells import width
from tui.text.layout import Cell, Column, Page, Table, labelled

WORDS = st.text(alphabet="abc训练 ", max_size=30)


def plain(line: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", line)


@given(st.lists(st.lists(WORDS, min_size=4, max_size=4), max_size=5), st.integers(1, 90), st.booleans())
def test_no_line_is_wider_than_its_page(rows: list[list[str]], cells: int, colour: bool) -> None:
    columns = (
        Column("训练", least=6),
        Column("b", "right"),
        Column(least=5, most=20, bar=True),
        Column("d", drop=1),
    )
    table = Table(columns, [[Cell(a), Cell(b, "bad"), Cell(fraction=0.5), Cell(d)] for a, b, _c, d in rows])
    for line in table.lines(Page(cells, colour)):
        assert width(plain(line)) <= cells


def test_chinese_columns_line_up() -> None:
    table = Table((Column("名称"), Column("显存", "right"), Column("end")))
    table.rows += [[Cell("训练"), Cell("1"), Cell("x")], [Cell("ab"), Cell("20 GiB"), Cell("y")]]
    lines = table.lines(Page(80))
    starts = {width(line[: line.index(word)]) for line, word in zip(lines, ("end", "x", "y"), strict=True)}
    assert len(starts) == 1


def test_bars_give_way_before_words_and_dropping_comes_last() -> None:
    columns = (Column("name", least=4), Column(least=4, most=30, bar=True), Column("extra", drop=1))
    table = Table(columns, [[Cell("a long name"), Cell(fraction=1.0), Cell("extra word")]])
    assert table.lines(Page(31))[1] == "a long name  ██████  extra word"
    assert table.lines(Page(24))[1] == "a lon…  ████  extra word"
    assert table.lines(Page(16))[1] == "a long na…  ████"


def test_an_empty_column_takes_no_room() -> None:
    table = Table((Column("a"), Column("unused"), Column("b")), [[Cell("1"), Cell(), Cell("2")]])
    assert table.lines(Page(80)) == ["a  b", "1  2"]


@pytest.mark.parametrize(
    ("fraction", "bar"),
    [
        (None, ".........."),
        (0.0, ".........."),
        (0.001, "#........."),
        (0.5, "#####....."),
        (0.999, "#########."),
        (1.0, "##########"),
    ],
)
def test_a_bar_is_empty_or_full_only_when_it_is_true(fraction: float | None, bar: str) -> None:
    assert Page(ascii=True).bar(fraction, 10) == bar


def test_colours_only_where_asked_for() -> None:
    assert Page().paint("x", "bad") == "x"
    assert Page(colour=True).paint("x", "bad") == "\x1b[31mx\x1b[0m"
    assert Page(colour=True).paint("x", "plain") == "x"
    assert Page(colour=True).paint("  ", "bad") == "  "


def test_labels_share_a_column_and_texts_wrap_beside_it() -> None:
    lines = labelled(Page(20), [("损失", "one two three four"), ("x", "1")], 2)
    assert lines == ["  损失  one two", "        three four", "  x     1"]
