"""What every subcommand needs: the settings, and where job folders lie."""

import argparse
import os
from dataclasses import dataclass, replace
from pathlib import Path

from tui.operate.places import Places
from tui.operate.settings import Settings, load_settings
from tui.text.translate import set_language


@dataclass(frozen=True, slots=True)
class Context:
    """Settings with the flags applied, and the places of job folders."""

    settings: Settings
    places: Places

    @classmethod
    def of(cls, arguments: argparse.Namespace) -> "Context":
        """Read the settings for this command line.

        Raises:
            LlamaherdError: ``settings_invalid``.
        """
        settings = load_settings(None, os.environ)
        if arguments.lang is None and settings.language is not None:
            set_language(settings.language)
        if getattr(arguments, "readonly", False):
            settings = replace(settings, readonly=True)
        return cls(settings, Places.of(settings, os.environ))

    @property
    def roots(self) -> tuple[Path, ...]:
        """Where job folders are read."""
        return self.places.roots

    def write_root(self) -> Path:
        """Where a new job's folder goes.

        Raises:
            LlamaherdError: ``state_not_writable``.
        """
        return self.places.write_root()
