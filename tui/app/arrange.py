"""Where each panel of the overview stands: pure geometry, for every size from 60x18 and any number of cards.

A panel is asked for by its least, its ideal and its greatest height (frame included). What has no room
is left out by rank; what is left over goes to those that can use it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

LEAST_WIDTH, LEAST_HEIGHT = 60, 18
WIDE = 120
"""Columns from which two columns of panels stand side by side."""


@dataclass(frozen=True, slots=True)
class Box:
    """Cells of the terminal."""

    x: int
    y: int
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class Want:
    """How much height a panel asks for; ``rank`` 0 is the last to be left out.

    ``unit``: it can only use so many more lines at a time (one more for every card). ``extra``: it comes
    only when everybody else has what is ideal.
    """

    name: str
    least: int
    ideal: int
    most: int
    rank: int
    unit: int = 1
    extra: bool = False


@dataclass(frozen=True, slots=True)
class Contents:
    """How much there is to show."""

    gpus: int = 1
    owners: int = 2
    jobs: int = 2
    findings: int = 1


def arrange(width: int, height: int, contents: Contents) -> Mapping[str, Box]:
    """Boxes by panel name; ``{}`` when the terminal is too small for anything but a sentence."""
    if width < LEAST_WIDTH or height < LEAST_HEIGHT:
        return {}
    boxes = {"head": Box(0, 0, width, 1), "verdict": Box(0, 1, width, 1)}
    boxes["host"] = Box(0, height - 2, width, 1)
    boxes["foot"] = Box(0, height - 1, width, 1)
    room = height - 4
    frame = frame_lines(height)
    wants = _wants(contents, frame)
    if width < WIDE:
        return boxes | _stack(0, 2, width, room, [wants[name] for name in _ORDER])
    left = width // 2
    boxes |= _stack(0, 2, left, room, [wants["gpus"], wants["training"]])
    boxes |= _stack(left, 2, width - left, room, [wants[name] for name in _RIGHT])
    return boxes


_ORDER = ("gpus", "training", "owners", "jobs", "findings", "tail")
_RIGHT = ("owners", "jobs", "findings", "tail")


def frame_lines(height: int) -> int:
    """Lines that a frame takes: a whole box, or only a rule above where lines are dear."""
    return 2 if height >= 32 else 1


def _wants(contents: Contents, frame: int) -> Mapping[str, Want]:
    cards = max(1, contents.gpus)
    no_cards = contents.gpus == 0
    tall = 12 if cards == 1 else 8 if cards == 2 else 5 if cards <= 4 else 2
    return {
        "gpus": Want(
            "gpus",
            frame + min(cards, 8) + (1 if no_cards else 0),
            frame + (2 if no_cards else cards * 2),
            frame + (4 if no_cards else cards * tall),
            0,
            unit=cards,
        ),
        "training": Want(
            "training", frame + 4, frame + 5, frame + 17 if contents.gpus > 2 else frame + 20, 1
        ),
        "owners": Want(
            "owners", frame + 2, frame + 1 + min(contents.owners, 6), frame + 1 + contents.owners, 2
        ),
        "jobs": Want(
            "jobs", frame + 1, frame + min(max(contents.jobs, 1), 4), frame + max(contents.jobs, 1), 3
        ),
        "findings": Want("findings", frame + 1, frame + 2, frame + 3 * max(contents.findings, 1), 4),
        "tail": Want("tail", frame + 4, frame + 5, 200, 5, extra=True),
    }


def _stack(x: int, y: int, width: int, room: int, wants: Sequence[Want]) -> dict[str, Box]:
    heights = share(room, wants)
    boxes: dict[str, Box] = {}
    for want in wants:
        if height := heights.get(want.name, 0):
            boxes[want.name] = Box(x, y, width, height)
            y += height
    return boxes


def share(room: int, wants: Sequence[Want]) -> Mapping[str, int]:
    """Heights by name that add up to ``room`` (when anything fits at all).

    First everybody's least, the last rank left out until that fits; then the ideals, in the order of
    rank; then the extras; then up to the most; what nobody can use goes to the last panel.
    """
    ranked = sorted(wants, key=lambda want: want.rank)
    kept = [want for want in ranked if not want.extra]
    left_out = []
    while kept and sum(want.least for want in kept) > room:
        left_out.append(kept.pop())
    for want in reversed(left_out):  # a lesser one may fit where a greater did not
        if kept and sum(other.least for other in kept) + want.least <= room:
            kept.append(want)
    heights = {want.name: want.least for want in kept}
    _grow(heights, kept, room, "ideal")
    for want in ranked:
        if want.extra and kept and room - sum(heights.values()) >= want.least:
            heights[want.name] = want.least
            kept.append(want)
    _grow(heights, kept, room, "most")
    if kept:
        lowest = [want for want in wants if want.name in heights][-1]
        heights[lowest.name] += room - sum(heights.values())
    return heights


def _grow(heights: dict[str, int], wants: Sequence[Want], room: int, goal: Literal["ideal", "most"]) -> None:
    for want in wants:
        wanted = (want.ideal if goal == "ideal" else want.most) - heights[want.name]
        step = max(0, min(room - sum(heights.values()), wanted))
        heights[want.name] += step - step % want.unit
