"""The colours. Every one is named by its meaning; inks and frames take them from the theme by name."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from rich.style import Style
from textual.color import Color
from textual.theme import Theme

from tui.app.ink import Ink

DARK = Theme(
    name="llamaherd-dark",
    primary="#6cb6ff",
    secondary="#8fb8de",
    accent="#6cb6ff",
    foreground="#d3d9e3",
    background="#10141b",
    surface="#161b24",
    panel="#1d2430",
    success="#7fce8f",
    warning="#e6b65c",
    error="#f0757c",
    dark=True,
    variables={
        "herd-dim": "#8a94a6",
        "herd-label": "#71809a",
        "herd-frame": "#323c4b",
        "herd-track": "#323c4b",
        "herd-heat": "#5f9bd1",
        "herd-cursor": "#24344a",
        "footer-key-foreground": "#6cb6ff",
    },
)

LIGHT = Theme(
    name="llamaherd-light",
    primary="#0b62b8",
    secondary="#35689c",
    accent="#0b62b8",
    foreground="#1f2630",
    background="#f7f8fa",
    surface="#eef0f4",
    panel="#e4e8ee",
    success="#1b7f37",
    warning="#96610a",
    error="#b3262e",
    dark=False,
    variables={
        "herd-dim": "#5b6675",
        "herd-label": "#64748b",
        "herd-frame": "#c3cad4",
        "herd-track": "#c3cad4",
        "herd-heat": "#3d7ab5",
        "herd-cursor": "#d3e3f5",
        "footer-key-foreground": "#0b62b8",
    },
)

THEMES = (DARK, LIGHT)

_INKS: Mapping[Ink, tuple[str, bool]] = {
    "plain": ("foreground", False),
    "dim": ("herd-dim", False),
    "label": ("herd-label", False),
    "strong": ("foreground", True),
    "good": ("success", False),
    "warn": ("warning", False),
    "bad": ("error", True),
    "accent": ("primary", False),
    "track": ("herd-track", False),
    "reserved": ("herd-dim", False),
    "heat": ("herd-heat", False),
    "key": ("primary", True),
    "tag": ("background", True),
}
"""Ink to the name of its colour, and whether it is bold."""


@dataclass(frozen=True, slots=True)
class Colours:
    """What is laid over a panel's own style: the style of every ink, and of the row of the cursor.

    One table for all panels: a component class per ink would be computed for every panel, which took
    longer than everything else before the first frame.
    """

    inks: Mapping[Ink, Style]
    cursor: Style


@lru_cache(maxsize=4)
def colours_of(theme: str) -> Colours:
    """The colours of one of our themes."""
    named = next(known for known in THEMES if known.name == theme)
    colours = named.to_color_system().generate() | named.variables
    inks = {ink: Style(color=_rich(colours[name]), bold=bold) for ink, (name, bold) in _INKS.items()}
    inks["tag"] += Style(bgcolor=_rich(colours["warning"]))
    return Colours(inks, Style(bgcolor=_rich(colours["herd-cursor"]), bold=True))


def _rich(colour: str) -> str:
    return Color.parse(colour).hex6
