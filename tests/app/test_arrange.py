"""The geometry of the overview, for every size and any number of cards."""

import itertools

import pytest

from tui.app.arrange import LEAST_HEIGHT, LEAST_WIDTH, Box, Contents, Want, arrange, share

SIZES = [*itertools.product((60, 79, 80, 100, 119, 120, 160, 240, 300), (18, 20, 24, 31, 32, 45, 70, 100))]
GPUS = (0, 1, 2, 3, 4, 8, 16, 64)


@pytest.mark.parametrize("gpus", GPUS)
@pytest.mark.parametrize(("width", "height"), SIZES)
def test_boxes_fill_the_screen_without_overlap(width: int, height: int, gpus: int) -> None:
    boxes = arrange(width, height, Contents(gpus, owners=7 * gpus, jobs=4, findings=2))
    cells = 0
    for name, box in boxes.items():
        assert box.width > 0
        assert box.height > 0
        assert box.x >= 0
        assert box.x + box.width <= width, name
        assert box.y + box.height <= height, name
        cells += box.width * box.height
    for (_, one), (_, other) in itertools.combinations(boxes.items(), 2):
        assert not _overlap(one, other)
    assert cells == width * height


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_verdict_cards_and_time_left_are_always_there(width: int, height: int) -> None:
    boxes = arrange(width, height, Contents(gpus=1))
    assert {"head", "verdict", "gpus", "training", "host", "foot"} <= boxes.keys()


@pytest.mark.parametrize(
    ("width", "height"), [(1, 1), (LEAST_WIDTH - 1, 100), (300, LEAST_HEIGHT - 1), (0, 0)]
)
def test_too_small_is_nothing_at_all(width: int, height: int) -> None:
    assert arrange(width, height, Contents()) == {}


def test_eight_cards_have_a_line_each_in_80x24() -> None:
    assert arrange(80, 24, Contents(gpus=8, owners=50))["gpus"].height >= 1 + 8


def test_wide_terminals_have_two_columns() -> None:
    boxes = arrange(160, 45, Contents())
    assert boxes["owners"].x == 80
    assert boxes["gpus"].x == 0


def test_what_has_no_room_is_left_out_by_rank() -> None:
    wants = [Want("a", 3, 3, 3, 0), Want("b", 3, 3, 3, 2), Want("c", 3, 3, 3, 1)]
    assert share(7, wants).keys() == {"a", "c"}


def test_an_extra_comes_only_when_the_others_have_their_ideal() -> None:
    wants = [Want("a", 1, 4, 4, 0), Want("x", 2, 2, 9, 1, extra=True)]
    assert share(5, wants) == {"a": 5}
    assert share(6, wants) == {"a": 4, "x": 2}
    assert share(9, wants) == {"a": 4, "x": 5}


def test_growth_comes_in_units() -> None:
    assert share(12, [Want("cards", 4, 99, 99, 0, unit=4), Want("rest", 1, 1, 1, 1)]) == {
        "cards": 8,
        "rest": 4,
    }


def _overlap(one: Box, other: Box) -> bool:
    return not (
        one.x + one.width <= other.x
        or other.x + other.width <= one.x
        or one.y + one.height <= other.y
        or other.y + other.height <= one.y
    )
