"""Bars and graphs in characters: one ink for a whole line of a graph, so that it costs one segment."""

from collections.abc import Sequence
from dataclasses import dataclass

from tui.app.ink import Ink, Line, Span
from tui.text.cells import ASCII, UNICODE, Glyphs


@dataclass(frozen=True, slots=True)
class Pen:
    """The characters that bars and graphs are drawn with. ``levels`` run from empty to full, where
    graphs are not drawn in ``braille``.
    """

    glyphs: Glyphs
    full: str
    half: str
    reserved: str
    track: str
    braille: bool
    levels: str
    separator: str
    here: str
    done: str
    cross: str
    warning: str


PEN = Pen(UNICODE, "━", "╸", "╍", "─", True, "", " · ", "●", "✓", "✗", "▲")
ASCII_PEN = Pen(ASCII, "#", "", "%", ".", False, " .:-=+*%#", " | ", "*", "+", "x", "!")


# One cell for one cell, so that nothing moves; what is not drawn by us (a log's own bars) passes here too.
_IN_ASCII = str.maketrans("…·─│●▲✓✗█▉▊▋▌▍▎▏×–—", "~.-|*!+x########x--")


def in_ascii(text: str) -> str:
    """Drawn characters as ASCII; letters of any language stay."""
    return text if text.isascii() else text.translate(_IN_ASCII)


def bar(fraction: float | None, cells: int, pen: Pen, ink: Ink = "good", reserved: float = 0.0) -> Line:
    """A bar of ``fraction``, then of what is ``reserved`` (a fraction too), then of what is free.

    An unknown fraction is an empty track: an empty bar in ink would claim a zero.
    """
    if fraction is None:
        return (Span(pen.track * cells, "track"),)
    # Anything above zero shows, and only a full one is full.
    exact = min(max(fraction, 0.0), 1.0) * cells
    full = int(exact)
    half = pen.half if pen.half and (exact - full >= 0.5 or (0 < exact < 1)) and full < cells else ""
    held = min(cells - full - len(half), round(min(max(reserved, 0.0), 1.0) * cells))
    rest = cells - full - len(half) - held
    spans = (
        Span(pen.full * full + half, ink),
        Span(pen.reserved * held, "reserved"),
        Span(pen.track * rest, "track"),
    )
    return tuple(span for span in spans if span.text)


def spark(values: Sequence[float | None], cells: int, pen: Pen) -> str:
    """The newest values (fractions 0-1) as one line, right-aligned; a gap is a blank."""
    return graph(values, cells, 1, pen)[0]


def graph(
    values: Sequence[float | None], cells: int, rows: int, pen: Pen, *, filled: bool = True
) -> list[str]:
    """The newest values as ``rows`` lines from top to bottom, right-aligned; an area, or only its edge.

    A measured zero is drawn, as the lowest mark: a blank means that nothing is known.
    """
    count = columns_of(cells, pen)
    newest = list(values)[-count:] if count > 0 else []
    steps = rows * (_DOTS if pen.braille else len(pen.levels) - 1)
    heights = [0] * (count - len(newest)) + [_height(value, steps) for value in newest]
    floors = [0] * count if filled or not pen.braille else _floors(heights)
    return [_graph_row(heights, floors, row, pen) for row in range(rows - 1, -1, -1)]


def _height(value: float | None, steps: int) -> int:
    return 0 if value is None else max(1, round(min(max(value, 0.0), 1.0) * steps))


def _floors(heights: Sequence[int]) -> list[int]:
    """From where each column of a curve is drawn: down to its lower neighbour, so that they touch."""
    known = [[near for near in heights[max(0, at - 1) : at + 2] if near] for at in range(len(heights))]
    return [max(0, min([height - 1, *near])) for height, near in zip(heights, known, strict=True)]


def columns_of(cells: int, pen: Pen) -> int:
    """How many values fit so many cells."""
    return cells * 2 if pen.braille else cells


def _graph_row(heights: Sequence[int], floors: Sequence[int], row: int, pen: Pen) -> str:
    if not pen.braille:
        steps = len(pen.levels) - 1
        return "".join(pen.levels[min(max(height - row * steps, 0), steps)] for height in heights)
    dots = [_dots(floor, height, row) for floor, height in zip(floors, heights, strict=True)]
    codes = [_LEFT[left] | _RIGHT[right] for left, right in zip(dots[::2], dots[1::2], strict=True)]
    return "".join(chr(_BRAILLE + code) if code else " " for code in codes)


def _dots(floor: int, height: int, row: int) -> int:
    """The four dots of a column in a row as bits, the lowest first."""
    base = row * _DOTS
    return sum(1 << dot for dot in range(_DOTS) if floor <= base + dot < height)


# Braille is one cell wide in every terminal, which block elements are not, and has two columns a cell.
_BRAILLE = 0x2800
_DOTS = 4


def _codes(bits: tuple[int, int, int, int]) -> tuple[int, ...]:
    return tuple(sum(bit for at, bit in enumerate(bits) if dots >> at & 1) for dots in range(1 << _DOTS))


_LEFT = _codes((0x40, 0x04, 0x02, 0x01))
_RIGHT = _codes((0x80, 0x20, 0x10, 0x08))


def scaled(values: Sequence[float | None]) -> list[float | None]:
    """Values as fractions of their own range, for a curve without an axis (a loss)."""
    known = [value for value in values if value is not None]
    if not known:
        return []
    low, high = min(known), max(known)
    span = (high - low) or 1.0
    return [None if value is None else (value - low) / span for value in values]
