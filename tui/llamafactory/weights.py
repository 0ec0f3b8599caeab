"""What is known of a model from its folder, without loading anything.

``config.json`` gives the shapes, the headers of the safetensors files give every tensor.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tui.facts.unknown import UnknownReason
from tui.facts.weights import ModelFacts, ModelShape, Tensor
from tui.llamafactory.installed import is_file
from tui.llamafactory.json_file import JsonFileError, read_json_file
from tui.llamafactory.safetensors import read_header

_CONFIG_LIMIT = 4 << 20
_INDEX_LIMIT = 64 << 20
_SHARD_LIMIT = 2_000
_SIDE_LIMIT = 1 << 40
_LAYER_LIMIT = 2_000
_INDEX = "model.safetensors.index.json"
_OTHER_WEIGHTS = ("pytorch_model*.bin", "consolidated*.pth", "*.gguf")
_TEXT_PARTS = ("text_config", "llm_config", "language_config")
_HEADS = ("lm_head.weight", "output_layer.weight", "embed_out.weight")

# Families whose tensors follow from the config alone; the biases and norms are where they differ.
_PLAIN_DECODERS: Mapping[str, tuple[str, ...]] = {
    "llama": (),
    "mistral": (),
    "qwen2": ("bias",),
    "qwen3": ("qk_norm",),
}


def read_model(folder: Path, name: str | None = None) -> ModelFacts:
    """Everything that a model folder tells. What cannot be told is unknown with its reason."""
    unknown: dict[str, UnknownReason] = {}
    config = _read_json(folder / "config.json", _CONFIG_LIMIT, "shape", unknown)
    text = _text_part(config)
    shape = _shape(text)
    files = _Files()
    _read_files(folder, files)
    files.missing.sort()
    tensors, tied = _without_tied_head(files.tensors, _flag(config, text, "tie_word_embeddings"))
    counted = "files"
    model_type = _text(config, "model_type")
    if not tensors and (worked_out := _from_config(shape, text, model_type, tied)):
        tensors, counted = worked_out, "config"
    if not tensors:
        unknown["tensors"] = "missing_file" if not files.truncated else "unreadable_file"
    elif files.missing or files.truncated:
        unknown["parameters"] = "missing_file" if files.missing else "unreadable_file"
    if any(tensor.name.endswith("q_norm.weight") for tensor in tensors):
        shape = _with_qk_norm(shape)
    if config and None in (shape.hidden, shape.layers, shape.vocabulary):
        unknown["shape"] = "not_reported"
    quantization = config.get("quantization_config")
    return ModelFacts(
        path=str(folder),
        name=name or folder.name,
        shape=shape,
        model_type=model_type,
        dtype=_text(text, "torch_dtype") or _text(text, "dtype") or _text(config, "torch_dtype"),
        tied=tied,
        tensors=tensors,
        counted=counted,
        file_bytes=_weight_bytes(folder),
        missing=tuple(files.missing),
        truncated=tuple(sorted(files.truncated)),
        quantization=_text(quantization, "quant_method") if isinstance(quantization, dict) else None,
        multimodal=any(key in config for key in ("vision_config", "audio_config", "thinker_config")),
        unknown=unknown,
    )


@dataclass(slots=True)
class _Files:
    tensors: list[Tensor] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    truncated: list[str] = field(default_factory=list)


def _read_files(folder: Path, files: _Files) -> None:
    for path in _weight_files(folder, files):
        try:
            tensors, whole = read_header(path)
        except FileNotFoundError:
            files.missing.append(path.name)
            continue
        except (OSError, ValueError):
            files.truncated.append(path.name)
            continue
        files.tensors += tensors
        if not whole:
            files.truncated.append(path.name)


def _weight_files(folder: Path, files: _Files) -> list[Path]:
    """The safetensors files, by the index where there is one: it also names what is missing."""
    if is_file(folder / _INDEX):
        index = _read_json(folder / _INDEX, _INDEX_LIMIT, "", {})
        weight_map = index.get("weight_map")
        named = set(weight_map.values()) if isinstance(weight_map, dict) else set()
        safe = sorted(
            name for name in named if isinstance(name, str) and "/" not in name and "\0" not in name
        )
        if safe:
            return [folder / name for name in safe[:_SHARD_LIMIT]]
        files.truncated.append(_INDEX)
    single = folder / "model.safetensors"
    if is_file(single):
        return [single]
    return sorted(folder.glob("model-*.safetensors"))[:_SHARD_LIMIT]


def _without_tied_head(tensors: list[Tensor], configured: bool | None) -> tuple[tuple[Tensor, ...], bool]:
    """A tied output matrix is the input embedding: some files hold it all the same."""
    heads = [tensor for tensor in tensors if tensor.name.endswith(_HEADS)]
    tied = configured if configured is not None else bool(tensors) and not heads
    if not tied:
        return tuple(tensors), False
    return tuple(tensor for tensor in tensors if tensor not in heads), True


def _shape(config: Mapping[str, object]) -> ModelShape:
    hidden = _whole(config, "hidden_size", "n_embd", "d_model")
    heads = _whole(config, "num_attention_heads", "n_head")
    layers = _whole(config, "num_hidden_layers", "n_layer", "num_layers")
    head_dim = _whole(config, "head_dim")
    if head_dim is None and hidden and heads:
        head_dim = hidden // heads
    return ModelShape(
        hidden=hidden,
        layers=layers if layers is None or layers <= _LAYER_LIMIT else None,
        heads=heads,
        kv_heads=_whole(config, "num_key_value_heads", "multi_query_group_num") or heads,
        head_dim=head_dim,
        intermediate=_intermediate(config, hidden),
        vocabulary=_whole(config, "vocab_size", "padded_vocab_size"),
    )


def _intermediate(config: Mapping[str, object], hidden: int | None) -> int | None:
    dense = _whole(config, "intermediate_size", "ffn_hidden_size", "n_inner")
    chosen, expert = _whole(config, "num_experts_per_tok"), _whole(config, "moe_intermediate_size")
    if chosen is not None:
        shared = (_whole(config, "n_shared_experts") or 0) * (expert or 0)
        shared += _whole(config, "shared_expert_intermediate_size") or 0
        each = expert or dense
        return chosen * each + shared if each else None
    if dense is None and hidden is not None and "n_embd" in config:
        return 4 * hidden  # GPT-2 and its kin
    return dense


def _with_qk_norm(shape: ModelShape) -> ModelShape:
    return ModelShape(
        shape.hidden,
        shape.layers,
        shape.heads,
        shape.kv_heads,
        shape.head_dim,
        shape.intermediate,
        shape.vocabulary,
        qk_norm=True,
    )


def _from_config(
    shape: ModelShape, config: Mapping[str, object], model_type: str | None, tied: bool
) -> tuple[Tensor, ...]:
    """The tensors of a plain decoder, worked out from its config; none for any other family."""
    traits = _PLAIN_DECODERS.get(model_type or "")
    sides = (
        shape.hidden,
        shape.layers,
        shape.heads,
        shape.kv_heads,
        shape.head_dim,
        shape.intermediate,
        shape.vocabulary,
    )
    if traits is None or any(side is None for side in sides):
        return ()
    hidden, layers, heads, kv_heads, head_dim, wide, vocabulary = (side or 0 for side in sides)
    dtype = {"float32": "F32", "float16": "F16"}.get(_text(config, "torch_dtype") or "", "BF16")
    queries, keys = heads * head_dim, kv_heads * head_dim

    def linear(name: str, out: int, into: int, bias: bool = False) -> Iterator[Tensor]:
        yield Tensor(f"{name}.weight", (out, into), dtype)
        if bias:
            yield Tensor(f"{name}.bias", (out,), dtype)

    tensors = [Tensor("model.embed_tokens.weight", (vocabulary, hidden), dtype)]
    for number in range(layers):
        layer = f"model.layers.{number}"
        biased = "bias" in traits
        for name, out in (("q", queries), ("k", keys), ("v", keys)):
            tensors += linear(f"{layer}.self_attn.{name}_proj", out, hidden, biased)
        tensors += linear(f"{layer}.self_attn.o_proj", hidden, queries)
        tensors += linear(f"{layer}.mlp.gate_proj", wide, hidden)
        tensors += linear(f"{layer}.mlp.up_proj", wide, hidden)
        tensors += linear(f"{layer}.mlp.down_proj", hidden, wide)
        tensors += [
            Tensor(f"{layer}.{norm}.weight", (hidden,), dtype)
            for norm in ("input_layernorm", "post_attention_layernorm")
        ]
        if "qk_norm" in traits:
            tensors += [Tensor(f"{layer}.self_attn.{n}_norm.weight", (head_dim,), dtype) for n in "qk"]
    tensors.append(Tensor("model.norm.weight", (hidden,), dtype))
    if not tied:
        tensors.append(Tensor("lm_head.weight", (vocabulary, hidden), dtype))
    return tuple(tensors)


def _weight_bytes(folder: Path) -> int | None:
    patterns = ("*.safetensors", *_OTHER_WEIGHTS)
    sizes = []
    try:
        for path in {path for pattern in patterns for path in folder.glob(pattern)}:
            sizes.append(path.stat().st_size)
    except OSError:
        return None
    return sum(sizes) if sizes else None


def _read_json(path: Path, limit: int, what: str, unknown: dict[str, UnknownReason]) -> Mapping[str, object]:
    """A JSON object; an empty one, with the reason noted, where there is none."""
    try:
        return read_json_file(path, limit)
    except JsonFileError as error:
        if what:
            unknown[what] = "missing_file" if error.problem == "missing" else "unreadable_file"
        return {}


def _text_part(config: Mapping[str, object]) -> Mapping[str, object]:
    """The settings of the language model in a model of several parts."""
    thinker = config.get("thinker_config")
    outer = thinker if isinstance(thinker, dict) else config
    for name in _TEXT_PARTS:
        part = outer.get(name)
        if isinstance(part, dict):
            return {**outer, **part}
    return outer


def _whole(config: Mapping[str, object], *names: str) -> int | None:
    for name in names:
        value = config.get(name)
        if type(value) is int and 0 < value <= _SIDE_LIMIT:
            return value
    return None


def _text(config: Mapping[str, object], name: str) -> str | None:
    value = config.get(name)
    return value[:100] if isinstance(value, str) else None


def _flag(config: Mapping[str, object], text: Mapping[str, object], name: str) -> bool | None:
    for part in (config, text):
        value = part.get(name)
        if isinstance(value, bool):
            return value
    return None
