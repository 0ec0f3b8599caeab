"""A finding: a code with its evidence. The sentence for it lives in the words layer."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Level = Literal["info", "advice", "warning", "danger"]
EvidenceValue = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Action:
    """Something a person can do about a finding; ``code`` names a command of this program.

    A preflight also has ``set``: start with these ``key=value`` words; ``environment``: with these
    variables; and ``dry_run``: a command line that only shows what an installation would change.
    """

    code: str
    arguments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Finding:
    """``subject`` is what it is about: a job id, a GPU uuid, a path, a config key, or ``""``.

    ``blocks``: a start must be refused because of it.
    """

    code: str
    level: Level
    subject: str = ""
    evidence: Mapping[str, EvidenceValue] = field(default_factory=dict)
    actions: tuple[Action, ...] = ()
    blocks: bool = False
