"""How the command line asks for the screen."""

import argparse
from dataclasses import dataclass

from tui.operate.settings import Settings
from tui.text.translate import Language, language


@dataclass(frozen=True, slots=True)
class ScreenWishes:
    """The flags that stand before any subcommand, and the settings, in which ``readonly`` is included.
    ``language`` is decided already.
    """

    demo: bool
    settings: Settings
    language: Language
    ascii: bool
    mouse: bool

    @classmethod
    def of(cls, arguments: argparse.Namespace, settings: Settings) -> "ScreenWishes":
        """The wishes of a command line."""
        return cls(arguments.demo, settings, language(), arguments.ascii, not arguments.no_mouse)
