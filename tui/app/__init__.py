"""The screen. The only importer of Textual, which is loaded when the screen opens and not before."""

import gc
import os
import sys

from tui.app.options import Options, terminal_missing
from tui.facts.errors import EXIT_USAGE
from tui.text.translate import set_language, tr

__all__ = ["Options", "run"]


def run(options: Options) -> int:
    """Open the screen and stay until it is left; the exit code.

    Without a terminal: one sentence on stderr and exit code 2, decided before anything is imported.
    """
    set_language(options.language)
    if terminal_missing(os.environ):
        sentence = tr("The screen needs a terminal (TERM is not dumb). `llamaherd status` works anywhere.")
        sys.stderr.write(f"llamaherd: {sentence}\n")
        return EXIT_USAGE
    # Collecting garbage while importing finds none and takes a tenth of the time to the first frame;
    # the app turns it on again once that is painted.
    gc.disable()
    from tui.app.session import open_screen

    return open_screen(options)
