"""How the screen was asked for, and whether this terminal can show it at all."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tui.text.translate import Language

if TYPE_CHECKING:
    from tui.operate.settings import Settings


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line says. ``interval`` is seconds between two pictures; ``language`` was
    decided already; ``settings`` are the person's own, ``None`` the defaults.
    """

    demo: bool = False
    readonly: bool = False
    language: Language = "en"
    ascii: bool = False
    mouse: bool = True
    interval: float = 1.0
    frame_diff: bool = True
    settings: "Settings | None" = None


def terminal_missing(environ: Mapping[str, str]) -> bool:
    """Whether there is no terminal that a screen can be drawn on; asked before Textual is imported."""
    if environ.get("TERM", "") in {"dumb", "unknown"}:
        return True
    try:
        # Textual reads keys from stdin and draws on stderr.
        return not all(os.isatty(stream.fileno()) for stream in (sys.stdin, sys.stdout, sys.stderr))
    except (OSError, ValueError, AttributeError):
        return True  # a stream was closed or replaced: certainly no terminal


def prefers_ascii(environ: Mapping[str, str], encoding: str | None) -> bool:
    """Whether only ASCII is safe: the terminal's stream cannot encode more, or it is the Linux console."""
    name = (encoding or "").lower().replace("-", "").replace("_", "")
    return name not in {"utf8", "utf", "gb18030"} or environ.get("TERM") == "linux"
