"""A model folder, whatever lies in it."""

import json
import struct
from pathlib import Path

import pytest
from support.measured_peaks import MODELS
from support.safetensors import CONFIG, decoder, write_safetensors

from tui.facts.weights import ModelFacts
from tui.llamafactory.safetensors import read_header
from tui.llamafactory.weights import read_model

LAYER = 16 * 16 + 8 * 16 + 2 * 64 * 16 + 16
PARAMETERS = 100 * 16 + 2 * LAYER + 16


def folder_with(tmp_path: Path, config: object = CONFIG, **tensors: object) -> Path:
    (tmp_path / "config.json").write_text(json.dumps(config))
    write_safetensors(tmp_path / "model.safetensors", decoder(**tensors))  # type: ignore[arg-type]  # its own
    return tmp_path


def test_one_file_with_its_config(tmp_path: Path) -> None:
    model = read_model(folder_with(tmp_path))
    assert model.parameters == PARAMETERS
    assert (model.shape.hidden, model.shape.layers, model.shape.head_dim) == (16, 2, 4)
    assert (model.dtype, model.tied, model.counted) == ("bfloat16", True, "files")
    assert not model.unknown
    assert model.file_bytes == (tmp_path / "model.safetensors").stat().st_size


def test_a_tied_output_matrix_counts_once_though_the_file_has_it(tmp_path: Path) -> None:
    assert read_model(folder_with(tmp_path, head=True)).parameters == PARAMETERS


def test_an_untied_output_matrix_counts(tmp_path: Path) -> None:
    model = read_model(folder_with(tmp_path, {**CONFIG, "tie_word_embeddings": False}, head=True))
    assert (model.parameters, model.tied) == (PARAMETERS + 1600, False)


def test_without_a_word_in_the_config_the_files_tell(tmp_path: Path) -> None:
    silent = {key: value for key, value in CONFIG.items() if key != "tie_word_embeddings"}
    assert read_model(folder_with(tmp_path, silent)).tied
    assert not read_model(folder_with(tmp_path, silent, head=True)).tied


def sharded(tmp_path: Path, present: int, total: int = 3) -> ModelFacts:
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    names = list(decoder())
    files = [f"model-{number:05}-of-{total:05}.safetensors" for number in range(1, total + 1)]
    weight_map = {name: files[number % total] for number, name in enumerate(names)}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    for file in files[:present]:
        held = {name: decoder()[name] for name in names if weight_map[name] == file}
        write_safetensors(tmp_path / file, held)
    return read_model(tmp_path)


def test_shards_are_one_model(tmp_path: Path) -> None:
    model = sharded(tmp_path, 3)
    assert (model.parameters, model.missing) == (PARAMETERS, ())


def test_missing_shards_are_named_and_the_rest_is_counted(tmp_path: Path) -> None:
    model = sharded(tmp_path, 1)
    assert model.missing == ("model-00002-of-00003.safetensors", "model-00003-of-00003.safetensors")
    assert 0 < model.parameters < PARAMETERS
    assert model.unknown == {"parameters": "missing_file"}


def test_a_truncated_shard_is_named(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    write_safetensors(tmp_path / "model.safetensors", decoder(), lacking=1)
    model = read_model(tmp_path)
    assert (model.truncated, model.parameters) == (("model.safetensors",), PARAMETERS)
    assert model.unknown == {"parameters": "unreadable_file"}


def test_an_index_with_a_path_in_it_reads_nothing_elsewhere(tmp_path: Path) -> None:
    outside = tmp_path / "outside.safetensors"
    write_safetensors(outside, decoder())
    model = tmp_path / "model"
    model.mkdir()
    index = {"weight_map": {"a": "../outside.safetensors", "b": str(outside), "c": 7}}
    (model / "model.safetensors.index.json").write_text(json.dumps(index))
    facts = read_model(model)
    assert facts.parameters == 0
    assert facts.truncated == ("model.safetensors.index.json",)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\0" * 7,
        struct.pack("<Q", 1 << 60) + b"{}",
        struct.pack("<Q", 0),
        struct.pack("<Q", 100) + b"{}",
        struct.pack("<Q", 4) + b"[1] ",
        struct.pack("<Q", 8) + b"not json",
        struct.pack("<Q", 9) + b'{"a": 1} ',
        struct.pack("<Q", 50000) + b"[" * 50000,
    ],
)
def test_what_is_no_safetensors_file_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    (tmp_path / "model.safetensors").write_bytes(content)
    with pytest.raises(ValueError, match=r"."):
        read_header(tmp_path / "model.safetensors")
    model = read_model(tmp_path)
    assert model.truncated == ("model.safetensors",)
    assert model.unknown["tensors"] == "unreadable_file"
    assert model.shape.hidden == 16


