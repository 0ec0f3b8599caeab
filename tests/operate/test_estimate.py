"""Estimates of whatever a config says, and of whatever lies where it points."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.measured_peaks import MODELS
from support.safetensors import CONFIG, decoder, write_safetensors
from support.samples import gpu

from tui.facts.estimate import Estimate
from tui.facts.steps import TokenLengths
from tui.llamafactory.config import TrainingConfig
from tui.operate.estimate import estimate_training, find_model, world_size
from tui.text.estimate_report import estimate_report

NUMBERS = st.one_of(
    st.integers(-5, 5),
    st.integers(-(10**18), 10**18),
    st.floats(allow_nan=True, allow_infinity=True),
    st.booleans(),
    st.none(),
    st.text(max_size=8),
    st.lists(st.integers(), max_size=2),
)
KEYS = (
    *("per_device_train_batch_size", "gradient_accumulation_steps", "num_train_epochs", "max_steps"),
    *("val_size", "cutoff_len", "lora_rank", "quantization_bit", "per_device_eval_batch_size", "max_samples"),
    *("preprocessing_num_workers", "freeze_trainable_layers", "oft_block_size", "deepspeed", "fsdp", "optim"),
)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    (folder / "model").mkdir()
    (folder / "model" / "config.json").write_text(json.dumps(CONFIG))
    write_safetensors(folder / "model" / "model.safetensors", decoder())
    rows = [{"instruction": "a", "input": "", "output": "b"}] * 20
    (folder / "x.json").write_text(json.dumps(rows))
    (folder / "dataset_info.json").write_text(json.dumps({"x": {"file_name": "x.json"}}))
    return folder


def of(folder: Path, lengths: TokenLengths | None = None, **values: Any) -> Estimate:
    base: dict[str, Any] = {"model_name_or_path": "model", "dataset": "x", "dataset_dir": ".", "bf16": True}
    config = TrainingConfig({**base, **values}, folder / "t.yaml", cwd=folder)
    return estimate_training(
        config, None, {"HOME": str(folder)}, processes=1, torchrun=False, cards=[gpu()], lengths=lengths
    )


@given(
    values=st.dictionaries(st.sampled_from(KEYS), NUMBERS, max_size=6),
    method=st.sampled_from(["lora", "full", "freeze", "oft", "other"]),
    stage=st.sampled_from(["sft", "pt", "dpo", "ppo", "rm"]),
    switches=st.sets(st.sampled_from(["packing", "eval", "streaming", "neat_packing", "use_dora"])),
)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_settings_give_an_estimate_that_can_be_shown(
    project: Path, values: dict[str, Any], method: str, stage: str, switches: set[str]
) -> None:
    more: dict[str, Any] = {switch: True for switch in switches if switch != "eval"}
    if "eval" in switches:
        more["eval_strategy"] = "steps"
    result = of(project, finetuning_type=method, stage=stage, **more, **values)
    memory = result.memory
    assert memory.needed is not None
    assert memory.reserved is not None
    assert 0 < memory.needed.low <= memory.needed.high
    assert memory.reserved.low >= memory.needed.low
    assert all(0 <= part.bytes.low <= part.bytes.high for part in (*memory.parts, *memory.host))
    total = result.steps.total
    assert total is None or 0 <= total.low <= total.high
    assert estimate_report(result)


def test_a_model_of_a_hub_is_found_in_its_cache(tmp_path: Path) -> None:
    snapshot = tmp_path / "hub" / "models--Qwen--Qwen3-0.6B" / "snapshots" / "abc"
    snapshot.mkdir(parents=True)
    (snapshot / "config.json").write_text((MODELS / "Qwen3-0.6B" / "config.json").read_text())
    (snapshot.parents[1] / "refs").mkdir()
    (snapshot.parents[1] / "refs" / "main").write_text("abc")
    config = TrainingConfig({"model_name_or_path": "Qwen/Qwen3-0.6B"}, tmp_path / "t.yaml", cwd=tmp_path)
    found = find_model(config, {"HF_HUB_CACHE": str(tmp_path / "hub")})
    assert found is not None
    assert (found.name, found.parameters) == ("Qwen3-0.6B", 596_049_920)
    assert find_model(config, {"HF_HUB_CACHE": str(tmp_path)}) is None


@pytest.mark.parametrize("name", ["nothing/here", "", "a\0b", "../..", 7])
def test_a_model_that_is_not_here_leaves_the_steps(project: Path, name: object) -> None:
    result = of(project, model_name_or_path=name)
    if name != "../..":
        assert result.memory.needed is None
        assert "model_absent" in result.memory.reasons
    assert result.steps.total is not None


def test_missing_shards_are_told_with_what_is_known(tmp_path: Path, project: Path) -> None:
    for name in ("x.json", "dataset_info.json"):
        (tmp_path / name).write_text((project / name).read_text())
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text(json.dumps(CONFIG))
    index = {
        "weight_map": {"model.embed_tokens.weight": "model-1.safetensors", "rest": "model-2.safetensors"}
    }
    (model / "model.safetensors.index.json").write_text(json.dumps(index))
    write_safetensors(model / "model-1.safetensors", {"model.embed_tokens.weight": ("BF16", [100, 16])})
    result = of(tmp_path)
    assert result.missing == ("model-2.safetensors",)
    assert "files_incomplete" in result.memory.reasons
    assert result.checks[0].verdict in {"fits", "unknown"}
    assert "model-2.safetensors" in estimate_report(result)


def test_lengths_reach_steps_memory_and_summary(project: Path) -> None:
    lengths = TokenLengths({30: 20}, complete=True)
    result = of(project, lengths, packing=True, cutoff_len=61)
    assert result.summary is not None
    assert result.summary.longest == 30
    assert result.steps.samples is not None
    assert result.steps.samples.low == 10
    assert of(project, lengths).memory.batch_lengths == (32, 32)


def test_a_card_is_asked_for_what_is_free(project: Path) -> None:
    result = of(project)
    card = gpu()
    assert (result.card, result.card_total, result.card_free) == (
        card.name,
        card.memory.total,
        card.memory.free,
    )
    assert [check.name for check in result.checks] == ["disk", "weights", "training"]


@pytest.mark.parametrize(
    ("processes", "nodes", "world"),
    [(2, "1", 2), (2, "3", 6), (None, "1", None), (2, "x", None), (0, "1", None)],
)
def test_ranks_of_all_machines(processes: int | None, nodes: str, world: int | None) -> None:
    assert world_size(processes, {"NNODES": nodes}) == world
