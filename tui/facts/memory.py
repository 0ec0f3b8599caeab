"""How much memory a training will need, part by part."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from tui.facts.unknown import Unknown

PartName = Literal[
    "weights",
    "reference",
    "adapter",
    "gradients",
    "optimizer",
    "activations",
    "logits",
    "casts",
    "gathered",
    "framework",
]
"""``reference``: the frozen copy that preference training compares with. ``casts``: copies of weights in
the type that is calculated in. ``gathered``: parameters fetched from the other cards, and buffers.
"""

Moment = Literal["load", "layers", "logits", "optimizer", "evaluation"]
"""When the most memory is in use: the weights just loaded, a layer's backward pass, the loss, the
optimizer's step, an evaluation.
"""

MemoryReason = Literal[
    "lengths_unknown",  # samples may be shorter than the limit
    "lengths_vary",  # batches of different length leave gaps in the allocator's cache
    "context_size",  # the driver's context differs with card and version
    "communication",  # buffers of NCCL
    "optimizer_unknown",
    "optimizer_paged",
    "optimizer_temporaries",
    "quantization_overhead",
    "counted_from_config",
    "files_incomplete",
    "architecture_unknown",
    "multimodal",
    "experts",
    "gradient_precision",
    "gather_size",
    "stage_not_modelled",
    "liger_unsupported",
    "unsloth",
    "sharding_unknown",
    "world_unknown",
    "kernels_vary",
    "vocabulary_resized",
    "model_absent",
]


@dataclass(frozen=True, slots=True)
class ByteRange:
    """Bytes between two."""

    low: int
    high: int

    def __add__(self, other: "ByteRange") -> "ByteRange":
        return ByteRange(self.low + other.low, self.high + other.high)


@dataclass(frozen=True, slots=True)
class MemoryPart:
    """One part, in bytes, with why it is a range and not a number."""

    name: PartName
    bytes: ByteRange
    reasons: tuple[MemoryReason, ...] = ()


@dataclass(frozen=True, slots=True)
class RuleOfThumb:
    """The rule taught to beginners, in its own units: gigabytes of 10**9 bytes, thousands of tokens.

    ``weights + framework + adapter + tokens / 1024 x per_thousand_tokens``. It knows neither the model's
    vocabulary nor its layers.
    """

    weights: float
    framework: float
    adapter: float
    thousand_tokens: float
    per_thousand_tokens: float

    @property
    def activations(self) -> float:
        """Gigabytes that grow with the tokens of a batch."""
        return self.thousand_tokens * self.per_thousand_tokens

    @property
    def total(self) -> float:
        """Gigabytes."""
        return self.weights + self.framework + self.adapter + self.activations


@dataclass(frozen=True, slots=True)
class MemoryEstimate:
    """What a training needs on each card and on the host, in bytes.

    ``parts`` are those of the worst moment on one card and add up to ``needed``: what must be there at
    once. ``reserved`` is what the card will likely show in use, since the caching allocator keeps what it
    once had, and the driver's context comes on top of it. ``loaded`` is the weights alone.
    ``host`` are the parts that offloading puts into the host's memory, for all cards together.
    ``moments`` are the same figure as ``needed`` for each kind of moment.
    ``tokens`` is the longest batch that was assumed: samples times their padded length.
    ``batch_lengths`` are the padded lengths between which the longest sample lies.
    """

    parts: tuple[MemoryPart, ...] = ()
    host: tuple[MemoryPart, ...] = ()
    moment: Moment | None = None
    needed: ByteRange | None = None
    reserved: ByteRange | None = None
    loaded: ByteRange | None = None
    moments: Mapping[Moment, ByteRange] = field(default_factory=dict)
    tokens: int | None = None
    batch_lengths: tuple[int, int] | None = None
    world: int | None = None
    rule: RuleOfThumb | None = None
    reasons: tuple[MemoryReason, ...] = ()
    unknown: Unknown = field(default_factory=dict)


CheckName = Literal["disk", "weights", "training"]
Verdict = Literal["fits", "tight", "does_not_fit", "unknown"]


@dataclass(frozen=True, slots=True)
class FitCheck:
    """One of three different questions: the files on the disk, the weights on the card, the training on
    the card. ``tight``: the low end of the range fits, the high end does not.
    """

    name: CheckName
    need: ByteRange | None
    have: int | None
    verdict: Verdict
    unknown: Unknown = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Calibration:
    """An estimate against what was measured when that training ran. ``versions`` are those of torch,
    transformers and LLaMA-Factory; ``measured`` is the highest memory in use of one card, bytes.
    """

    job: str
    model: str
    card: str
    versions: Mapping[str, str | None]
    method: str
    tokens: int | None
    needed: ByteRange
    reserved: ByteRange
    measured: int
    measured_at: float
