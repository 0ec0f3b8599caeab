"""Text in terminal cells: outside text made harmless, then measured, cut, fitted and wrapped.

A Chinese character takes two cells, a combining mark none; ``len`` is right for neither. Widths are
Rich's, which the screen draws with, so that both front ends agree. Rich's table costs 3 ms to import
(measured), its console ten times that.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from rich.cells import cell_len, get_character_cell_size

Align = Literal["left", "right"]

CLEAN_LIMIT = 2000
"""Characters of outside text that are ever shown in one piece."""

_INPUT_FACTOR = 8  # a shown character may stand behind a colour code; what is further away is not read


@dataclass(frozen=True, slots=True)
class Glyphs:
    """The few drawn characters; some terminals draw the first set two cells wide, hence the second."""

    ellipsis: str
    full: str
    empty: str
    dot: str
    rule: str


UNICODE = Glyphs(ellipsis="…", full="█", empty="░", dot="●", rule="─")
ASCII = Glyphs(ellipsis="...", full="#", empty=".", dot="*", rule="-")


def width(text: str) -> int:
    """Cells that the text takes."""
    return cell_len(text)


def cut(text: str, cells: int, glyphs: Glyphs = UNICODE) -> str:
    """The text in at most that many cells, with an ellipsis where something was taken away."""
    if width(text) <= cells:
        return text
    ellipsis = glyphs.ellipsis if width(glyphs.ellipsis) <= cells else ""
    return _head(text, cells - width(ellipsis)) + ellipsis


def cut_middle(text: str, cells: int, glyphs: Glyphs = UNICODE) -> str:
    """Like ``cut``, but both ends stay: of a path the end says most."""
    if width(text) <= cells:
        return text
    room = cells - width(glyphs.ellipsis)
    if room < 2:
        return cut(text, cells, glyphs)
    head = _head(text, room // 3)
    return head + glyphs.ellipsis + _tail(text, room - width(head))


def fit(text: str, cells: int, align: Align = "left", glyphs: Glyphs = UNICODE) -> str:
    """The text in exactly that many cells, cut or padded with spaces."""
    text = cut(text, cells, glyphs)
    padding = " " * (cells - width(text))
    return padding + text if align == "right" else text + padding


def _head(text: str, cells: int) -> str:
    taken = 0
    for position, character in enumerate(text):
        taken += get_character_cell_size(character)
        if taken > cells:
            return text[:position]
    return text


def _tail(text: str, cells: int) -> str:
    taken = 0
    for position in range(len(text) - 1, -1, -1):
        taken += get_character_cell_size(text[position])
        if taken > cells:
            return text[position + 1 :]
    return text


# Chinese breaks anywhere but before closing and after opening punctuation.
_CLOSING = frozenset("，。、；：？！）》」』”’】…,.;:?!)]}%")
_OPENING = frozenset("（《「『“‘【([{")
_PIECE = re.compile(
    r"\s+|[\u2e80-\u9fff\uf900-\ufaff\uff00-\uff60]|[^\s\u2e80-\u9fff\uf900-\ufaff\uff00-\uff60]+"
)


def wrap(text: str, cells: int) -> list[str]:
    """The text in lines of at most that many cells; words stay whole where one fits a line.

    Args:
        text: One paragraph without control characters.
        cells: At least 2, since a Chinese character needs two.
    """
    cells = max(cells, 2)
    lines: list[str] = []
    line = ""
    for unit in _units(text):
        if width(line) + width(unit.rstrip()) <= cells:
            line += unit
            continue
        if line:
            lines.append(line.rstrip())
        line = unit.lstrip()
        while width(line) > cells:
            head = _head(line, cells)
            lines.append(head)
            line = line[len(head) :]
    if line.strip() or not lines:
        lines.append(line.rstrip())
    return lines


def _units(text: str) -> Iterator[str]:
    """Pieces that must not be broken, each with the spaces after it."""
    unit = ""
    for piece in _PIECE.findall(text):
        glued = piece.isspace() or piece[0] in _CLOSING or (unit and unit[-1] in _OPENING)
        if unit and not glued:
            yield unit
            unit = ""
        unit += piece
    if unit:
        yield unit


_ESCAPES = re.compile(
    r"""
    (?: \x1b\[ | \x9b ) [0-?]{0,64} [ -/]{0,8} [@-~]                  # CSI: colour, cursor
    | (?: \x1b[\]PX^_] | [\x90\x98\x9d-\x9f] ) [^\x07\x1b\x80-\x9f]* (?: \x07 | \x1b\\ | \x9c )  # OSC, DCS
    | \x1b [ -/]{0,8} [0-~]?                                          # the rest, and what was left open
    """,
    re.VERBOSE,
)


def clean(text: str, limit: int = CLEAN_LIMIT) -> str:
    """Outside text (an argument, a file name, a log line) as one harmless line.

    Escape sequences, controls, bidirectional overrides, invisible format characters and lone
    surrogates (undecodable bytes of a file name) cannot move the cursor, hide or reorder anything
    afterwards. A line end, a tab or any other blank becomes a space; runs of spaces stay, since the
    indent of a traceback says something.

    Args:
        text: Anything.
        limit: Characters kept; more end in an ellipsis.
    """
    text = _ESCAPES.sub("", text[: limit * _INPUT_FACTOR])
    text = unicodedata.normalize("NFC", "".join(_harmless(character) for character in text))
    return text if len(text) <= limit else text[: limit - len(ASCII.ellipsis)] + ASCII.ellipsis


# Variation selectors, enclosing marks, flag letters and skin tones change the width of their neighbour.
_WIDTH_CHANGERS = re.compile(
    r"[\ufe00-\ufe0f\u20d0-\u20ff\U0001f1e6-\U0001f1ff\U0001f3fb-\U0001f3ff\U000e0100-\U000e01ef]"
)


def _harmless(character: str) -> str:
    if character.isascii():
        return character if character.isprintable() else " "
    if _WIDTH_CHANGERS.match(character):
        return ""
    category = unicodedata.category(character)
    if category in {"Cc", "Zs", "Zl", "Zp"}:
        return " "
    if category in {"Cs", "Co", "Cn"}:
        return "?"
    return "" if category == "Cf" else character
