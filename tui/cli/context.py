"""What every subcommand needs: the settings, and where job folders lie."""

import argparse
import os
from dataclasses import dataclass, replace
from pathlib import Path

from tui.jobs.roots import state_roots, writing_root
from tui.operate.settings import Settings, load_settings
from tui.text.translate import set_language


@dataclass(frozen=True, slots=True)
class Context:
    """Settings with the flags applied, and the state roots, the first usable one for new jobs.

    ``chosen_root`` is the one that the environment or the settings name.
    """

    settings: Settings
    roots: tuple[Path, ...]
    chosen_root: Path | None = None

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
        roots = state_roots(os.environ)
        named = os.environ.get("LLAMAHERD_HOME")
        if settings.state_dir is not None and not named:
            roots = tuple(dict.fromkeys((settings.state_dir, *roots)))
        return cls(settings, roots, roots[0] if named or settings.state_dir else None)

    def write_root(self) -> Path:
        """Where a new job's folder goes. A place that was named is never replaced by another in silence.

        Raises:
            LlamaherdError: ``state_not_writable``.
        """
        return writing_root((self.chosen_root,) if self.chosen_root else self.roots)
