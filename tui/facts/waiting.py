"""What a process of a run waits in, and why a run stands still."""

from dataclasses import dataclass
from typing import Literal

from tui.facts.job import MemberRole

StallCause = Literal["pipe", "stopped", "disk_wait", "disk_full", "data_workers", "collective", "unknown"]
"""``pipe``: its output goes to a pipe that nobody reads. ``stopped``: suspended by a signal. ``disk_wait``:
in the kernel, uninterruptible. ``collective``: every rank is busy and none goes on.
"""


@dataclass(frozen=True, slots=True)
class Wait:
    """A member of a run at one look. ``state`` is the letter of ``/proc/PID/stat``, ``wchan`` the kernel
    function it sleeps in. ``piped``: standard output or error is a pipe. ``busy``: it used CPU since the look
    before, ``None`` at the first.
    """

    pid: int
    role: MemberRole
    state: str
    wchan: str
    piped: bool
    busy: bool | None = None
