"""Numbers as people read them. Formats are fixed, without the locale's separators, so that columns
stay still; units stay Latin in every language. ``None`` is shown as ``-``, never as zero.
"""

import math
from datetime import datetime, timezone, tzinfo

from tui.facts.unknown import UnknownReason
from tui.text.translate import tr, tr_noop

UNKNOWN = "-"

_KIB = 1024
_MINUTE, _HOUR, _DAY = 60, 3600, 86400


def size(count: int | None) -> str:
    """Bytes as ``512 B``, ``430 MiB``, ``21.4 GiB``, ``1.8 TiB``."""
    if count is None:
        return UNKNOWN
    for power, unit in ((4, "TiB"), (3, "GiB")):
        if abs(count) >= _KIB**power:
            return f"{count / _KIB**power:.1f} {unit}"
    for power, unit in ((2, "MiB"), (1, "KiB")):
        if abs(count) >= _KIB**power:
            return f"{count / _KIB**power:.0f} {unit}"
    return f"{count} B"


def sizes(part: int | None, whole: int | None) -> str:
    """A part of a whole in one unit: ``21.4/24.0 GiB``; a part too small for it is ``<0.1``, not zero."""
    if whole is None or part is None:
        return f"{size(part)}/{size(whole)}"
    power, unit = next(
        ((power, unit) for power, unit in ((4, "TiB"), (3, "GiB")) if whole >= _KIB**power), (2, "MiB")
    )
    digits = 1 if power > 2 else 0
    smallest = 10**-digits
    shown = (
        f"{part / _KIB**power:.{digits}f}" if not 0 < part / _KIB**power < smallest / 2 else f"<{smallest}"
    )
    return f"{shown}/{whole / _KIB**power:.{digits}f} {unit}"


def duration(seconds: float | None) -> str:
    """``0:31``, ``17:06``, ``1:02:03``, ``1 d 2:03``."""
    if seconds is None or not math.isfinite(seconds):
        return UNKNOWN
    whole = max(0, round(seconds))
    days, rest = divmod(whole, _DAY)
    hours, rest = divmod(rest, _HOUR)
    minutes, left = divmod(rest, _MINUTE)
    if days:
        return f"{days} d {hours}:{minutes:02}"
    return f"{hours}:{minutes:02}:{left:02}" if hours else f"{minutes}:{left:02}"


def seconds_each(seconds: float | None) -> str:
    """A short time with three digits: ``0.584 s``, ``8.00 s``, ``31.4 s``, ``124 s``."""
    if seconds is None or not math.isfinite(seconds):
        return UNKNOWN
    digits = 3 if seconds < 1 else 2 if seconds < 10 else 1 if seconds < 100 else 0
    return f"{seconds:.{digits}f} s"


def seconds_about(seconds: float | None) -> str:
    """A time that is known by a few measurements only: ``0.4 s``, ``4 s``, ``31 s``."""
    if seconds is None or not math.isfinite(seconds):
        return UNKNOWN
    return f"{seconds:.1f} s" if seconds < 1 else f"{seconds:.0f} s"


def rate(seconds_per_step: float | None) -> str:
    """As tqdm does: ``3.62 s/it``, and ``1.71 it/s`` for steps shorter than a second."""
    if seconds_per_step is None or not math.isfinite(seconds_per_step) or seconds_per_step <= 0:
        return UNKNOWN
    if seconds_per_step >= 1:
        return f"{seconds_each(seconds_per_step)}/it"
    per_second = 1 / seconds_per_step
    return f"{per_second:.2f} it/s" if per_second < 100 else f"{per_second:.0f} it/s"


def percent(fraction: float | None) -> str:
    """``43%``; 0% and 100% are only ever the exact values, what is near them is ``<1%`` or ``>99%``."""
    if fraction is None or not math.isfinite(fraction):
        return UNKNOWN
    if 0 < fraction < 0.005:
        return "<1%"
    if 0.995 <= fraction < 1:
        return ">99%"
    return f"{fraction * 100:.0f}%"


