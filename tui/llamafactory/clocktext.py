"""Clock and duration text as LLaMA-Factory, transformers and tqdm print it.

``str(timedelta)`` beyond a day is ``1 day, 2:03:04``; tqdm keeps counting hours (``25:00:00``) and leaves
them out below one (``01:07``); transformers' metric blocks add hundredths (``0:02:39.36``).
"""

import re
import time

_DURATION = re.compile(
    r"(?:(?P<days>-?\d{1,6}) days?, )?(?:(?P<hours>\d{1,6}):)?"
    r"(?P<minutes>\d{1,2}):(?P<seconds>\d{2}(?:\.\d{1,6})?)"
)
_CLOCK = re.compile(r"(\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2})(?:,(\d{3}))?")


def duration(text: str) -> float | None:
    """Seconds of a duration text, ``None`` if it is none."""
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        return None
    days, hours = int(match["days"] or 0), int(match["hours"] or 0)
    return days * 86400.0 + hours * 3600 + int(match["minutes"]) * 60 + float(match["seconds"])


def clock(text: str) -> float | None:
    """Epoch seconds of the first date and time in ``text``, read in this machine's zone."""
    match = _CLOCK.search(text)
    if match is None:
        return None
    try:
        seconds = time.mktime(time.strptime(match[1], "%Y-%m-%d %H:%M:%S"))
    except (ValueError, OverflowError):
        return None
    return seconds + int(match[2] or 0) / 1000