@pytest.mark.parametrize(
    "entry",
    [
        {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]},
        {"dtype": "F32", "shape": [True], "data_offsets": [0, 4]},
        {"dtype": "F32", "shape": [1 << 50], "data_offsets": [0, 4]},
        {"dtype": "F32", "shape": [1], "data_offsets": [0]},
        {"dtype": 3, "shape": [1], "data_offsets": [0, 4]},
        {"shape": [1], "data_offsets": [0, 4]},
        [],
    ],
)
def test_an_impossible_tensor_makes_the_file_unusable(tmp_path: Path, entry: object) -> None:
    text = json.dumps({"a.weight": entry}).encode()
    (tmp_path / "x.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + b"\0" * 4)
    with pytest.raises(ValueError, match=r"."):
        read_header(tmp_path / "x.safetensors")


def test_a_large_model_is_read_from_its_headers_only(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    write_safetensors(
        tmp_path / "model.safetensors", {"model.embed_tokens.weight": ("BF16", [1 << 20, 1 << 14])}
    )
    assert read_model(tmp_path).parameters == 1 << 34


@pytest.mark.parametrize("text", [None, "", "{", "[]", "3", "{" * 100_000])
def test_without_a_config_the_weights_are_still_counted(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "config.json").write_text(text)
    write_safetensors(tmp_path / "model.safetensors", decoder())
    model = read_model(tmp_path)
    assert model.parameters == PARAMETERS
    assert model.unknown == {"shape": "missing_file" if text is None else "unreadable_file"}


def test_an_unknown_architecture_says_that_its_shape_is_not_told(tmp_path: Path) -> None:
    model = read_model(folder_with(tmp_path, {"model_type": "new", "width": 16}))
    assert model.unknown == {"shape": "not_reported"}
    assert model.parameters == PARAMETERS


def test_impossible_sides_are_unknown(tmp_path: Path) -> None:
    config = {**CONFIG, "hidden_size": -16, "num_hidden_layers": "2", "vocab_size": True}
    shape = read_model(folder_with(tmp_path, config)).shape
    assert (shape.hidden, shape.layers, shape.vocabulary) == (None, None, None)


def test_an_empty_folder(tmp_path: Path) -> None:
    model = read_model(tmp_path)
    assert model.unknown == {"shape": "missing_file", "tensors": "missing_file"}
    assert (model.tensors, model.file_bytes) == ((), None)


def test_other_weight_files_have_a_size_and_no_tensors(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    (tmp_path / "pytorch_model.bin").write_bytes(b"\0" * 1000)
    model = read_model(tmp_path)
    assert (model.file_bytes, model.unknown["tensors"]) == (1000, "missing_file")


@pytest.mark.parametrize(
    ("name", "parameters"), [("Qwen2.5-7B-Instruct", 7_615_616_512), ("Qwen3-0.6B", 596_049_920)]
)
def test_plain_decoders_are_worked_out_from_their_config(name: str, parameters: int) -> None:
    model = read_model(MODELS / name)
    assert (model.parameters, model.counted) == (parameters, "config")
    assert model.shape.qk_norm == (name == "Qwen3-0.6B")


def test_the_language_part_of_a_model_of_several(tmp_path: Path) -> None:
    model = read_model(
        folder_with(tmp_path, {"model_type": "vl", "text_config": CONFIG, "vision_config": {}})
    )
    assert model.shape.hidden == 16
    assert model.multimodal


def test_experts_count_as_many_as_are_chosen(tmp_path: Path) -> None:
    config = {**CONFIG, "num_experts_per_tok": 4, "moe_intermediate_size": 8, "n_shared_experts": 2}
    assert read_model(folder_with(tmp_path, config)).shape.intermediate == 48
