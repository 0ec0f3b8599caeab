"""Log bytes as plain text: no control sequences, no control characters, any encoding survived."""

import re

_SEQUENCE = re.compile(
    r"\x1b(?:\[[0-?]{0,32}[ -/]{0,8}[@-~]?|\][^\x07\x1b]{0,512}(?:\x07|\x1b\\)?|[@-Z\\^_])?"
)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff]")


def plain(raw: bytes) -> str:
    """The text of one fragment; tabs stay."""
    text = raw.decode(errors="replace")
    if "\x1b" in text:
        text = _SEQUENCE.sub("", text)
    return text if text.isprintable() else _CONTROL.sub("", text)
