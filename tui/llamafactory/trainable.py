"""Which numbers of a model a training changes, and which new ones it adds.

The rules are those of LLaMA-Factory and peft: an adapter goes beside every linear layer that is named (or
beside all of them), never beside the embeddings or the output matrix unless these are named; frozen-layer
training takes the last layers; the encoders of a model of several parts stay as they are.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tui.facts.memory import ByteRange
from tui.facts.setup import Method
from tui.facts.weights import ModelFacts, Tensor
from tui.llamafactory.config import TrainingConfig
from tui.llamafactory.steps import positive

DEFAULT_RANK = 8
_DEFAULT_OFT_BLOCK = 32
_DEFAULT_FREEZE_LAYERS = 2
_LAYER = re.compile(r"\.(\d{1,5})\.")
_ENCODERS = ("visual", "vision", "projector", "merger", "audio", "aligner", "connector")
_EMBEDDINGS = ("embed_tokens", "wte", "wpe", "tok_embeddings", "word_embeddings", "embedding")
_HEADS = ("lm_head", "output_layer", "embed_out")
_PACKED = ".qweight"
_MOST_PACKED = 8  # 4-bit numbers in one of 32 bits


@dataclass(frozen=True, slots=True)
class Trainable:
    """``adapter``: new numbers; ``own``: tensors of the model that are trained themselves."""

    adapter: ByteRange
    own: tuple[Tensor, ...]


def method_of(config: TrainingConfig) -> Method:
    """The fine-tuning method; LoRA where the config says nothing."""
    written = config.text("finetuning_type")
    methods: tuple[Method, ...] = ("lora", "oft", "full", "freeze")
    return next((method for method in methods if method == written), "lora")


def trainable(model: ModelFacts, config: TrainingConfig) -> Trainable:
    """What of a model, and beside it, the config trains."""
    method = method_of(config)
    if method == "full":
        return Trainable(ByteRange(0, 0), tuple(t for t in model.tensors if not _is_encoder(t.name)))
    if method == "freeze":
        return Trainable(ByteRange(0, 0), tuple(_freeze_tuned(model, config)))
    extra = sum(
        tensor.elements
        for tensor in model.tensors
        if _module(tensor).endswith(tuple(_names(config, "additional_target")) or ("\0",))
    )
    low = high = extra
    for tensor in adapted_tensors(model.tensors, _names(config, "lora_target") or ("all",)):
        least, most = _adapter_elements(tensor, config, method)
        low, high = low + least, high + most
    return Trainable(ByteRange(low, high), ())


def adapted_tensors(tensors: Iterable[Tensor], targets: Sequence[str]) -> list[Tensor]:
    """The weights of the linear layers that get an adapter."""
    every = "all" in targets
    ends = tuple(f".{target}" for target in targets)
    return [
        tensor
        for tensor in tensors
        if (is_linear(tensor) if every else f".{_module(tensor)}".endswith(ends) and len(tensor.shape) == 2)
        and not _is_encoder(tensor.name)
    ]


def is_linear(tensor: Tensor) -> bool:
    """Whether this is the weight of a linear layer inside the model, not of its embeddings or its end."""
    if not tensor.name.endswith((".weight", _PACKED)) or len(tensor.shape) != 2:
        return False
    return _LAYER.search(tensor.name) is not None and not any(
        name in tensor.name.split(".") for name in (*_EMBEDDINGS, *_HEADS)
    )


def layer_number(tensor: Tensor) -> int | None:
    """The layer of the decoder that a tensor belongs to; ``None`` for what lies outside."""
    found = _LAYER.search(tensor.name)
    return int(found[1]) if found and not _is_encoder(tensor.name) else None


def output_matrix(model: ModelFacts) -> Tensor | None:
    """The matrix that makes logits: its own one, or the tied input embeddings."""
    ends = _EMBEDDINGS if model.tied else _HEADS
    for tensor in model.tensors:
        if len(tensor.shape) == 2 and tensor.name.endswith(tuple(f"{end}.weight" for end in ends)):
            return tensor
    return None


def _adapter_elements(tensor: Tensor, config: TrainingConfig, method: Method) -> tuple[int, int]:
    out, into = tensor.shape[-2:]
    if method == "oft":
        return 0, into * (positive(config, "oft_block_size", _DEFAULT_OFT_BLOCK)) // 2
    count = positive(config, "lora_rank", DEFAULT_RANK) * (out + into)
    if config.flag("use_dora"):
        count += out
    return count, count * (_MOST_PACKED if tensor.name.endswith(_PACKED) else 1)


def _freeze_tuned(model: ModelFacts, config: TrainingConfig) -> Iterable[Tensor]:
    layers = model.shape.layers or 0
    asked = config.whole("freeze_trainable_layers")
    count = _DEFAULT_FREEZE_LAYERS if asked is None else asked
    numbers = range(max(0, layers - count), layers) if count > 0 else range(min(-count, layers))
    modules = _names(config, "freeze_trainable_modules") or ("all",)
    extra = _names(config, "freeze_extra_modules")
    for tensor in model.tensors:
        number = layer_number(tensor)
        in_layer = number in numbers and ("all" in modules or any(f".{m}" in tensor.name for m in modules))
        if in_layer or (extra and any(name in tensor.name for name in extra)):
            yield tensor


def _names(config: TrainingConfig, key: str) -> tuple[str, ...]:
    value = config.values.get(key)
    entries = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else []
    return tuple(entry.strip() for entry in entries if isinstance(entry, str) and entry.strip())


def _module(tensor: Tensor) -> str:
    return tensor.name.rpartition(".")[0]


def _is_encoder(name: str) -> bool:
    return any(part in name for part in _ENCODERS)


def elements_by_layer(tensors: Iterable[Tensor]) -> Mapping[int, int]:
    """Numbers in each layer of the decoder."""
    counts: dict[int, int] = {}
    for tensor in tensors:
        number = layer_number(tensor)
        if number is not None:
            counts[number] = counts.get(number, 0) + tensor.elements
    return counts
