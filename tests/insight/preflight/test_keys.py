"""Names of settings, and values that YAML made something else of."""

from dataclasses import replace
from pathlib import Path

import pytest
from support.preflight import blockers, facts, found

from tui.insight.preflight import preflight
from tui.insight.preflight.facts import Settings
from tui.llamafactory.known_settings import newest_settings


def test_a_misspelt_key_has_its_nearest() -> None:
    finding = found(facts({"lora_rnak": 8}))["key_misspelt"]
    assert (finding.subject, finding.evidence["nearest"], finding.blocks) == ("lora_rnak", "lora_rank", True)


def test_an_old_name_is_told_its_new_one() -> None:
    assert (
        found(facts({"evaluation_strategy": "steps"}))["key_misspelt"].evidence["nearest"] == "eval_strategy"
    )


def test_a_key_of_another_release_is_told_apart() -> None:
    settings = Settings(newest_settings(), True, {"kt_mode": ("llamafactory 0.9.4",)})
    finding = found(facts({"kt_mode": "x"}, settings=settings))["key_of_other_release"]
    assert finding.evidence["releases"] == "llamafactory 0.9.4"
    assert finding.blocks


def test_keys_only_block_where_the_environment_was_read_and_refuses_them() -> None:
    unsure = Settings(newest_settings(), exact=False)
    assert blockers(facts({"zzzzz": 1}, settings=unsure)) == set()
    assert blockers(facts({"zzzzz": 1}, environ={"ALLOW_EXTRA_ARGS": "1"})) == set()
    assert blockers(facts({"zzzzz": 1}, environ={"ALLOW_EXTRA_ARGS": "yes"})) == {"key_unknown"}


@pytest.mark.parametrize(
    ("key", "text"), [("learning_rate", "5e-5"), ("lora_rank", "8"), ("val_size", "0,1")]
)
def test_a_number_in_quotes_is_text(key: str, text: str) -> None:
    finding = found(facts({key: text}))["number_as_text"]
    assert finding.blocks
    assert finding.evidence["text"] == text


def test_a_wrong_value_of_something_else_only_warns() -> None:
    assert not found(facts({"vllm_maxlen": "4096"}))["number_as_text"].blocks


def test_any_text_switches_a_flag_on() -> None:
    assert found(facts({"packing": "no"}))["flag_as_text"].blocks
    assert not found(facts({"plot_loss": "yes"}))["flag_as_text"].blocks
    assert found(facts({"packing": "no"}))["flag_as_text"].actions[0].arguments == ("packing=false",)


def test_an_unquoted_no_became_false() -> None:
    finding = found(facts({"eval_strategy": False}))["word_became_flag"]
    assert finding.blocks
    assert finding.actions[0].arguments == ('eval_strategy="no"',)


def test_a_word_that_is_not_in_the_list() -> None:
    finding = found(facts({"stage": "sftt"}))["value_wrong"]
    assert finding.evidence["allowed"] == "pt, sft, rm, ppo, dpo, kto"
    assert finding.actions[0].arguments == ("stage=sft",)


def test_a_secret_is_not_shown_as_evidence() -> None:
    secret = "hf_" + "Ab1" * 12
    for key in ("lora_rank", "stage", "template", "packing", secret):
        assert secret not in str(preflight(facts({key: secret})))


def test_json_is_no_trap_where_a_copy_is_read() -> None:
    planned = facts()
    planned = replace(planned, config=replace(planned.config, path=Path("/x/train.json")))
    assert found(planned)["json_config"].level == "info"
    assert blockers(replace(planned, reads_copy=False)) == {"json_refused"}
