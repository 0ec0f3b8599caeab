"""The tensors of one pass through a decoder: what is made when, how large, and how long it is kept.

Sizes come from the shapes alone. What a layer keeps for its backward pass follows from how transformers
and peft compute it: a norm works on 32-bit copies; an adapter reads its input in its own type and keeps
that copy; the loss works on a 32-bit copy of the logits, and its backward pass on two more.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tui.facts.memory import Moment, PartName
from tui.insight.allocator import Allocator, Block

_FULL = 4
"""Bytes of a 32-bit number."""


@dataclass(frozen=True, slots=True)
class PassShape:
    """A decoder and how it is trained, as far as a pass needs it; sizes in elements or bytes as named.

    ``compute_bytes`` is the size of a number in the calculation. ``autocast``: weights of another type are
    copied into it. ``cast_layer_bytes`` and ``cast_head_bytes`` are those copies of one layer and of the
    output matrix; ``cast_kept``: they stay until the forward pass ends, as those of trained weights do.
    ``adapters``: trained beside frozen weights. ``gather_layer_bytes`` and ``gather_head_bytes`` are fetched
    from the other cards while they are used. ``head_gradient_bytes`` is what the output matrix's gradient
    takes while it is made. ``fused_norm`` and ``fused_loss``: kernels that keep no copies.
    ``repeated_heads``: keys and values are repeated for every query head. ``eager``: attention keeps its
    weights, which grow with the square of the length.
    """

    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    vocabulary: int
    compute_bytes: int = 2
    qk_norm: bool = False
    adapters: bool = True
    autocast: bool = True
    checkpointing: bool = True
    hidden_on_host: bool = False
    fused_norm: bool = False
    fused_loss: bool = False
    repeated_heads: bool = True
    eager: bool = False
    cast_layer_bytes: int = 0
    cast_head_bytes: int = 0
    cast_kept: bool = False
    gather_layer_bytes: int = 0
    gather_head_bytes: int = 0
    head_gradient_bytes: int = 0
    layer_gradient_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Peak:
    """The most that was in use, part by part, in bytes."""

    bytes: int
    parts: Mapping[PartName, int]


class Tape:
    """Plays allocations and remembers when most was in use, for each kind of moment."""

    def __init__(self, allocator: Allocator) -> None:
        self.allocator = allocator
        self.moment: Moment = "load"
        self.peaks: dict[Moment, Peak] = {"load": Peak(0, {})}
        self._live: dict[PartName, int] = {}
        self._total = 0

    def take(self, part: PartName, size: int) -> "Held":
        """Allocate ``size`` bytes for a part; nothing happens for 0."""
        if size <= 0:
            return Held(part, 0, None)
        block = self.allocator.allocate(size)
        self._live[part] = self._live.get(part, 0) + size
        self._total += size
        known = self.peaks.get(self.moment)
        if known is None or self._total > known.bytes:
            self.peaks[self.moment] = Peak(self._total, dict(self._live))
        return Held(part, size, block)

    def drop(self, *helds: "Held") -> None:
        """Free what was taken."""
        for held in helds:
            if held.block is not None:
                self.allocator.free(held.block)
                self._live[held.part] -= held.size
                self._total -= held.size


@dataclass(frozen=True, slots=True)
class Held:
    """Something taken; ``block`` is ``None`` for nothing."""

    part: PartName
    size: int
    block: Block | None


def kept_by_layer(shape: PassShape, length: int) -> tuple[int, ...]:
    """Bytes per token of every tensor that one layer keeps for its backward pass.

    ``length`` is the padded length of a sample: only eager attention depends on it.
    """
    size = shape.compute_bytes
    queries, keys = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    norm = () if shape.fused_norm else (_FULL * shape.hidden,)
    copies = 1 if not shape.adapters else 3
    attention = [
        *norm,
        *[size * shape.hidden] * copies,  # the norm's output; adapters of q, k and v each keep their own
        size * queries,
        *[size * (queries if shape.repeated_heads else keys)] * 2,
        size * queries,  # attention's output
    ]
    if shape.qk_norm:
        attention += [] if shape.fused_norm else [_FULL * queries, _FULL * keys]
    if shape.adapters:
        attention.append(size * queries)
    if shape.eager:
        attention += [_FULL * shape.heads * length, size * shape.heads * length]
    feed_forward = [
        size * shape.hidden,  # the residual
        *norm,
        *[size * shape.hidden] * (2 if shape.adapters else 1),
        *[size * shape.intermediate] * (3 if shape.fused_norm else 4),  # gate, up, their product, silu
    ]
    return (*attention, *feed_forward)


def train_batch(tape: Tape, shape: PassShape, samples: int, length: int) -> None:
    """One forward and one backward pass over ``samples`` sequences of ``length`` tokens."""
    tokens = samples * length
    tape.moment = "layers"
    stream, kept, casts = _forward(tape, shape, tokens, length, training=True)
    _loss(tape, shape, tokens, training=True, casts=casts)
    tape.moment = "layers"
    passing = _passing(shape, tokens)
    for layer in reversed(range(shape.layers)):
        gathered = tape.take("gathered", shape.gather_layer_bytes)
        if shape.checkpointing:
            cast = tape.take("casts", shape.cast_layer_bytes)
            saved = [tape.take("activations", tokens * each) for each in kept_by_layer(shape, length)]
        else:
            cast, saved = casts.layers[layer], kept[layer]
        gradients = [tape.take("activations", each) for each in passing]
        weights = tape.take("casts", shape.layer_gradient_bytes)
        tape.drop(*gradients, weights, *saved, cast, gathered, stream[layer])
    tape.drop(*stream[shape.layers :])


def evaluate_batch(tape: Tape, shape: PassShape, samples: int, length: int) -> None:
    """One forward pass without gradients, as an evaluation makes it."""
    tokens = samples * length
    tape.moment = "evaluation"
    stream, _, casts = _forward(tape, shape, tokens, length, training=False)
    _loss(tape, shape, tokens, training=False, casts=casts)
    tape.drop(*stream)


@dataclass(slots=True)
class _Casts:
    layers: list[Held]
    head: list[Held]


def _forward(
    tape: Tape, shape: PassShape, tokens: int, length: int, *, training: bool
) -> tuple[list[Held], list[list[Held]], _Casts]:
    """The hidden states between layers, what each layer keeps, and copies of weights that stay."""
    keeps = training and not shape.checkpointing
    width = 0 if shape.hidden_on_host else tokens * shape.hidden * shape.compute_bytes
    stream = [tape.take("activations", width)]
    kept: list[list[Held]] = []
    casts = _Casts([], [])
    for _ in range(shape.layers):
        gathered = tape.take("gathered", shape.gather_layer_bytes)
        cast = tape.take("casts", shape.cast_layer_bytes)
        tensors = kept_by_layer(shape, length)
        if keeps:
            kept.append([tape.take("activations", tokens * each) for each in tensors])
        else:
            # Without gradients only the feed-forward part is there at once.
            passing = [tape.take("activations", tokens * each) for each in tensors[-4:]]
            tape.drop(*passing)
        if shape.cast_kept or keeps:
            casts.layers.append(cast)
        else:
            tape.drop(cast)
        tape.drop(gathered)
        following = tape.take("activations", width)
        if not training:
            tape.drop(stream.pop())
        stream.append(following)
    return stream, kept, casts


def _loss(tape: Tape, shape: PassShape, tokens: int, *, training: bool, casts: _Casts) -> None:
    """The output matrix and the loss, and of its backward pass what concerns the logits."""
    if training:
        tape.moment = "logits"
    size = shape.compute_bytes
    gathered = tape.take("gathered", shape.gather_head_bytes)
    head = tape.take("casts", shape.cast_head_bytes)
    norm = [] if shape.fused_norm else [tape.take("activations", tokens * shape.hidden * _FULL)]
    norm.append(tape.take("activations", tokens * shape.hidden * size))
    if shape.fused_loss and training:
        _fused_loss(tape, shape, tokens)
        tape.drop(*norm, head, gathered, *_released(shape, casts))
        return
    numbers = tokens * shape.vocabulary
    logits = tape.take("logits", numbers * size)
    full = tape.take("logits", numbers * _FULL if size < _FULL else 0)
    probabilities = tape.take("logits", numbers * _FULL)
    tape.drop(full, *_released(shape, casts))
    if shape.autocast:
        # The trainer hands its outputs out in 32 bits.
        tape.drop(tape.take("logits", numbers * _FULL))
    tape.drop(logits)
    if training:
        _logits_backward(tape, shape, tokens, probabilities)
    else:
        tape.drop(probabilities)
    tape.drop(*norm, head, gathered)


def _logits_backward(tape: Tape, shape: PassShape, tokens: int, probabilities: Held) -> None:
    numbers = tokens * shape.vocabulary
    chosen = tape.take("logits", numbers * _FULL)
    gradient = tape.take("logits", numbers * _FULL)
    tape.drop(probabilities, chosen)
    if shape.compute_bytes < _FULL:
        narrow = tape.take("logits", numbers * shape.compute_bytes)
        tape.drop(gradient)
        gradient = narrow
    stream = tape.take("activations", tokens * shape.hidden * shape.compute_bytes)
    matrix = tape.take("casts", shape.head_gradient_bytes)
    tape.drop(gradient, stream, matrix)


def _fused_loss(tape: Tape, shape: PassShape, tokens: int) -> None:
    """Liger's loss: a few rows of logits at a time, as many as make them about as large as the input."""
    pieces = -(-shape.vocabulary // shape.hidden)
    rows = min(tokens, 1 << max(0, (-(-tokens // pieces) - 1).bit_length()))
    gradient = tape.take("activations", tokens * shape.hidden * shape.compute_bytes)
    piece = tape.take("logits", rows * shape.vocabulary * shape.compute_bytes)
    full = tape.take("logits", rows * shape.vocabulary * _FULL)
    matrix = tape.take("casts", shape.head_gradient_bytes)
    tape.drop(piece, full, matrix, gradient)


def _released(shape: PassShape, casts: _Casts) -> Iterable[Held]:
    """Copies of weights that end with the forward pass."""
    if shape.checkpointing:
        released, casts.layers = casts.layers, []
        return released
    return ()


def _passing(shape: PassShape, tokens: int) -> tuple[int, ...]:
    """Gradients that pass through the widest place of a layer's backward pass, in bytes."""
    size = shape.compute_bytes
    wide = tokens * shape.intermediate
    stream = tokens * shape.hidden * size
    if not shape.adapters:
        return (wide * size, wide * size, stream)
    # An adapter's gradient comes in its own 32 bits beside the frozen weight's.
    return (wide * size, wide * _FULL, wide * size, stream)