def watts(power: float | None, limit: float | None = None) -> str:
    """``287 W``, with a limit ``287/450 W``."""
    if power is None or limit is None:
        return UNKNOWN if power is None else f"{power:.0f} W"
    return f"{power:.0f}/{limit:.0f} W"


def temperature(celsius: float | None) -> str:
    """``64C``, as nvidia-smi writes it; the degree sign is two cells wide in some terminals."""
    return UNKNOWN if celsius is None else f"{celsius:.0f}C"


def number(value: float | None, digits: int = 4) -> str:
    """A plain figure (a loss, an epoch); ``nan`` and ``inf`` are shown as logged."""
    if value is None:
        return UNKNOWN
    if not math.isfinite(value):
        return str(value)
    small_or_large = value != 0 and not 1e-4 <= abs(value) < 1e6
    return f"{value:.3e}" if small_or_large else f"{value:.{digits}f}"


def cpus(count: float | None) -> str:
    """A number of CPUs, which may be fractional: ``16``, ``0.5``, ``6.2``."""
    return UNKNOWN if count is None else f"{count:.1f}".removesuffix(".0")


def clock(at: float | None, now: float, zone: tzinfo | None = None) -> str:
    """A moment in the container's zone (or ``zone``), as short as today allows.

    Args:
        at: Epoch seconds.
        now: Epoch seconds; on the same day only the time is shown, in the same year no year.
        zone: For tests; ``None`` is the zone of this machine.
    """
    if at is None:
        return UNKNOWN
    then, today = _local(at, zone), _local(now, zone)
    if then.date() == today.date():
        return f"{then:%H:%M}"
    return f"{then:%m-%d %H:%M}" if then.year == today.year else f"{then:%Y-%m-%d %H:%M}"


def moment(at: float, zone: tzinfo | None = None) -> str:
    """A moment in full, with its offset from UTC: ``2026-11-29 17:04:05 +0800``."""
    return f"{_local(at, zone):%Y-%m-%d %H:%M:%S %z}"


def _local(at: float, zone: tzinfo | None) -> datetime:
    return datetime.fromtimestamp(at, timezone.utc).astimezone(zone)


def age(seconds: float | None) -> str:
    """``3 s ago``, ``5 min ago``, ``2 h ago``, ``4 d ago``."""
    if seconds is None or not math.isfinite(seconds):
        return UNKNOWN
    if seconds < 2 * _MINUTE:
        return tr("{count} s ago", count=max(0, round(seconds)))
    if seconds < 2 * _HOUR:
        return tr("{count} min ago", count=round(seconds / _MINUTE))
    if seconds < 2 * _DAY:
        return tr("{count} h ago", count=round(seconds / _HOUR))
    return tr("{count} d ago", count=round(seconds / _DAY))


REASONS: dict[UnknownReason, str] = {
    "not_supported": tr_noop("not supported here"),
    "no_permission": tr_noop("no permission to read it"),
    "not_visible": tr_noop("not visible from this container"),
    "driver_without_figure": tr_noop("the driver gives no size for it"),
    "driver_missing": tr_noop("no NVIDIA driver"),
    "driver_error": tr_noop("the driver reported an error"),
    "gpu_lost": tr_noop("the card does not answer any more"),
    "timed_out": tr_noop("no answer in time"),
    "out_of_range": tr_noop("the figure read is impossible"),
    "not_reported": tr_noop("not reported"),
    "missing_file": tr_noop("the file for it is missing"),
    "unreadable_file": tr_noop("the file for it cannot be understood"),
    "not_yet": tr_noop("not known yet"),
    "process_gone": tr_noop("the process has ended"),
}


def reason(code: UnknownReason) -> str:
    """Why a value is unknown, as the end of a sentence."""
    return tr(REASONS[code])
