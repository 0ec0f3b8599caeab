"""A drawn line: pieces of text, each with a named ink. Colours are given to inks by the stylesheet.

Drawing is pure: a function makes lines from what is known, a panel compares them with the lines it
shows and paints only those that differ.
"""

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, get_args

from tui.text.cells import UNICODE, Align, Glyphs, cut, fit, width

Ink = Literal[
    "plain",
    "dim",
    "label",
    "strong",
    "good",
    "warn",
    "bad",
    "accent",
    "track",
    "reserved",
    "heat",
    "key",
    "tag",
]
INKS: tuple[Ink, ...] = get_args(Ink)


class Span(NamedTuple):
    """Some text in one ink."""

    text: str
    ink: Ink = "plain"


Line = tuple[Span, ...]
EMPTY: Line = ()


class Drawing(NamedTuple):
    """What a panel shows: a title and a note for its frame, and its lines.

    ``rows`` names what some lines stand for (a job's id), for choosing one by key or mouse.
    """

    title: str
    lines: Sequence[Line]
    note: str = ""
    rows: Sequence[str | None] = ()


def line(*spans: Span | str) -> Line:
    """A line of spans; a plain string is a span in plain ink."""
    return tuple(Span(span) if isinstance(span, str) else span for span in spans)


def line_width(spans: Iterable[Span]) -> int:
    """Cells of a line."""
    return sum(width(span.text) for span in spans)


def spread(left: Line, right: Line, cells: int) -> Line:
    """The left part at the left edge, the right part at the right one; the right part yields first."""
    gap = cells - line_width(left) - line_width(right)
    return (*left, Span(" " * gap), *right) if gap > 0 else left


def joined(parts: Iterable[Line], separator: str, cells: int) -> Line:
    """As many parts as have room, between separators."""
    result: list[Span] = []
    taken = 0
    for part in parts:
        between = width(separator) if result else 0
        needed = between + line_width(part)
        if taken + needed > cells:
            break
        if result:
            result.append(Span(separator, "dim"))
        result.extend(part)
        taken += needed
    return tuple(result)


def clipped(spans: Line, cells: int, glyphs: Glyphs = UNICODE) -> Line:
    """The line in at most that many cells."""
    result: list[Span] = []
    for text, ink in spans:
        room = cells - line_width(result)
        if width(text) > room:
            result.append(Span(cut(text, room, glyphs), ink))
            break
        result.append(Span(text, ink))
    return tuple(result)


def cell(text: str, cells: int, ink: Ink = "plain", align: Align = "left", glyphs: Glyphs = UNICODE) -> Span:
    """One field of a table, exactly so wide."""
    return Span(fit(text, cells, align, glyphs), ink)
