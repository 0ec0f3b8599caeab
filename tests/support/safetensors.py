"""Safetensors files with a header and no numbers: the data is a hole in the file."""

import json
import struct
from collections.abc import Mapping
from pathlib import Path

BYTES = {"F32": 4, "F16": 2, "BF16": 2, "U8": 1, "I32": 4, "F8_E4M3": 1}


def write_safetensors(path: Path, tensors: Mapping[str, tuple[str, list[int]]], *, lacking: int = 0) -> Path:
    """A file of the right size for its tensors, or ``lacking`` bytes shorter."""
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, (dtype, shape) in tensors.items():
        size = BYTES[dtype]
        for side in shape:
            size *= side
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(header).encode()
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + end - lacking)
    return path


def decoder(layers: int = 2, dtype: str = "BF16", *, head: bool = False) -> dict[str, tuple[str, list[int]]]:
    """The tensors of a tiny decoder with 16 hidden numbers and 100 words."""
    tensors: dict[str, tuple[str, list[int]]] = {"model.embed_tokens.weight": (dtype, [100, 16])}
    for number in range(layers):
        tensors |= {
            f"model.layers.{number}.self_attn.q_proj.weight": (dtype, [16, 16]),
            f"model.layers.{number}.self_attn.k_proj.weight": (dtype, [8, 16]),
            f"model.layers.{number}.mlp.up_proj.weight": (dtype, [64, 16]),
            f"model.layers.{number}.mlp.down_proj.weight": (dtype, [16, 64]),
            f"model.layers.{number}.input_layernorm.weight": (dtype, [16]),
        }
    tensors["model.norm.weight"] = (dtype, [16])
    if head:
        tensors["lm_head.weight"] = (dtype, [100, 16])
    return tensors


CONFIG = {
    "model_type": "tiny",
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 64,
    "vocab_size": 100,
    "tie_word_embeddings": True,
    "torch_dtype": "bfloat16",
}
