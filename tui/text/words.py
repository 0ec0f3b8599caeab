"""What a finding's sentence is made of."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tui.facts.finding import EvidenceValue
from tui.text import units


@dataclass(frozen=True, slots=True)
class Words:
    """The sentence of a finding, what to do about it (or nothing), and how its evidence is shown."""

    message: str
    advice: str = ""
    shown_as: Mapping[str, Callable[[EvidenceValue], str]] = field(default_factory=dict)


def as_size(value: EvidenceValue) -> str:
    """Bytes with their unit."""
    return units.size(int(value)) if isinstance(value, int | float) else units.UNKNOWN


def as_duration(value: EvidenceValue) -> str:
    """Seconds as a duration."""
    return units.duration(value) if isinstance(value, int | float) else units.UNKNOWN
