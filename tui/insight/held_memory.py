"""What a training holds from its first step to its last: weights, adapter, gradients, optimizer states.

Sizes follow from the number of parameters and their types. ZeRO divides them among the cards: stage 1 the
optimizer's states, stage 2 also the gradients, stage 3 also the parameters; offloading moves them to the
host. What is not certain is a range, with its reason.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tui.facts.memory import ByteRange, MemoryPart, MemoryReason, PartName
from tui.facts.setup import Quantization, TrainingSetup
from tui.facts.weights import DTYPE_BYTES, ModelFacts, Tensor

_MIB = 1 << 20
_BUCKET = 500_000_000  # numbers that DeepSpeed reduces at a time, unless told otherwise
_FULL = 4
_MASTER = 4
_ADAM = 8

# The driver's context with the kernels that torch loads, and its libraries' work spaces.
_CONTEXT = ByteRange(256 * _MIB, 768 * _MIB)
_COMMUNICATION = ByteRange(128 * _MIB, 1024 * _MIB)

# Bitsandbytes: one scale of 32 bits for 64 numbers; quantized again, 8 bits each and 32 bits for 256.
_SCALE, _DOUBLE_SCALE = 4 / 64, 1 / 64 + 4 / (64 * 256)

# Numbers of 32 bits that an optimizer keeps for each that it trains.
_STATES = {
    "adamw_torch": 2,
    "adamw_torch_fused": 2,
    "adamw_torch_npu_fused": 2,
    "adamw_hf": 2,
    "adamw_apex_fused": 2,
    "adamw_torch_xla": 2,
    "sgd": 0,
    "adagrad": 1,
    "rmsprop": 1,
    "lion_32bit": 1,
    "paged_lion_32bit": 1,
    "paged_adamw_32bit": 2,
    "adafactor": 0,
}
# Bytes for each trained number, and the size from which a tensor's states are kept in 8 bits.
_STATES_8_BIT = {
    "adamw_8bit": 2,
    "adamw_bnb_8bit": 2,
    "paged_adamw_8bit": 2,
    "lion_8bit": 1,
    "paged_lion_8bit": 1,
    "rmsprop_bnb_8bit": 1,
}
_WITHOUT_TEMPORARIES = frozenset({"adamw_torch_fused", "adamw_apex_fused", "adamw_torch_npu_fused", "sgd"})


@dataclass(frozen=True, slots=True)
class HeldMemory:
    """``card`` is on each card, ``host`` in the host's memory for all cards together. ``temporaries`` are
    needed while the optimizer steps. ``loaded`` is the weights alone, as they lie on one card.
    """

    card: tuple[MemoryPart, ...]
    host: tuple[MemoryPart, ...]
    loaded: ByteRange
    temporaries: ByteRange


def held_memory(model: ModelFacts, setup: TrainingSetup) -> HeldMemory:
    """What stays in memory for the whole training."""
    world = setup.world or 1
    sharding = setup.sharding
    weights = weight_bytes(model, setup)
    adapter = _scaled(setup.adapter, setup.compute_bytes if sharding.engine else _FULL)
    gradients, gradient_reasons = _gradients(setup)
    states, state_reasons = _states(setup)
    temporaries = _temporaries(setup)
    if temporaries.high:
        state_reasons = (*state_reasons, "optimizer_temporaries")
    shared = {
        "weights": sharding.stage >= 3,
        "gradients": sharding.stage >= 2,
        "optimizer": sharding.stage >= 1,
    }
    placed: list[tuple[PartName, ByteRange, bool, tuple[MemoryReason, ...]]] = [
        ("weights", weights, sharding.offload_parameters, _weight_reasons(setup)),
        ("adapter", adapter, False, ()),
        # An optimizer on the host takes its gradients there.
        ("gradients", gradients, sharding.offload_optimizer, gradient_reasons),
        ("optimizer", states, sharding.offload_optimizer, state_reasons),
    ]
    if setup.reference:
        placed.append(("reference", _plain_bytes(model.tensors), False, ()))
    card: list[MemoryPart] = []
    host: list[MemoryPart] = []
    for name, size, offloaded, reasons in placed:
        if size.high <= 0:
            continue
        if offloaded:
            # Without sharding every card's process has a copy of its own on the host.
            copies = 1 if shared.get(name) else world
            host.append(MemoryPart(name, _scaled(size, copies), reasons))
        else:
            card.append(MemoryPart(name, _share(size, world if shared.get(name) else 1), reasons))
    loaded = next((part.bytes for part in card if part.name == "weights"), ByteRange(0, 0))
    if sharding.stage >= 2:
        card.append(_gathered(model, setup))
    card.append(_framework(setup))
    return HeldMemory(tuple(card), tuple(host), loaded, temporaries)


def weight_bytes(model: ModelFacts, setup: TrainingSetup) -> ByteRange:
    """The model's own weights on one card, before sharding."""
    if setup.quantization is not None:
        return _quantized(model, setup.quantization)
    if setup.sharding.engine:
        size = model.parameters * setup.compute_bytes
        return ByteRange(size, size)
    plain = _plain_bytes(model.tensors)
    if not setup.trained:
        return plain
    # What is trained is held in its own type, the rest as the files have it.
    grown = int(setup.trained * (setup.trained_bytes - plain.low / max(1, model.parameters)))
    return ByteRange(plain.low + grown, plain.high + grown)


