"""Bars and graphs in characters."""

import pytest

from tui.app.graphs import ASCII_PEN, PEN, bar, graph, scaled, spark
from tui.app.ink import line_width


@pytest.mark.parametrize("fraction", [0.0, 0.001, 0.4, 0.5, 0.999, 1.0, 1.7, -2.0, None])
@pytest.mark.parametrize("pen", [PEN, ASCII_PEN])
@pytest.mark.parametrize("reserved", [0.0, 0.02, 0.9])
def test_a_bar_is_as_wide_as_asked(fraction: float | None, pen: object, reserved: float) -> None:
    assert line_width(bar(fraction, 20, pen, "good", reserved)) == 20  # type: ignore[arg-type]  # a pen


def test_only_a_full_bar_is_full_and_anything_shows() -> None:
    assert bar(1.0, 10, PEN)[0].text == "━" * 10
    assert bar(0.999, 10, PEN)[0].text == "━" * 9 + "╸"
    assert bar(0.001, 10, PEN)[0].text == "╸"
    assert bar(0.0, 10, PEN)[0].ink == "track"


def test_unknown_is_an_empty_track_and_not_a_zero_in_ink() -> None:
    assert [span.ink for span in bar(None, 10, PEN)] == ["track"]


def test_reserved_memory_has_its_own_mark_after_the_used() -> None:
    texts = [(span.text, span.ink) for span in bar(0.5, 10, ASCII_PEN, "good", 0.2)]
    assert texts == [("#####", "good"), ("%%", "reserved"), ("...", "track")]


def test_braille_has_two_columns_a_cell() -> None:
    assert spark([1.0, 0.5], 1, PEN) == "⣧"
    assert spark([0.0, 1.0], 1, PEN) == "⣸"


def test_a_gap_is_blank_and_a_zero_is_not() -> None:
    assert spark([None, None], 1, PEN) == " "
    assert spark([0.0, 0.0], 1, PEN) == "⣀"
    assert spark([None], 1, ASCII_PEN) == " "
    assert spark([0.0], 1, ASCII_PEN) == "."


@pytest.mark.parametrize("pen", [PEN, ASCII_PEN])
@pytest.mark.parametrize("filled", [True, False])
def test_a_graph_has_its_size_whatever_the_number_of_values(pen: object, filled: bool) -> None:
    for count in (0, 1, 7, 500):
        rows = graph([0.3] * count, 12, 3, pen, filled=filled)  # type: ignore[arg-type]  # a pen
        assert [len(row) for row in rows] == [12, 12, 12]


def test_the_edge_of_a_curve_touches() -> None:
    assert graph([0.0, 1.0], 1, 2, PEN, filled=False) == ["⢸", "⡸"]
    assert graph([1.0, 0.0], 1, 2, PEN, filled=False) == ["⡇", "⢇"]


def test_a_flat_series_is_no_division_by_zero() -> None:
    assert scaled([2.0, 2.0]) == [0.0, 0.0]
    assert scaled([]) == []
    assert scaled([1.0, None, 3.0]) == [0.0, None, 1.0]
