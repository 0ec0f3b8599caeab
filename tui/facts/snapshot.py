"""One picture of everything, numbered, with an age per source."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tui.facts.finding import Finding
from tui.facts.job import Job
from tui.facts.machine import Driver, Gpu, Host

STATUS_SCHEMA = 1
"""Schema number of the ``status`` document."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The ``status`` document. ``taken_at`` is epoch seconds; ``ages`` is seconds per source."""

    number: int
    taken_at: float
    driver: Driver
    gpus: tuple[Gpu, ...]
    host: Host
    jobs: tuple[Job, ...]
    foreign: tuple[Job, ...]
    findings: tuple[Finding, ...]
    ages: Mapping[str, float] = field(default_factory=dict)
    schema: int = STATUS_SCHEMA
