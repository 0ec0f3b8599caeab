"""The preflight as a whole: a sound config passes, and what blocks comes first."""

from typing import Any

import pytest
from support.preflight import blockers, codes, facts, found

from tui.insight.preflight import preflight


def test_a_sound_config_passes_without_a_word() -> None:
    assert found(facts()) == {}


def test_what_blocks_comes_first_then_the_worse() -> None:
    planned = facts(
        {"bf16": None, "lora_rnak": 8, "eval_strategy": "steps", "val_size": 0.1, "packing": True}
    )
    assert codes(preflight(planned)) == [
        "key_misspelt",
        "eval_batch_default",
        "eval_never",
        "full_precision",
        "packing_fills",
    ]


HOSTILE: tuple[Any, ...] = (
    *(None, [], {}, "x" * 10_000, -1, 1e308, float("nan"), float("inf"), True, ["\0"]),
    *({"a": {"b": []}}, "\0\x1b[31m", 10**400, [[1]], "0"),
)
KEYS = (
    *("stage", "val_size", "max_steps", "deepspeed", "dataset", "report_to", "quantization_bit", "packing"),
    *("per_device_train_batch_size", "save_steps", "template", "eval_strategy", "bf16", "eval_steps"),
    *("resume_from_checkpoint", "adapter_name_or_path", "dataloader_num_workers", "finetuning_type"),
    *("load_best_model_at_end", "save_total_limit", "quantization_method", "model_name_or_path"),
)


@pytest.mark.parametrize("key", KEYS)
def test_hostile_values_are_findings_and_no_traceback(key: str) -> None:
    for value in HOSTILE:
        for more in ({}, {"eval_strategy": "steps", "load_best_model_at_end": True}):
            preflight(facts({**more, key: value}))


def test_a_config_of_another_stage_is_judged_by_its_rules() -> None:
    assert "value_needed" in blockers(facts({"stage": "ppo"}))
    assert "values_conflict" in blockers(facts({"stage": "dpo", "neat_packing": True}))
    assert blockers(facts({"stage": "kto"})) == set()
    assert "packing_fills" in found(facts({"stage": "pt"}))
