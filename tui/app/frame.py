"""What leads from one frame of the terminal to the next: only the cells that changed.

Lines that are the same are skipped, in the others the cells that differ are written, grouped by style,
since the order on the wire is free and a change of style costs more than a move. Nothing changed: no byte.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from rich.cells import cell_len, get_character_cell_size
from rich.color import ColorSystem
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

_GAP = 3
"""Unchanged cells that are written again rather than jumped over: a jump costs four bytes."""

_STYLES_KEPT = 4096

Cell: TypeAlias = tuple[str, str]
"""A character with what combines with it, and its SGR parameters. The right half of a wide character
is an empty string."""


@dataclass(frozen=True, slots=True)
class Run:
    """Cells of one style, side by side."""

    y: int
    x: int
    sgr: str
    text: str
    cells: int


class Frame:
    """The last frame that was sent, and how to get from it to another one."""

    def __init__(self, color_system: ColorSystem) -> None:
        self._color_system = color_system
        self._strips: Sequence[Strip] = ()
        self._cells: dict[int, list[Cell]] = {}
        self._sgr: dict[Style, str] = {}

    def forget(self) -> None:
        """Nothing is known of the terminal any more: the next frame is sent whole."""
        self._strips = ()
        self._cells.clear()

    def update(self, strips: Sequence[Strip]) -> str:
        """What to write so that the terminal shows these lines; ``""`` if it shows them already."""
        if len(strips) != len(self._strips):
            self.forget()
            runs = [run for y, strip in enumerate(strips) for run in _runs(y, [], self._expand(strip))]
        else:
            changed = [run for y, strip in enumerate(strips) for run in self._changed(y, strip)]
            runs = sorted(changed, key=lambda run: (run.sgr, run.y, run.x))
        self._strips = strips
        return _written(runs)

    def _changed(self, y: int, strip: Strip) -> Iterator[Run]:
        before = self._strips[y]
        if before is strip or before == strip:
            return
        old = self._cells.pop(y, None) or self._expand(before)
        new = self._cells[y] = self._expand(strip)
        yield from _runs(y, old, new)

    def _expand(self, strip: Strip) -> list[Cell]:
        cells: list[Cell] = []
        for segment in strip:
            cells.extend(_cells_of(segment, self._parameters(segment.style)))
        return cells

    def _parameters(self, style: Style | None) -> str:
        if style is None:
            return ""
        known = self._sgr.get(style)
        if known is None:
            if len(self._sgr) > _STYLES_KEPT:
                self._sgr.clear()  # styles carry positions and links; they never repeat for ever
            known = self._sgr[style] = Strip.render_ansi(style, self._color_system)
        return known


def _cells_of(segment: Segment, sgr: str) -> Iterator[Cell]:
    text = segment.text
    if text.isascii():
        for character in text:
            yield character, sgr
        return
    widths = [get_character_cell_size(character) for character in text]
    if sum(widths) != cell_len(text):
        # A cluster that is drawn narrower than its parts: one piece, which is never divided.
        yield text, sgr
        yield from [("", sgr)] * (cell_len(text) - 1)
        return
    head = ""
    head_cells = 0
    for character, cells in zip(text, widths, strict=True):
        if cells == 0:
            head += character  # combines with the character before it
            continue
        if head_cells:
            yield head, sgr
            yield from [("", sgr)] * (head_cells - 1)
        head, head_cells = character, cells
    if head_cells:
        yield head, sgr
        yield from [("", sgr)] * (head_cells - 1)


def _runs(y: int, old: Sequence[Cell], new: Sequence[Cell]) -> Iterator[Run]:
    """The parts of a line that differ, each of one style, never with half of a wide character."""
    count = len(new)
    differs = [at >= len(old) or old[at] != new[at] for at in range(count)]
    for at in range(count):
        # A wide character is written whole if either half differs.
        if new[at][0] == "" and at > 0 and differs[at] != differs[at - 1]:
            start = at - 1
            while start > 0 and new[start][0] == "":
                start -= 1
            differs[start : at + 1] = [True] * (at + 1 - start)
    x = 0
    while x < count:
        if not differs[x]:
            x += 1
            continue
        start, sgr = x, new[x][1]
        end = x = x + 1
        while x < count and new[x][1] == sgr and x - end <= _GAP:
            x += 1
            if differs[x - 1]:
                end = x
        while end < count and new[end][0] == "":
            end += 1
        x = end
        yield Run(y, start, sgr, "".join(character for character, _ in new[start:end]), end - start)


def _written(runs: Sequence[Run]) -> str:
    if not runs:
        return ""
    parts: list[str] = []
    pen = _Pen()
    place: tuple[int, int] | None = None
    for run in runs:
        if place != (run.y, run.x):
            same_line = place is not None and place[0] == run.y and place[1] < run.x
            jump = f"\x1b[{run.x - place[1]}C" if same_line and place is not None else ""
            absolute = f"\x1b[{run.y + 1};{run.x + 1}H"
            parts.append(jump if jump and len(jump) < len(absolute) else absolute)
        parts += pen.to(run.sgr), run.text
        place = (run.y, run.x + run.cells)
    parts.append("\x1b[0m")
    return "".join(parts)


@dataclass(frozen=True, slots=True)
class _Look:
    """SGR parameters apart: attributes, foreground, background."""

    attributes: frozenset[str]
    foreground: str
    background: str


def _look(sgr: str) -> _Look:
    attributes: set[str] = set()
    foreground = background = ""
    codes = sgr.split(";") if sgr else []
    at = 0
    while at < len(codes):
        code = codes[at]
        length = 1
        if code in {"38", "48"} and at + 1 < len(codes):
            length = 3 if codes[at + 1] == "5" else 5
        joined = ";".join(codes[at : at + length])
        if code == "38" or code in _FOREGROUNDS:
            foreground = joined
        elif code == "48" or code in _BACKGROUNDS:
            background = joined
        else:
            attributes.add(code)
        at += length
    return _Look(frozenset(attributes), foreground, background)


_FOREGROUNDS = frozenset(str(code) for code in (*range(30, 38), 39, *range(90, 98)))
_BACKGROUNDS = frozenset(str(code) for code in (*range(40, 48), 49, *range(100, 108)))


class _Pen:
    """The terminal's graphic attributes; says the shortest way to others."""

    def __init__(self) -> None:
        self._sgr = ""
        self._now = _look("")

    def to(self, sgr: str) -> str:
        if sgr == self._sgr:
            return ""
        wanted = _look(sgr)
        now, self._now, self._sgr = self._now, wanted, sgr
        if not now.attributes <= wanted.attributes:
            return f"\x1b[0;{sgr}m" if sgr else "\x1b[0m"
        codes = sorted(wanted.attributes - now.attributes)
        if wanted.foreground != now.foreground:
            codes.append(wanted.foreground or "39")
        if wanted.background != now.background:
            codes.append(wanted.background or "49")
        return f"\x1b[{';'.join(codes)}m" if codes else ""
