"""Value against value."""

from typing import Any

import pytest
from support.preflight import blockers, facts, found

from tui.facts.weights import ModelFacts
from tui.llamafactory.deepspeed import Deepspeed
from tui.llamafactory.model_folder import ModelFolder

EVAL = {"eval_strategy": "steps", "eval_steps": 5, "val_size": 0.1}
ZERO3 = Deepspeed("/x/ds.json", stage=3, gathers=True)


@pytest.mark.parametrize(
    "values",
    [
        {"fp16": True},
        {"stage": "dpo", "neat_packing": True},
        {"stage": "kto", "train_on_prompt": True},
        {"mask_history": True, "train_on_prompt": True},
        {"quantization_bit": 4, "finetuning_type": "full"},
        {"quantization_bit": 4, "resize_vocab": True},
        {"adapter_name_or_path": "a", "finetuning_type": "freeze"},
        {**EVAL, "eval_dataset": "more"},
        {"streaming": True, "max_samples": 3},
        {"use_galore": True},
        {"use_apollo": True, "finetuning_type": "full", "deepspeed": "ds.json"},
        {"stage": "rm", "load_best_model_at_end": True, **EVAL, "save_steps": 5},
    ],
)
def test_what_excludes_each_other_blocks(values: dict[str, Any]) -> None:
    assert "values_conflict" in blockers(facts(values, torchrun=True))


@pytest.mark.parametrize(
    "values",
    [
        {"pure_bf16": True, "bf16": None},
        {"quantization_bit": 8},
        {"quantization_bit": 4, "quantization_method": "hqq"},
        {"use_unsloth": True},
        {"predict_with_generate": True, "val_size": 0.1},
    ],
)
def test_what_zero_3_excludes(values: dict[str, Any]) -> None:
    assert "values_conflict" in blockers(facts(values, deepspeed=ZERO3, torchrun=True, processes=1))
    assert "values_conflict" not in blockers(facts(values, torchrun=True, processes=1))


def test_zero_3_and_a_quantized_model() -> None:
    stored = ModelFolder(
        "/m", True, has_tokenizer=True, facts=ModelFacts("/m", "m", file_bytes=1, quantization="gptq")
    )
    assert "values_conflict" in blockers(facts(deepspeed=ZERO3, model=stored, torchrun=True))
    assert found(facts({"quantization_bit": 4}, deepspeed=ZERO3))["zero3_quantized"].level == "warning"


@pytest.mark.parametrize(
    ("values", "needed"),
    [
        ({"model_name_or_path": None}, "model_name_or_path"),
        ({"dataset": None}, "dataset"),
        ({"eval_strategy": "steps"}, "val_size"),
        ({"streaming": True, "max_steps": None}, "max_steps"),
        ({"stage": "ppo"}, "reward_model"),
        ({"do_predict": True, "val_size": 0.1}, "predict_with_generate"),
        ({"load_best_model_at_end": True}, "eval_strategy"),
    ],
)
def test_what_a_setting_needs(values: dict[str, Any], needed: str) -> None:
    assert found(facts(values))["value_needed"].evidence["key"] == needed
    assert "value_needed" in blockers(facts(values))


@pytest.mark.parametrize(
    "values",
    [
        {"per_device_train_batch_size": 0},
        {"gradient_accumulation_steps": 0},
        {"quantization_bit": 3},
        {"load_best_model_at_end": True, **EVAL, "save_steps": 7},
    ],
)
def test_numbers_out_of_range(values: dict[str, Any]) -> None:
    assert "value_wrong" in blockers(facts(values))


def test_a_config_that_asks_for_nothing() -> None:
    assert blockers(facts({"do_train": None})) == {"nothing_to_do"}


def test_deepspeed_on_one_card_needs_torchrun() -> None:
    assert "deepspeed_needs_torchrun" in blockers(facts({"deepspeed": "ds.json"}, deepspeed=ZERO3))
    assert "deepspeed_needs_torchrun" not in blockers(facts({"deepspeed": "ds.json"}, torchrun=True))


def test_the_default_evaluation_batch() -> None:
    finding = found(facts({**EVAL, "per_device_train_batch_size": 2}))["eval_batch_default"]
    assert finding.evidence == {"train": 2, "eval": 8}
    assert finding.actions[0].arguments == ("per_device_eval_batch_size=2",)
    assert "eval_batch_default" not in found(facts({**EVAL, "per_device_eval_batch_size": 2}))
    assert "eval_batch_default" not in found(facts({**EVAL, "per_device_train_batch_size": 8}))
    assert "eval_batch_default" not in found(facts())


def test_validation_data_that_nobody_evaluates() -> None:
    assert found(facts({"val_size": 0.1}))["eval_data_unused"].level == "warning"
    assert "eval_data_unused" not in found(facts(EVAL))


def test_evaluations_and_saves_beyond_the_end() -> None:
    assert found(facts({**EVAL, "eval_steps": 11}))["eval_never"].evidence == {"steps": 10, "every": 11}
    assert "eval_never" not in found(facts({**EVAL, "eval_steps": 10}))
    assert found(facts({"save_steps": None}))["save_never"].evidence == {"steps": 10, "every": 500}
    assert "save_never" not in found(facts({"save_steps": 10}))
    assert "save_never" not in found(facts({"save_steps": 0.5}))


def test_packing_fills_every_sequence() -> None:
    assert found(facts({"neat_packing": True, "cutoff_len": 4096}))["packing_fills"].evidence == {
        "cutoff": 4096
    }
    assert "packing_fills" not in found(facts({"packing": False, "stage": "pt"}))
