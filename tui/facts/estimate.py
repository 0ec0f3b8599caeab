"""Everything that can be estimated of a training before it runs."""

from dataclasses import dataclass

from tui.facts.memory import Calibration, FitCheck, MemoryEstimate
from tui.facts.steps import LengthSummary, StepCount, TokenLengths


@dataclass(frozen=True, slots=True)
class Estimate:
    """``model`` is the model's name, ``parameters`` how many numbers it holds, ``file_bytes`` its size on
    the disk. ``missing`` and ``truncated`` are weight files that stand in the way. ``checks`` are the three
    questions whether it fits. ``summary`` is of ``lengths``. ``measured`` are trainings of this model that
    ran, with what was estimated for them. ``card`` is the card that was asked about; ``card_free`` is what
    is free on the fullest of the chosen ones.
    """

    steps: StepCount
    memory: MemoryEstimate
    checks: tuple[FitCheck, ...] = ()
    lengths: TokenLengths | None = None
    summary: LengthSummary | None = None
    measured: tuple[Calibration, ...] = ()
    model: str | None = None
    parameters: int | None = None
    file_bytes: int | None = None
    missing: tuple[str, ...] = ()
    truncated: tuple[str, ...] = ()
    card: str | None = None
    card_total: int | None = None
    card_free: int | None = None