def _plain_bytes(tensors: Sequence[Tensor]) -> ByteRange:
    """As loaded: 8-bit floats are turned into 16-bit ones."""
    size = sum(t.bytes * 2 if t.dtype.startswith("F8") else t.bytes for t in tensors)
    return ByteRange(size, size)


def _quantized(model: ModelFacts, quantization: Quantization) -> ByteRange:
    """Linear layers in few bits; embeddings, norms and the output matrix as they are."""
    linear = sum(tensor.elements for tensor in model.tensors if _is_quantized(tensor))
    rest = sum(tensor.bytes for tensor in model.tensors if not _is_quantized(tensor))
    each = quantization.bits / 8
    if quantization.method == "bnb":
        scale = (_DOUBLE_SCALE if quantization.double else _SCALE) if quantization.bits == 4 else 0.0
        size = int(linear * (each + scale)) + rest
        return ByteRange(size, size)
    return ByteRange(int(linear * each) + rest, int(linear * (each + _SCALE)) + rest)


def _is_quantized(tensor: Tensor) -> bool:
    parts = tensor.name.split(".")
    return (
        len(tensor.shape) == 2
        and parts[-1] == "weight"
        and any(part.isdigit() for part in parts)
        and DTYPE_BYTES.get(tensor.dtype, 2) >= 2
    )


def _gradients(setup: TrainingSetup) -> tuple[ByteRange, tuple[MemoryReason, ...]]:
    own, adapter = setup.trained, setup.adapter
    if setup.sharding.engine:
        # The engine may gather gradients in 32 bits beside those of the calculation.
        trained = ByteRange(own + adapter.low, own + adapter.high)
        return ByteRange(trained.low * setup.compute_bytes, trained.high * _FULL), ("gradient_precision",)
    size = setup.trained_bytes * own
    return ByteRange(size + _FULL * adapter.low, size + _FULL * adapter.high), ()


def _states(setup: TrainingSetup) -> tuple[ByteRange, tuple[MemoryReason, ...]]:
    own, adapter = setup.trained, setup.adapter
    trained = ByteRange(own + adapter.low, own + adapter.high)
    master = _MASTER if setup.sharding.engine and setup.compute_bytes < _FULL else 0
    name = setup.optimizer
    paged: tuple[MemoryReason, ...] = ("optimizer_paged",) if name.startswith("paged") else ()
    if name in _STATES_8_BIT:
        size = _scaled(trained, _STATES_8_BIT[name] + master)
        # Small tensors keep states of 32 bits, and every block has a scale.
        return ByteRange(0 if paged else size.low, int(size.high * 1.05) + _MIB), paged
    if name in _STATES:
        width = _FULL if setup.trained_bytes == _FULL or setup.sharding.engine else setup.trained_bytes
        count = _STATES[name]
        low = own * (count * width + master) + adapter.low * (count * _FULL + master)
        high = own * (count * width + master) + adapter.high * (count * _FULL + master)
        return ByteRange(0 if paged else low, high), paged
    return ByteRange(0, trained.high * (_ADAM + master)), ("optimizer_unknown",)


def _temporaries(setup: TrainingSetup) -> ByteRange:
    """A copy of what is trained while many tensors are stepped at once."""
    if setup.optimizer in _WITHOUT_TEMPORARIES or setup.sharding.offload_optimizer:
        return ByteRange(0, 0)
    share = (setup.world or 1) if setup.sharding.stage >= 1 else 1
    return ByteRange(0, (setup.trained + setup.adapter.high) * _FULL // share)


def _gathered(model: ModelFacts, setup: TrainingSetup) -> MemoryPart:
    """Buffers in which gradients are reduced, and what stage 3 keeps fetched beyond the layer in use."""
    sharding = setup.sharding
    trained = setup.trained + setup.adapter.high
    numbers = min(trained, sharding.bucket or _BUCKET)
    if sharding.stage >= 3:
        numbers += min(model.parameters, sharding.live_limit or model.parameters)
    return MemoryPart("gathered", ByteRange(0, numbers * setup.compute_bytes), ("gather_size",))


def _framework(setup: TrainingSetup) -> MemoryPart:
    if (setup.world or 1) > 1:
        return MemoryPart("framework", _CONTEXT + _COMMUNICATION, ("context_size", "communication"))
    return MemoryPart("framework", _CONTEXT, ("context_size",))


def _weight_reasons(setup: TrainingSetup) -> tuple[MemoryReason, ...]:
    foreign = setup.quantization is not None and setup.quantization.method != "bnb"
    return ("quantization_overhead",) if foreign else ()


def _scaled(size: ByteRange, factor: int) -> ByteRange:
    return ByteRange(size.low * factor, size.high * factor)


def _share(size: ByteRange, cards: int) -> ByteRange:
    return ByteRange(-(-size.low // cards), -(-size.high // cards))
