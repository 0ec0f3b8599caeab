"""Waiting for a condition, with a deadline; a test never sleeps for a guess."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def wait_until(condition: Callable[[], T | bool | None], seconds: float, what: str) -> T:
    """The first truthy value of ``condition``, asked every 20 ms.

    Raises:
        AssertionError: ``what`` did not come true within ``seconds``.
    """
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value  # type: ignore[return-value]  # True is the T of a plain predicate
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(0.02)
