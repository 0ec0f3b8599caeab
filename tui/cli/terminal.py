"""What standard output can show."""

import os
import shutil
import sys
from dataclasses import dataclass

_PIPE_WIDTH = 100


@dataclass(frozen=True, slots=True)
class Terminal:
    """``width`` in cells; ``colour`` and ``ascii`` as the reports take them."""

    width: int
    colour: bool
    ascii: bool
    is_terminal: bool

    @classmethod
    def of_stdout(cls, *, ascii: bool = False) -> "Terminal":
        """Judge standard output, the locale and the usual wishes (``NO_COLOR``, ``TERM=dumb``)."""
        is_terminal = sys.stdout.isatty()
        colour = is_terminal and "NO_COLOR" not in os.environ and os.environ.get("TERM", "dumb") != "dumb"
        # Python 3.10 gives the 0 columns of a terminal that nobody has told its size.
        width = shutil.get_terminal_size((_PIPE_WIDTH, 24)).columns or _PIPE_WIDTH
        encoding = (sys.stdout.encoding or "ascii").lower().replace("-", "")
        return cls(width if is_terminal else _PIPE_WIDTH, colour, ascii or encoding != "utf8", is_terminal)
