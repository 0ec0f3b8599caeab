"""Plain text layout for a terminal or a pipe: colour, bars, tables that fit a width, labelled lines.

Everything is measured in cells before it is coloured, so a Chinese table keeps its columns.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from tui.text.cells import ASCII, UNICODE, Align, Glyphs, cut, cut_middle, fit, width, wrap

Style = Literal["plain", "bold", "dim", "good", "bad", "warn", "accent"]

_SGR: dict[Style, str] = {
    "bold": "1",
    "dim": "2",
    "good": "32",
    "bad": "31",
    "warn": "33",
    "accent": "36",
}
_GAP = "  "


@dataclass(frozen=True, slots=True)
class Page:
    """Where a report is written: ``width`` in cells, with colours or without, drawn in ASCII or not."""

    width: int = 80
    colour: bool = False
    ascii: bool = False

    @property
    def glyphs(self) -> Glyphs:
        """The drawn characters that this page may use."""
        return ASCII if self.ascii else UNICODE

    def paint(self, text: str, style: Style) -> str:
        """The text in a style; unchanged on a page without colours."""
        if not self.colour or style == "plain" or not text.strip():
            return text
        return f"\x1b[{_SGR[style]}m{text}\x1b[0m"

    def bar(self, fraction: float | None, cells: int, style: Style = "accent") -> str:
        """A bar; anything above zero shows at least one full cell, unknown shows an empty bar."""
        if fraction is None or cells <= 0:
            return self.paint(self.glyphs.empty * cells, "dim")
        full = min(cells, round(fraction * cells))
        if fraction > 0:
            full = max(1, full)
        if fraction < 1:
            full = min(full, cells - 1)
        return self.paint(self.glyphs.full * full, style) + self.paint(
            self.glyphs.empty * (cells - full), "dim"
        )

    def heading(self, title: str) -> str:
        """The title of a section."""
        return self.paint(cut(title, self.width, self.glyphs), "bold")

    def paragraph(self, text: str, indent: int = 0, style: Style = "plain") -> list[str]:
        """The text wrapped to the width, each line indented."""
        return [" " * indent + self.paint(line, style) for line in wrap(text, self.width - indent)]


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a table: text, or a bar of ``fraction`` where ``text`` is empty."""

    text: str = ""
    style: Style = "plain"
    fraction: float | None = None


@dataclass(frozen=True, slots=True)
class Column:
    """A column. ``least`` cells are enough for it when room is short: bars give way first, then the
    widest. ``drop`` above 0 lets it go altogether, the highest first. A ``bar`` column takes ``most``
    cells if there is room.
    """

    title: str = ""
    align: Align = "left"
    least: int | None = None
    most: int | None = None
    drop: int = 0
    bar: bool = False
    middle: bool = False


@dataclass(slots=True)
class Table:
    """Rows of cells under columns, laid out to fit a page."""

    columns: Sequence[Column]
    rows: list[Sequence[Cell]] = field(default_factory=list)

    def lines(self, page: Page, indent: int = 0) -> list[str]:
        """The table as lines; a header only if a column has a title."""
        kept, widths = self._fitted(page.width - indent)
        rows: list[Sequence[Cell]] = list(self.rows)
        if any(column.title for column in self.columns):
            rows.insert(0, [Cell(column.title, "dim") for column in self.columns])
        lines = []
        for row in rows:
            cells = [
                self._cell(page, self.columns[position], row[position], widths[position]) for position in kept
            ]
            lines.append((" " * indent + _GAP.join(cells)).rstrip())
        return lines

    def _fitted(self, room: int) -> tuple[list[int], dict[int, int]]:
        """The columns that stay, and their widths."""
        kept = [position for position in range(len(self.columns)) if not self._is_empty(position)]
        while True:
            widths = {position: self._natural(position) for position in kept}
            excess = sum(widths.values()) + len(_GAP) * (len(kept) - 1) - room
            for position in sorted(
                kept, key=lambda position: (not self.columns[position].bar, -widths[position])
            ):
                least = self.columns[position].least
                if excess > 0 and least is not None and least < widths[position]:
                    taken = min(excess, widths[position] - least)
                    widths[position] -= taken
                    excess -= taken
            if excess <= 0:
                return kept, widths
            if len(kept) == 1:
                return kept, {kept[0]: max(0, room)}
            # A column that may go, else the last one: a narrow terminal shows less, never a broken line.
            kept.remove(max(reversed(kept), key=lambda position: self.columns[position].drop))

    def _is_empty(self, position: int) -> bool:
        return all(not row[position].text and row[position].fraction is None for row in self.rows)

    def _natural(self, position: int) -> int:
        column = self.columns[position]
        widest = max([width(column.title), *(width(row[position].text) for row in self.rows)])
        if column.bar:
            return max(widest, column.most or 0)
        return min(widest, column.most or widest)

    def _cell(self, page: Page, column: Column, cell: Cell, cells: int) -> str:
        if column.bar and not cell.text:
            return page.bar(cell.fraction, cells, cell.style)
        shorten = cut_middle if column.middle else cut
        text = shorten(cell.text, cells, page.glyphs)
        padding = " " * (cells - width(text))
        painted = page.paint(text, cell.style)
        return padding + painted if column.align == "right" else painted + padding


def labelled(page: Page, pairs: Sequence[tuple[str, str]], indent: int = 0) -> list[str]:
    """Lines of a label and its text; labels share a column, texts wrap beside it."""
    room = max((width(label) for label, _text in pairs), default=0)
    start = indent + room + len(_GAP)
    lines = []
    for label, text in pairs:
        first, *rest = wrap(text, page.width - start)
        lines.append(" " * indent + page.paint(fit(label, room), "dim") + _GAP + first)
        lines += [" " * start + line for line in rest]
    return lines
