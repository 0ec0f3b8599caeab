"""How many steps a training will take, and how long its samples are."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from tui.facts.unknown import Unknown

StepReason = Literal[
    "packing",  # several rows become one sample; how many is known only after tokenizing
    "rows_dropped",  # rows without an answer are dropped, and the split decides on which side
    "rows_not_checked",  # too many rows to look into each
    "interleaved",  # drawn from several data sets until one, or all, are used up
    "early_stopping",  # may end before
    "rows_unknown",
    "world_unknown",
    "version_unknown",  # rounding changed with transformers 4.52
    "streaming",  # the number of rows is not known before the end
    "auto_batch",  # auto_find_batch_size may halve the batch
    "stage",  # this stage counts its steps in its own way
    "settings_invalid",  # LLaMA-Factory would refuse these settings
]


@dataclass(frozen=True, slots=True)
class DatasetRows:
    """The rows of one data set. ``usable`` is fewer where rows would be dropped, ``None`` where they were
    not looked into; ``rows`` is after ``num_samples`` and ``max_samples``.
    """

    name: str
    rows: int | None
    usable: int | None = None
    path: str | None = None
    unknown: Unknown = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Bound:
    """A whole number that lies between two."""

    low: int
    high: int

    @property
    def exact(self) -> bool:
        """Whether there is only one number in it."""
        return self.low == self.high


@dataclass(frozen=True, slots=True)
class StepCount:
    """The step count with its working.

    ``rows`` are those of all data sets; ``validation`` are split off them; ``samples`` are left to train
    on; ``batches`` is of each card; ``per_epoch`` and ``total`` are optimizer steps. ``rounds_up``: the
    last, incomplete group of batches counts as a step (transformers 4.52 and later); ``None``: unknown.
    ``effective_batch`` is ``batch x accumulation x world``.
    """

    batch: int
    accumulation: int
    world: int | None
    epochs: float
    max_steps: int | None = None
    datasets: tuple[DatasetRows, ...] = ()
    rows: int | None = None
    validation: int | None = None
    samples: Bound | None = None
    batches: Bound | None = None
    per_epoch: Bound | None = None
    total: Bound | None = None
    rounds_up: bool | None = None
    effective_batch: int | None = None
    reasons: tuple[StepReason, ...] = ()
    unknown: Unknown = field(default_factory=dict)


LengthProblem = Literal[
    "tokenizer",  # the tokenizer or the template cannot be loaded
    "dataset",  # the data cannot be read
    "dataset_too_large",  # a JSON list of that size cannot be read piece by piece
    "stage",  # this stage has no single length for a sample
    "timed_out",
    "cancelled",
    "environment",  # the training environment could not run the probe
    "no_samples",
]


@dataclass(frozen=True, slots=True)
class LengthProgress:
    """How far a measurement is: samples measured so far, and seconds since it began."""

    samples: int
    seconds: float


@dataclass(frozen=True, slots=True)
class TokenLengths:
    """Lengths of the samples in tokens, with the template, before anything is cut.

    ``counts`` maps a length to how many samples have it. ``complete``: every sample was measured, else
    the first ones. ``dropped`` rows have no answer. ``problem`` says why nothing, or not all, was measured;
    ``detail`` is the other program's own word on it.
    """

    counts: Mapping[int, int] = field(default_factory=dict)
    complete: bool = False
    dropped: int = 0
    seconds: float = 0.0
    problem: LengthProblem | None = None
    detail: str = ""

    @property
    def samples(self) -> int:
        """How many samples were measured."""
        return sum(self.counts.values())


@dataclass(frozen=True, slots=True)
class LengthSummary:
    """Measured lengths in a few numbers.

    ``percentiles`` maps 50, 90, 95 and 99 to the length that this share of samples does not exceed. ``cut``
    maps a limit to how many samples are longer; the training's own ``cutoff`` is one of them. ``padding``
    is the share of positions that padding fills at ``batch`` samples a batch, padded to a multiple of
    ``padded_to``.
    """

    samples: int
    complete: bool
    longest: int
    percentiles: Mapping[int, int]
    cut: Mapping[int, int]
    cutoff: int
    batch: int
    padding: float
    padded_to: int
    dropped: int = 0
