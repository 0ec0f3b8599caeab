"""Folders of models and adapters."""

import json
import os
import struct
from pathlib import Path

import pytest

from tui.llamafactory.model_folder import read_adapter_folder, read_model_folder


def write_tensors(path: Path, name: str = "w", size: int = 64) -> None:
    header = json.dumps({name: {"dtype": "F16", "shape": [size // 2], "data_offsets": [0, size]}}).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + bytes(size))


@pytest.fixture
def model(tmp_path: Path) -> Path:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "llama"}))
    (tmp_path / "tokenizer.json").write_text("{}")
    write_tensors(tmp_path / "model.safetensors")
    return tmp_path


def test_a_whole_model(model: Path) -> None:
    found = read_model_folder(model)
    assert (found.is_whole, found.has_tokenizer, found.config_problem) == (True, True, None)
    assert found.size == (model / "model.safetensors").stat().st_size


def test_what_may_be_lacking(model: Path) -> None:
    os.truncate(model / "model.safetensors", 100)
    assert not read_model_folder(model).is_whole
    (model / "model.safetensors").unlink()
    assert not read_model_folder(model).is_whole
    (model / "tokenizer.json").unlink()
    assert not read_model_folder(model).has_tokenizer
    (model / "config.json").write_text("{")
    assert read_model_folder(model).config_problem == "not_json"
    assert not read_model_folder(model / "gone").exists
    assert not read_model_folder(Path("a\0b")).exists


def test_the_mark_of_transformers_5(model: Path) -> None:
    (model / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "TokenizersBackend"}))
    assert read_model_folder(model).needs_transformers_5
    (model / "tokenizer_config.json").write_bytes(b"\xff")
    assert not read_model_folder(model).needs_transformers_5


def test_an_adapter(tmp_path: Path) -> None:
    assert not read_adapter_folder(tmp_path / "gone").exists
    assert read_adapter_folder(tmp_path).config_problem == "missing"
    (tmp_path / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": "Qwen/Qwen3-0.6B"}))
    assert (read_adapter_folder(tmp_path).has_weights, read_adapter_folder(tmp_path).base_model) == (
        False,
        "Qwen/Qwen3-0.6B",
    )
    weights = tmp_path / "adapter_model.safetensors"
    write_tensors(weights)
    assert (read_adapter_folder(tmp_path).has_weights, read_adapter_folder(tmp_path).is_truncated) == (
        True,
        False,
    )
    os.truncate(weights, weights.stat().st_size - 1)
    assert read_adapter_folder(tmp_path).is_truncated
    weights.write_bytes(b"GARBAGE")
    assert read_adapter_folder(tmp_path).is_truncated
