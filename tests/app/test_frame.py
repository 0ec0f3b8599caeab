"""What is sent leads from one frame to the next, and nothing more is sent."""

import pyte
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.color import ColorSystem
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from tui.app.frame import Frame

COLUMNS, LINES = 24, 4
STYLES = [
    None,
    Style.parse("red on blue"),
    Style.parse("bold red on blue"),
    Style.parse("bold #112233"),
    Style.parse("reverse"),
    Style.parse("underline green on #445566"),
]
CHARACTERS = "ab 训练é─█⣿"


@st.composite
def strips(draw: st.DrawFn) -> list[Strip]:
    lines = []
    for _ in range(LINES):
        segments: list[Segment] = []
        room = COLUMNS
        while room > 0:
            text = draw(st.text(st.sampled_from(CHARACTERS), min_size=1, max_size=6))
            segment = Segment(text, draw(st.sampled_from(STYLES)))
            if segment.cell_length > room:
                segment = Segment("." * room, segment.style)
            segments.append(segment)
            room -= segment.cell_length
        lines.append(Strip(segments, COLUMNS))
    return lines


def shown(screen: pyte.Screen) -> list[list[tuple[str, str, str, bool, bool, bool]]]:
    return [
        [
            (cell.data, cell.fg, cell.bg, cell.bold, cell.reverse, cell.underscore)
            for cell in (screen.buffer[y][x] for x in range(COLUMNS))
        ]
        for y in range(LINES)
    ]


def emulator() -> tuple[pyte.Screen, pyte.Stream]:
    screen = pyte.Screen(COLUMNS, LINES)
    return screen, pyte.Stream(screen)


@settings(max_examples=150, deadline=None)
@given(st.lists(strips(), min_size=2, max_size=4))
def test_a_session_of_differences_shows_what_whole_frames_show(frames: list[list[Strip]]) -> None:
    diffed_screen, diffed = emulator()
    frame = Frame(ColorSystem.TRUECOLOR)
    for lines in frames:
        diffed.feed(frame.update(lines))
    whole_screen, whole = emulator()
    whole.feed(Frame(ColorSystem.TRUECOLOR).update(frames[-1]))
    assert shown(diffed_screen) == shown(whole_screen)
    assert [row.replace("\0", "") for row in diffed_screen.display] == [line.text for line in frames[-1]]


@settings(max_examples=50, deadline=None)
@given(strips())
def test_whole_frames_show_what_rich_itself_writes(lines: list[Strip]) -> None:
    ours_screen, ours = emulator()
    ours.feed(Frame(ColorSystem.TRUECOLOR).update(lines))
    plain_screen, plain = emulator()
    for y, strip in enumerate(lines):
        plain.feed(f"\x1b[{y + 1};1H")
        for text, style, _ in strip:
            plain.feed(style.render(text, color_system=ColorSystem.TRUECOLOR) if style else text)
    assert shown(ours_screen) == shown(plain_screen)


def line(*parts: tuple[str, Style | None]) -> Strip:
    return Strip([Segment(text, style) for text, style in parts])


def test_the_same_again_costs_nothing() -> None:
    frame = Frame(ColorSystem.TRUECOLOR)
    assert frame.update([line(("abc", STYLES[1]))])
    assert frame.update([line(("abc", STYLES[1]))]) == ""
    assert frame.update([line(("a", STYLES[1]), ("bc", STYLES[1]))]) == ""


def test_one_changed_cell_costs_one_move_one_style_one_cell() -> None:
    frame = Frame(ColorSystem.TRUECOLOR)
    frame.update([line(("21.4 GiB", STYLES[1]))])
    assert frame.update([line(("21.5 GiB", STYLES[1]))]) == "\x1b[1;4H\x1b[31;44m5\x1b[0m"


def test_runs_of_one_style_share_the_style() -> None:
    frame = Frame(ColorSystem.TRUECOLOR)
    red, green = Style.parse("red"), Style.parse("green")
    frame.update(
        [line(("1", red), ("-----", None), ("1", green)), line(("1", red), ("-----", None), ("1", green))]
    )
    changes = frame.update(
        [line(("2", red), ("-----", None), ("2", green)), line(("2", red), ("-----", None), ("2", green))]
    )
    assert changes.count("\x1b[31m") == 1
    assert changes.count("\x1b[32m") == 1


def test_half_a_wide_character_is_never_written() -> None:
    frame = Frame(ColorSystem.TRUECOLOR)
    frame.update([line(("中文", None))])
    assert "国" in frame.update([line(("国文", None))])
    assert frame.update([line(("a中b", None))]) == "\x1b[1;1Ha中b\x1b[0m"


@pytest.mark.parametrize("count", [1, 3])
def test_another_height_repaints_everything(count: int) -> None:
    frame = Frame(ColorSystem.TRUECOLOR)
    frame.update([line(("same", None))] * 2)
    assert frame.update([line(("same", None))] * count).count("same") == count


def test_after_forgetting_everything_is_sent() -> None:
    frame = Frame(ColorSystem.TRUECOLOR)
    first = frame.update([line(("same", None))])
    frame.forget()
    assert frame.update([line(("same", None))]) == first
