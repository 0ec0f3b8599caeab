"""Words that the first frame does not need: their modules are imported when something is to be said.

Together they take longer to import than everything else of this package.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tui.facts.finding import Finding
    from tui.facts.machine import DriverError
    from tui.facts.training import EtaWorking, Failure


def finding_text(finding: Finding) -> tuple[str, str]:
    """What was found, and what to do."""
    from tui.text.findings import finding_text

    return finding_text(finding)


def driver_text(error: DriverError) -> tuple[str, str]:
    """Why no GPU can be read, and what to do."""
    from tui.text.sentences import driver_text

    return driver_text(error)


def failure_text(failure: Failure) -> str:
    """What went wrong, and where."""
    from tui.text.sentences import failure_text

    return failure_text(failure)


def eta_working_text(working: EtaWorking, eta: float | None) -> str:
    """The sum behind a time left."""
    from tui.text.job_report import eta_working_text

    return eta_working_text(working, eta)


@lru_cache(maxsize=64)
def short_gpu_name(name: str) -> str:
    """A card's name without its maker."""
    from tui.text.gpu_report import short_gpu_name

    return short_gpu_name(name)


@lru_cache(maxsize=512)
def command_text(command: tuple[str, ...]) -> str:
    """A command line for showing. Masking fifty of them takes half of a redraw, and they never change."""
    from tui.text.gpu_report import command_text

    return command_text(command)
