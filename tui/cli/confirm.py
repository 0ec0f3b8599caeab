"""The question before a deed."""

import sys
from collections.abc import Sequence

from tui.facts.errors import EXIT_REFUSED, LlamaherdError
from tui.text.translate import tr

_YES = ("y", "yes", "是")


def confirm(subject: str, lines: Sequence[str], question: str) -> None:
    """Say ``lines``, ask, and return if the answer is yes.

    Raises:
        LlamaherdError: ``confirm_needed`` without a terminal to ask at, ``not_confirmed``.
    """
    if not sys.stdin.isatty():
        raise LlamaherdError("confirm_needed", exit_code=EXIT_REFUSED, job=subject)
    sys.stderr.write("".join(f"{line}\n" for line in lines) + question + " " + tr("[y/N]") + " ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in _YES:
        raise LlamaherdError("not_confirmed", exit_code=EXIT_REFUSED, job=subject)
