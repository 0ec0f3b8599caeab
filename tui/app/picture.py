"""A picture of the screen as SVG: blocks and lines as shapes, text at exact places, so that no font
of the viewer can shift a column or leave gaps in a bar.
"""

import re
from collections.abc import Iterator, Sequence
from html import escape

from rich.cells import get_character_cell_size
from rich.color import blend_rgb
from rich.style import Style
from rich.terminal_theme import DIMMED_MONOKAI
from textual.strip import Strip

CELL_WIDTH, CELL_HEIGHT = 9.0, 20.0
_FONT_SIZE = 15
_BASELINE = 14.8
_MARGIN = 14.0
_BAR = 34.0
_FONTS = "'Fira Code','DejaVu Sans Mono','Noto Sans Mono CJK SC','Noto Sans CJK SC',monospace"

_PIECES = re.compile(r"[A-Za-z]+|[0-9]+|.", re.DOTALL)
_BRAILLE = 0x2800
_DOT_PLACES = ((0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (0, 3), (1, 3))
"""Column and row of the dot of each bit."""
_W, _H = CELL_WIDTH, CELL_HEIGHT
_LINES: dict[str, tuple[tuple[float, float, float, float], ...]] = {
    "─": ((0, _H / 2, _W, _H / 2),),
    "━": ((0, _H / 2, _W, _H / 2),),
    "╸": ((0, _H / 2, _W / 2, _H / 2),),
    "╍": ((0.5, _H / 2, 3.5, _H / 2), (5.5, _H / 2, 8.5, _H / 2)),
    "│": ((_W / 2, 0, _W / 2, _H),),
    "█": ((0, _H / 2, _W + 0.3, _H / 2),),
}
_HEAVY = frozenset("━╸╍")
_CORNERS = {
    "╭": f"M{_W / 2} {_H} V{_H / 2 + 4} Q{_W / 2} {_H / 2} {_W} {_H / 2}",
    "╮": f"M{_W / 2} {_H} V{_H / 2 + 4} Q{_W / 2} {_H / 2} 0 {_H / 2}",
    "╰": f"M{_W / 2} 0 V{_H / 2 - 4} Q{_W / 2} {_H / 2} {_W} {_H / 2}",
    "╯": f"M{_W / 2} 0 V{_H / 2 - 4} Q{_W / 2} {_H / 2} 0 {_H / 2}",
}


def svg(strips: Sequence[Strip], title: str) -> str:
    """The lines as an SVG document in a window of its own."""
    columns = max((strip.cell_length for strip in strips), default=0)
    width = columns * CELL_WIDTH + 2 * _MARGIN
    height = len(strips) * CELL_HEIGHT + _BAR + _MARGIN
    background = _background(strips)
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}"'
            f' width="{width:g}" height="{height:g}" font-family="{_FONTS}" font-size="{_FONT_SIZE}">'
        ),
        f'<rect width="{width:g}" height="{height:g}" rx="9" fill="{background}"/>',
        *(f'<circle cx="{20 + 18 * at}" cy="17" r="5.5" fill="#4a5465"/>' for at in range(3)),
        (
            f'<text x="{width / 2:g}" y="22" text-anchor="middle" fill="#8a94a6" font-size="13">'
            f"{escape(title)}</text>"
        ),
    ]
    for y, strip in enumerate(strips):
        parts += _row(strip, _BAR + y * CELL_HEIGHT, background)
    return "\n".join([*parts, "</svg>\n"])


def _background(strips: Sequence[Strip]) -> str:
    for strip in strips[1:]:
        for segment in strip:
            if segment.style is not None and segment.style.bgcolor is not None:
                return _colours(segment.style)[1]
    return "#10141b"


def _colours(style: Style | None) -> tuple[str, str]:
    if style is None:
        return "#d3d9e3", "#10141b"
    front = style.color.get_truecolor(DIMMED_MONOKAI) if style.color else DIMMED_MONOKAI.foreground_color
    back = (
        style.bgcolor.get_truecolor(DIMMED_MONOKAI, foreground=False)
        if style.bgcolor
        else DIMMED_MONOKAI.background_color
    )
    if style.reverse:
        front, back = back, front
    if style.dim:
        front = blend_rgb(front, back, 0.4)
    return f"#{front[0]:02x}{front[1]:02x}{front[2]:02x}", f"#{back[0]:02x}{back[1]:02x}{back[2]:02x}"


def _row(strip: Strip, top: float, background: str) -> Iterator[str]:
    x = _MARGIN
    for segment in strip:
        front, back = _colours(segment.style)
        width = sum(map(get_character_cell_size, segment.text)) * CELL_WIDTH
        if back != background:
            # A hair wider, so that neighbours leave no seam.
            yield _rect(x, top, width + 0.4, back)
        yield from _text(segment.text, segment.style, x, top, front)
        x += width


def _rect(x: float, top: float, width: float, colour: str) -> str:
    return f'<rect x="{x:g}" y="{top:g}" width="{width:g}" height="{CELL_HEIGHT:g}" fill="{colour}"/>'


def _text(text: str, style: Style | None, x: float, top: float, colour: str) -> Iterator[str]:
    """Blocks as rectangles, frames as lines, letters and digits as words, the rest one by one: a font's
    ligatures would move what follows.
    """
    weight = ' font-weight="700"' if style is not None and style.bold else ""
    for piece in _PIECES.findall(text):
        if piece != " ":
            yield _shape(piece, x, top, colour) or (
                f'<text x="{x:g}" y="{top + _BASELINE:g}" fill="{colour}"{weight}>{escape(piece)}</text>'
            )
        x += sum(map(get_character_cell_size, piece)) * CELL_WIDTH


def _shape(character: str, x: float, top: float, colour: str) -> str | None:
    dots = ord(character[0]) - _BRAILLE
    if 0 < dots < 256:
        places = [place for bit, place in enumerate(_DOT_PLACES) if dots >> bit & 1]
        # Rather small bars than dots, as most terminal fonts draw them.
        return "".join(
            f'<rect x="{x + 0.5 + column * CELL_WIDTH / 2:g}" y="{top + 1 + row * CELL_HEIGHT / 4:g}"'
            f' width="3.4" height="3.6" rx="1" fill="{colour}"/>'
            for column, row in places
        )
    if character in _LINES:
        stroke = CELL_HEIGHT if character == "█" else 4.2 if character in _HEAVY else 1.2
        return "".join(
            f'<path d="M{x + x1:g} {top + y1:g}L{x + x2:g} {top + y2:g}"'
            f' stroke="{colour}" stroke-width="{stroke}"/>'
            for x1, y1, x2, y2 in _LINES[character]
        )
    if character in _CORNERS:
        return (
            f'<path transform="translate({x:g} {top:g})" d="{_CORNERS[character]}" fill="none"'
            f' stroke="{colour}" stroke-width="1.2"/>'
        )
    return None
