"""Why a value is unknown.

A value is a number, or ``None`` together with a reason in the ``unknown`` mapping of the object that
holds it. Zero is only ever a measured zero.
"""

from collections.abc import Mapping
from typing import Literal

UnknownReason = Literal[
    "not_supported",  # the device or kernel has no such reading
    "no_permission",  # the reading exists, this user may not see it
    "not_visible",  # it lies outside this container (for example a process with a host PID)
    "driver_without_figure",  # the driver names the process and gives no size for it
    "driver_missing",  # no NVIDIA library or kernel driver
    "driver_error",  # the call failed; the driver block says how
    "gpu_lost",  # the card fell off the bus or needs a reset
    "timed_out",  # the source did not answer within its deadline
    "out_of_range",  # the source answered with an impossible figure
    "not_reported",  # the file that would hold it exists and does not say it
    "missing_file",  # the file that would hold it is not there
    "unreadable_file",  # the file is there and cannot be understood
    "not_yet",  # it needs a second sample, or the run has not come that far
    "process_gone",  # the process ended while it was being read
]

Unknown = Mapping[str, UnknownReason]
"""Field name to the reason why that field is ``None``."""
