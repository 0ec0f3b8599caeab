"""A console log as lines for a person: bars collapsed to their last state, controls removed.

tqdm writes carriage returns for hours and a newline at the end, so what is kept of a line is what
stands after its last carriage return, as a terminal would show it.
"""

import codecs

from tui.facts.secrets import mask_text
from tui.text.cells import clean

LINE_LIMIT = 1 << 16
"""Characters of one line that are kept: a dump of token ids may be megabytes long."""


class LogLines:
    """Turns bytes, in any pieces, into clean finished lines and the current unfinished one."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._pending = ""

    @property
    def unfinished(self) -> str:
        """What the line that is being written shows now, usually a bar."""
        return _shown(self._pending)

    def feed(self, data: bytes) -> list[str]:
        """The lines that ``data`` finishes."""
        *finished, rest = (self._pending + self._decoder.decode(data)).split("\n")
        # Hours of bars are one physical line: keep its newest state only, and never without bound.
        head, _, tail = rest.rpartition("\r")
        self._pending = (f"{_last_state(head)}\r{tail}" if head else rest)[-2 * LINE_LIMIT :]
        return [_shown(line) for line in finished]


def _last_state(text: str) -> str:
    # A carriage return alone moves the cursor and shows nothing, so an empty state is not a state.
    return next((part for part in reversed(text.split("\r")) if part), "")


def _shown(line: str) -> str:
    return mask_text(clean(_last_state(line), LINE_LIMIT))
