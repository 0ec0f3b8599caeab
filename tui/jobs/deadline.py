"""Reads that may hang.

``environ`` and ``cmdline`` of a process whose memory lock is held inside a driver never answer. The
wait is killable but not interruptible, so the read gets a thread that is left behind.
"""

import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def within(seconds: float, read: Callable[[], T]) -> T | None:
    """What ``read`` gives, or ``None`` when it has not answered in time (or gave ``None``)."""
    answer: list[T] = []
    reader = threading.Thread(target=lambda: answer.append(read()), daemon=True)
    reader.start()
    reader.join(seconds)
    return answer[0] if answer else None
