"""How much memory a training needs, and how much of the card it will likely show as used.

Nothing is fitted: what is held follows from the parameters and their types, what comes and goes from
playing the passes over the longest batch (``passes``) on an allocator with torch's rules (``allocator``).
The low end takes the shorter of what is possible, the high end the longer, and batches that vary.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tui.facts.memory import (
    ByteRange,
    FitCheck,
    MemoryEstimate,
    MemoryPart,
    MemoryReason,
    Moment,
    PartName,
    RuleOfThumb,
    Verdict,
)
from tui.facts.setup import TrainingSetup
from tui.facts.steps import TokenLengths
from tui.facts.unknown import UnknownReason
from tui.facts.weights import ModelFacts
from tui.insight.allocator import Allocator, OutOfMemoryError
from tui.insight.batch_lengths import BatchLengths, batch_lengths
from tui.insight.held_memory import HeldMemory, held_memory
from tui.insight.passes import PassShape, Peak, Tape, evaluate_batch, train_batch

_FULL = 4
_LIMITED_BATCHES = 24  # of a deep model, whose passes take long to play
_DEEP = 60
_GB = 10**9
_NAMED_SIZE = re.compile(r"(?<![A-Za-z0-9.])(\d{1,4}(?:\.\d{1,3})?)[Bb](?![A-Za-z0-9])")


def estimate(
    model: ModelFacts,
    setup: TrainingSetup,
    *,
    lengths: TokenLengths | None = None,
    card_bytes: int | None = None,
) -> MemoryEstimate:
    """The memory of a training, per card and on the host.

    Args:
        model: The model's folder.
        setup: What is done with it.
        lengths: Measured lengths of the samples.
        card_bytes: What one card has in all; the allocator cannot keep more.
    """
    rule = rule_of_thumb(model, setup)
    reasons = list(setup.reasons)
    if setup.world is None:
        reasons.append("world_unknown")
    if not model.tensors:
        why: UnknownReason = model.unknown.get("tensors", "missing_file")
        unknown: dict[str, UnknownReason] = {"needed": why, "reserved": why, "loaded": why}
        return MemoryEstimate(world=setup.world, rule=rule, reasons=tuple(reasons), unknown=unknown)
    held = held_memory(model, setup)
    base = MemoryEstimate(
        parts=held.card,
        host=held.host,
        loaded=held.loaded,
        world=setup.world,
        rule=rule,
        reasons=tuple(reasons),
    )
    low, high = pass_shape(model, setup, cautious=False), pass_shape(model, setup, cautious=True)
    if low is None or high is None:
        return replace(
            base,
            reasons=(*reasons, "architecture_unknown"),
            unknown={"needed": "not_reported", "reserved": "not_reported"},
        )
    return _played(base, held, setup, batch_lengths(setup, lengths), (low, high), card_bytes)


def rule_of_thumb(model: ModelFacts, setup: TrainingSetup) -> RuleOfThumb | None:
    """The rule for LoRA on one card: the size in the model's name times the bytes of a number, 1 GB for the
    framework, 0.5 GB for the adapter, and 2.5 GB (with liger 0.6) for every thousand tokens of a batch.
    """
    named = _NAMED_SIZE.findall(model.name)
    billions = float(named[0]) if named else model.parameters / _GB
    if billions <= 0:
        return None
    each = setup.quantization.bits / 8 if setup.quantization is not None else 2
    return RuleOfThumb(
        weights=billions * each,
        framework=1.0,
        adapter=0.5,
        thousand_tokens=setup.batch * setup.cutoff / 1024,
        per_thousand_tokens=0.6 if setup.fused_loss else 2.5,
    )


def fit_checks(
    model: ModelFacts,
    result: MemoryEstimate,
    *,
    disk_free: int | None,
    card_free: int | None,
) -> tuple[FitCheck, FitCheck, FitCheck]:
    """Three different questions: do the files fit the disk, the weights the card, the training the card.

    A model that is complete on the disk needs no more room there.
    """
    missing = bool(model.missing) or model.file_bytes is None
    size = model.file_bytes if not missing else sum(tensor.bytes for tensor in model.tensors) or None
    disk_need = None if size is None else ByteRange(size, size)
    disk: Verdict = _verdict(disk_need, disk_free) if missing else "fits"
    return (
        FitCheck("disk", disk_need, disk_free, disk),
        FitCheck("weights", result.loaded, card_free, _verdict(result.loaded, card_free)),
        FitCheck("training", result.needed, card_free, _verdict(result.needed, card_free)),
    )


def _verdict(need: ByteRange | None, have: int | None) -> Verdict:
    if need is None or have is None:
        return "unknown"
    if need.low > have:
        return "does_not_fit"
    return "tight" if need.high > have else "fits"


def pass_shape(model: ModelFacts, setup: TrainingSetup, *, cautious: bool) -> PassShape | None:
    """The pass of a model as set up; ``None`` where its shape is not known.

    ``cautious`` takes the larger of what differs between kernels and versions.
    """
    shape = model.shape
    sides = (shape.hidden, shape.layers, shape.heads, shape.kv_heads, shape.head_dim)
    if any(not side for side in (*sides, shape.intermediate, shape.vocabulary)):
        return None
    hidden, layers, heads, kv_heads, head_dim = (side or 1 for side in sides)
    layer, widest, head = _layer_elements(model)
    size = setup.compute_bytes
    trains_own = setup.trained > 0 and setup.mixed and setup.trained_bytes > size
    cast_layer = setup.trained_layer * size if trains_own else layer * size if setup.casts_frozen else 0
    cast_head = setup.trained_head * size if trains_own else head * size if setup.casts_frozen else 0
    if setup.quantization is not None:
        cast_layer = max(cast_layer, widest * size)
    fetched = setup.sharding.stage >= 3
    return PassShape(
        hidden=hidden,
        layers=layers,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        intermediate=shape.intermediate or 1,
        vocabulary=shape.vocabulary or 1,
        compute_bytes=size,
        qk_norm=shape.qk_norm,
        adapters=setup.method in {"lora", "oft"},
        autocast=setup.mixed,
        checkpointing=setup.checkpointing,
        hidden_on_host=setup.hidden_on_host,
        fused_norm=setup.fused_norm,
        fused_loss=setup.fused_loss,
        repeated_heads=cautious and heads != kv_heads,
        eager=setup.eager,
        cast_layer_bytes=cast_layer,
        cast_head_bytes=cast_head,
        cast_kept=trains_own,
        gather_layer_bytes=layer * size if fetched else 0,
        gather_head_bytes=head * size if fetched else 0,
        layer_gradient_bytes=widest * (size + _FULL) if setup.trained_layer else 0,
        head_gradient_bytes=setup.trained_head * (size + _FULL),
    )


def _layer_elements(model: ModelFacts) -> tuple[int, int, int]:
    """Numbers in the largest layer, in its widest matrix, and in the output matrix."""
    layers: dict[str, int] = {}
    widest = 0
    for tensor in model.tensors:
        parts = tensor.name.split(".")
        number = next((part for part in parts if part.isdigit()), None)
        if number is None:
            continue
        layers[number] = layers.get(number, 0) + tensor.elements
        widest = max(widest, tensor.elements)
    hidden, vocabulary = model.shape.hidden or 0, model.shape.vocabulary or 0
    return max(layers.values(), default=0), widest, hidden * vocabulary


@dataclass(frozen=True, slots=True)
class _Outcome:
    """``peaks``: what was in use at the worst of each kind of moment; ``kept``: by the allocator at most."""

    peaks: Mapping[Moment, Peak]
    kept: int

    @property
    def moment(self) -> Moment:
        """The worst of them."""
        return max(self.peaks, key=lambda moment: self.peaks[moment].bytes)


def _played(
    base: MemoryEstimate,
    held: HeldMemory,
    setup: TrainingSetup,
    batches: BatchLengths,
    shapes: tuple[PassShape, PassShape],
    card_bytes: int | None,
) -> MemoryEstimate:
    framework = next(part.bytes for part in held.card if part.name == "framework")
    room = None if card_bytes is None else card_bytes - framework.low
    varied = batches.varied
    if shapes[1].layers > _DEEP:
        varied = (*varied[:_LIMITED_BATCHES], varied[-1])
    low = _play(held, setup, shapes[0], [batches.low] * 2, high=False)
    high = _play(held, setup, shapes[1], [batches.high] * 2, high=True)
    longest = _play(held, setup, shapes[1], varied, high=True, limit=room)
    moment = high.moment
    # Where nothing is added to what is held (an optimizer without temporaries), that is the least.
    least = {name: low.peaks.get(name, low.peaks["load"]).bytes for name in high.peaks}
    moments = {
        name: ByteRange(min(least[name], peak.bytes), peak.bytes) + framework
        for name, peak in high.peaks.items()
    }
    needed = ByteRange(max(size.low for size in moments.values()), moments[moment].high)
    kernels: tuple[MemoryReason, ...] = ("kernels_vary",) if shapes[0] != shapes[1] else ()
    kept = max(low.kept, high.kept, longest.kept) + framework.high
    if card_bytes is not None and needed.high <= card_bytes:
        kept = min(kept, card_bytes)  # when the card is full, what is unused is given back
    return replace(
        base,
        parts=_parts(base.parts, low.peaks.get(moment, low.peaks["load"]), high.peaks[moment]),
        host=(*base.host, *_hidden_on_host(setup, shapes[1], batches)),
        moment=moment,
        moments=moments,
        needed=needed,
        reserved=ByteRange(low.kept + framework.low, kept),
        tokens=setup.batch * batches.high,
        batch_lengths=(batches.low, batches.high),
        reasons=tuple(dict.fromkeys((*base.reasons, *batches.reasons, *kernels))),
    )


def _parts(held: Sequence[MemoryPart], low: Peak, high: Peak) -> tuple[MemoryPart, ...]:
    """Every part as it is at the worst moment; what is held all the time keeps its reasons."""
    reasons = {part.name: part.reasons for part in held}
    names: list[PartName] = [part.name for part in held if part.name != "framework"]
    names += [name for name in high.parts if name not in names]
    parts = []
    for name in names:
        most, least = high.parts.get(name, 0), low.parts.get(name, 0)
        if most > 0:
            parts.append(MemoryPart(name, ByteRange(min(least, most), most), reasons.get(name, ())))
    return (*parts, *(part for part in held if part.name == "framework"))


def _hidden_on_host(setup: TrainingSetup, shape: PassShape, batches: BatchLengths) -> tuple[MemoryPart, ...]:
    """The hidden states that wait in the host's memory for the backward pass, of all cards."""
    if not setup.hidden_on_host:
        return ()
    each = setup.batch * shape.hidden * shape.layers * shape.compute_bytes * (setup.world or 1)
    return (MemoryPart("activations", ByteRange(each * batches.low, each * batches.high)),)


def _play(
    held: HeldMemory,
    setup: TrainingSetup,
    shape: PassShape,
    lengths: Sequence[int],
    *,
    high: bool,
    limit: int | None = None,
) -> _Outcome:
    """Play batches of these lengths, a step and an evaluation; again without a limit if they do not fit."""
    tape = Tape(Allocator(limit, expandable=setup.expandable))
    try:
        for part in held.card:
            if part.name != "framework":
                tape.take(part.name, part.bytes.high if high else part.bytes.low)
        for length in lengths:
            train_batch(tape, shape, setup.batch, length)
        tape.moment = "optimizer"
        tape.drop(tape.take("optimizer", held.temporaries.high if high else held.temporaries.low))
        if setup.eval_batch is not None:
            evaluate_batch(tape, shape, setup.eval_batch, lengths[-1])
    except OutOfMemoryError:
        return _play(held, setup, shape, lengths, high=high)
    return _Outcome(tape.peaks, tape.allocator.peak_reserved)
