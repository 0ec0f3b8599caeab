"""What the settings of a training mean for its memory."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.measured_peaks import MODELS
from support.safetensors import CONFIG, decoder, write_safetensors

from tui.facts.memory import ByteRange
from tui.facts.setup import Quantization, Sharding, TrainingSetup
from tui.facts.weights import ModelFacts, Tensor
from tui.llamafactory.config import TrainingConfig
from tui.llamafactory.setup import training_setup
from tui.llamafactory.trainable import adapted_tensors, output_matrix, trainable
from tui.llamafactory.weights import read_model

SMALL = read_model(MODELS / "Qwen3-0.6B")


@pytest.fixture
def tiny(tmp_path: Path) -> ModelFacts:
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    write_safetensors(tmp_path / "model.safetensors", decoder())
    return read_model(tmp_path)


def of(
    model: ModelFacts = SMALL, *, versions: dict[str, str | None] | None = None, **values: Any
) -> TrainingSetup:
    config = TrainingConfig(values, Path("t.yaml"), cwd=Path("/nowhere"))
    return training_setup(config, model, world=1, versions=versions)


def adapter(model: ModelFacts, **values: Any) -> ByteRange:
    return trainable(model, TrainingConfig(values, Path("t.yaml"))).adapter


def test_an_adapter_goes_beside_every_linear_layer(tiny: ModelFacts) -> None:
    each = (16 + 16) + (8 + 16) + (64 + 16) + (16 + 64)
    assert adapter(tiny) == ByteRange(2 * 8 * each, 2 * 8 * each)
    assert adapter(tiny, lora_rank=4, lora_target="all").low == 2 * 4 * each
    assert adapter(tiny, use_dora=True).low == 2 * (8 * each + 16 + 8 + 64 + 16)


def test_targets_may_be_named(tiny: ModelFacts) -> None:
    both = 2 * 8 * (32 + 24)
    assert adapter(tiny, lora_target="q_proj,k_proj").low == both
    assert adapter(tiny, lora_target=["q_proj", "k_proj"]).low == both
    assert adapter(tiny, lora_target="nothing").high == 0


def test_modules_trained_beside_the_adapter_count_whole(tiny: ModelFacts) -> None:
    assert adapter(tiny, lora_target="q_proj", additional_target="embed_tokens").low == 2 * 8 * 32 + 1600


def test_encoders_get_no_adapter() -> None:
    seen = Tensor("model.visual.blocks.0.attn.q_proj.weight", (8, 8), "BF16")
    assert not adapted_tensors([seen], ["all"])
    assert not adapted_tensors([seen], ["q_proj"])


def test_packed_weights_give_a_range() -> None:
    model = ModelFacts("/m", "m", tensors=(Tensor("model.layers.0.q_proj.qweight", (2, 16), "I32"),))
    assert adapter(model) == ByteRange(8 * 18, 8 * 18 * 8)


def test_frozen_layer_training_takes_the_last_layers_or_the_first(tiny: ModelFacts) -> None:
    def names(**values: Any) -> set[str]:
        config = TrainingConfig({"finetuning_type": "freeze", **values}, Path("t.yaml"))
        return {tensor.name for tensor in trainable(tiny, config).own}

    assert all(".layers.1." in name for name in names(freeze_trainable_layers=1))
    assert names(freeze_trainable_layers=-1, freeze_trainable_modules="mlp") == {
        "model.layers.0.mlp.up_proj.weight",
        "model.layers.0.mlp.down_proj.weight",
    }
    assert "model.embed_tokens.weight" in names(freeze_extra_modules="embed_tokens")


def test_the_output_matrix_of_a_tied_model_is_its_embedding(tiny: ModelFacts) -> None:
    found = output_matrix(tiny)
    assert found is not None
    assert found.name == "model.embed_tokens.weight"


@pytest.mark.parametrize(
    ("values", "compute", "mixed", "trained"),
    [
        ({"bf16": True}, 2, True, 4),
        ({"fp16": True}, 2, True, 4),
        ({"pure_bf16": True}, 2, False, 2),
        ({}, 2, False, 4),
        ({"bf16": True, "deepspeed": {"zero_optimization": {"stage": 2}}}, 2, False, 2),
    ],
)
def test_types(values: dict[str, Any], compute: int, mixed: bool, trained: int) -> None:
    setup = of(**values)
    assert (setup.compute_bytes, setup.mixed, setup.trained_bytes) == (compute, mixed, trained)


def test_weights_of_another_type_are_cast_in_every_pass() -> None:
    assert of(fp16=True).casts_frozen
    assert not of(bf16=True).casts_frozen


@pytest.mark.parametrize(
    ("values", "batch"),
    [
        ({}, None),
        ({"eval_strategy": "no"}, None),
        ({"eval_strategy": False}, None),
        ({"eval_strategy": "steps"}, 8),
        ({"do_eval": True, "per_device_eval_batch_size": 2}, 2),
    ],
)
def test_evaluations_take_eight_unless_told_otherwise(values: dict[str, Any], batch: int | None) -> None:
    assert of(**values).eval_batch == batch


def test_preferences_put_two_sequences_into_one() -> None:
    setup = of(stage="dpo", per_device_train_batch_size=3, finetuning_type="full")
    assert setup.batch == 6
    assert setup.reference
    assert "stage_not_modelled" in setup.reasons
    assert not of(stage="dpo").reference


def test_liger_counts_only_where_it_works() -> None:
    assert of(enable_liger_kernel=True).fused_loss
    assert not of(enable_liger_kernel=True, stage="dpo").fused_loss
    absent = of(enable_liger_kernel=True, versions={"liger_kernel": None})
    assert (absent.fused_loss, absent.reasons) == (False, ("liger_unsupported", "counted_from_config"))
    strange = replace(SMALL, model_type="new", counted="files")
    assert of(strange, enable_liger_kernel=True).reasons == ("liger_unsupported",)


def test_quantization_is_read_unless_the_files_are_quantized() -> None:
    assert of(quantization_bit=4).quantization == Quantization("bnb", 4, True)
    assert of(quantization_bit=4, double_quantization=False).quantization == Quantization("bnb", 4, False)
    assert of(replace(SMALL, quantization="gptq"), quantization_bit=4).quantization is None


def test_sharding_from_a_file_and_from_the_config(tmp_path: Path) -> None:
    section = {
        "stage": 3,
        "offload_param": {"device": "cpu"},
        "stage3_max_live_parameters": 1e8,
        "reduce_bucket_size": "auto",
    }
    (tmp_path / "ds.json").write_text(json.dumps({"zero_optimization": section}))
    expected = Sharding(3, True, False, True, 100_000_000, None)
    assert of(deepspeed={"zero_optimization": section}).sharding == expected
    config = TrainingConfig({"deepspeed": "ds.json"}, tmp_path / "t.yaml", cwd=tmp_path)
    assert training_setup(config, SMALL, world=2).sharding == expected


@pytest.mark.parametrize("written", ["missing.json", "t.yaml"])
def test_a_deepspeed_file_that_cannot_be_read_is_said(tmp_path: Path, written: str) -> None:
    (tmp_path / "t.yaml").write_text("{")
    config = TrainingConfig({"deepspeed": written}, tmp_path / "t.yaml", cwd=tmp_path)
    setup = training_setup(config, SMALL, world=2)
    assert setup.sharding == Sharding(engine=True)
    assert "sharding_unknown" in setup.reasons


def test_fsdp_shards_too() -> None:
    assert of(fsdp="full_shard auto_wrap").sharding.stage == 3
    assert of(fsdp=["shard_grad_op", "offload"]).sharding.offload_optimizer


def test_own_optimizers_are_not_guessed() -> None:
    assert of(use_galore=True).optimizer == "unknown"
    assert "optimizer_unknown" in of(use_badam=True).reasons


def test_what_is_lacking_is_a_reason(tiny: ModelFacts) -> None:
    broken = replace(tiny, missing=("model-2.safetensors",), multimodal=True)
    assert of(broken).reasons == ("files_incomplete", "multimodal")
