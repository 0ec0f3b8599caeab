"""How the command line asks for the screen."""

import argparse
from dataclasses import dataclass

from tui.text.translate import Language, language


@dataclass(frozen=True, slots=True)
class ScreenWishes:
    """The flags that stand before any subcommand. ``language`` is decided already."""

    demo: bool
    readonly: bool
    language: Language
    ascii: bool
    mouse: bool

    @classmethod
    def of(cls, arguments: argparse.Namespace, *, readonly: bool) -> "ScreenWishes":
        """The wishes of a command line; ``readonly`` may also come from the settings."""
        return cls(arguments.demo, readonly, language(), arguments.ascii, not arguments.no_mouse)
