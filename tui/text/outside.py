"""Text from outside the program, made fit for one line of a report."""

from tui.facts.secrets import mask_text
from tui.text.cells import ASCII, CLEAN_LIMIT, clean

SHOWN_LIMIT = 200


def outside(text: str, limit: int = SHOWN_LIMIT) -> str:
    """An argument, a path, a name or a log line: harmless, secrets masked, runs of blanks as one.

    Secrets are masked before the text is cut, so that no half of one is left unrecognised.

    Args:
        text: Anything.
        limit: Characters kept.
    """
    line = " ".join(mask_text(clean(text, max(limit, CLEAN_LIMIT))).split())
    return line if len(line) <= limit else line[: limit - len(ASCII.ellipsis)] + ASCII.ellipsis
