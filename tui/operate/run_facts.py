"""What is known of a run beside what is shown of it: the material of its findings and curves."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tui.facts.explained import SettingName
from tui.facts.training import OutputFacts, RunLog, Schedule


@dataclass(frozen=True, slots=True)
class RunFacts:
    """``config``: the values of its training configuration, ``None`` where it is not known."""

    log: RunLog = field(default_factory=RunLog)
    output: OutputFacts | None = None
    schedule: Schedule | None = None
    config: Mapping[str, object] | None = None
    deepspeed: Mapping[SettingName, str | int | None] = field(default_factory=dict)
