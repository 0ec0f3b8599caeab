"""A training as far as its memory depends on it: what LLaMA-Factory's settings mean for the weights."""

from dataclasses import dataclass
from typing import Literal

from tui.facts.memory import ByteRange, MemoryReason

Method = Literal["lora", "oft", "full", "freeze"]


@dataclass(frozen=True, slots=True)
class Quantization:
    """Weights that are quantized while they are loaded. ``double``: their scales are quantized too."""

    method: str
    bits: int
    double: bool = True


@dataclass(frozen=True, slots=True)
class Sharding:
    """What ``world`` cards share, in the stages of ZeRO: 1 the optimizer's states, 2 also the gradients, 3
    also the parameters. ``engine``: DeepSpeed keeps parameters in the type of the calculation and 32-bit
    master copies of what is trained. ``live_limit`` is how many parameters stage 3 may hold fetched;
    ``bucket`` how many numbers are reduced at a time; ``None``: not told.
    """

    stage: int = 0
    engine: bool = False
    offload_optimizer: bool = False
    offload_parameters: bool = False
    live_limit: int | None = None
    bucket: int | None = None


@dataclass(frozen=True, slots=True)
class TrainingSetup:
    """What is trained, in which types, and how much at once.

    ``adapter`` is how many new numbers are trained (a range where it depends on what is not known here);
    ``trained`` how many of the model's own, ``trained_layer`` and ``trained_head`` how many of those in one
    layer and in the output matrix. ``trained_bytes`` is the size of a trained number of the model.
    ``compute_bytes`` is the size of a number in the calculation; ``mixed``: autocast converts to it.
    ``casts_frozen``: the model's files have another type than the calculation. ``batch`` counts sequences:
    preference training puts two into one. ``eval_batch`` is ``None`` without evaluation.
    ``expandable``: the allocator grows its segments in place, as under torchrun.
    """

    stage: str
    method: Method
    adapter: ByteRange
    trained: int
    trained_layer: int
    trained_head: int
    trained_bytes: int
    compute_bytes: int
    mixed: bool
    casts_frozen: bool
    optimizer: str
    batch: int
    eval_batch: int | None
    cutoff: int
    packing: bool
    checkpointing: bool
    hidden_on_host: bool
    fused_norm: bool
    fused_loss: bool
    eager: bool
    reference: bool
    expandable: bool
    world: int | None
    sharding: Sharding
    quantization: Quantization | None = None
    reasons: tuple[MemoryReason, ...] = ()
