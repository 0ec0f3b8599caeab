"""Packages that an option needs, and ranges."""

from dataclasses import replace
from typing import Any

import pytest
from support.preflight import blockers, facts, found

from tui.facts.weights import ModelFacts
from tui.insight.preflight.facts import Installed, PreflightFacts
from tui.llamafactory.deepspeed import Deepspeed
from tui.llamafactory.model_folder import ModelFolder
from tui.llamafactory.requirements import Requirement

DRY_RUN = ("uv", "pip", "install", "--dry-run")
INSTALLED = Installed({"torch": "2.6.0", "transformers": "4.57.1"}, dry_run=DRY_RUN)


def having(values: dict[str, Any], versions: dict[str, str] | None = None, **changes: Any) -> PreflightFacts:
    installed = replace(INSTALLED, versions={**INSTALLED.versions, **(versions or {})})
    return facts(values, **{"installed": installed, **changes})


@pytest.mark.parametrize(
    ("values", "package"),
    [
        ({"quantization_bit": 4}, "bitsandbytes>=0.39.0"),
        ({"quantization_bit": 8}, "bitsandbytes>=0.37.0"),
        ({"quantization_bit": 4, "quantization_method": "hqq"}, "hqq"),
        ({"enable_liger_kernel": True}, "liger-kernel"),
        ({"use_swanlab": True}, "swanlab"),
        ({"plot_loss": True}, "matplotlib"),
        ({"report_to": ["none", "wandb"]}, "wandb"),
        ({"use_unsloth": True}, "unsloth"),
    ],
)
def test_an_option_needs_its_package(values: dict[str, Any], package: str) -> None:
    finding = found(having(values))["package_missing"]
    assert (finding.evidence["requirement"], finding.blocks) == (package, True)
    assert finding.evidence["dry_run"] == f"uv pip install --dry-run '{package}'"
    assert finding.actions[0].arguments == (*DRY_RUN, package)


def test_what_is_there_and_fits_is_no_finding() -> None:
    assert found(having({"quantization_bit": 4}, {"bitsandbytes": "0.43.1"})) == {}
    assert found(having({"plot_loss": True}, {"matplotlib": "3.9"})) == {}


def test_an_old_version_is_named() -> None:
    finding = found(having({"quantization_bit": 4}, {"bitsandbytes": "0.38.1"}))["package_out_of_range"]
    assert finding.evidence["version"] == "0.38.1"


def test_tensorboard_has_two_names() -> None:
    assert "package_missing" in found(having({"report_to": "tensorboard"}))
    assert "package_missing" not in found(having({"report_to": "tensorboard"}, {"tensorboardx": "2.6"}))


def test_zero_3_needs_a_newer_bitsandbytes() -> None:
    sharded = Deepspeed("/x", stage=3, gathers=True)
    planned = having({"quantization_bit": 4}, {"bitsandbytes": "0.42.0"}, deepspeed=sharded, torchrun=True)
    assert found(planned)["package_out_of_range"].evidence["requirement"] == "bitsandbytes>=0.43.0"


def test_deepspeed_in_the_range_that_this_llamafactory_states() -> None:
    stated = (Requirement("deepspeed"), Requirement("deepspeed", ">=0.10.0,<=0.16.9"))
    installed = replace(INSTALLED, options=stated, versions={"deepspeed": "0.17.1"})
    planned = facts({"deepspeed": "ds.json"}, installed=installed, torchrun=True)
    assert found(planned)["package_out_of_range"].evidence["requirement"] == "deepspeed>=0.10.0,<=0.16.9"
    fits = replace(installed, versions={"deepspeed": "0.16.9"})
    assert "package_out_of_range" not in found(facts({"deepspeed": "ds.json"}, installed=fits, torchrun=True))


def test_what_llamafactory_checks_at_every_start() -> None:
    installed = replace(INSTALLED, basic=(Requirement("transformers", ">=4.55.0,<=5.6.0"),))
    assert blockers(facts(installed=installed)) == set()
    newer = replace(installed, versions={"transformers": "5.6.2"})
    assert blockers(facts(installed=newer)) == {"package_out_of_range"}
    assert blockers(facts(installed=newer, environ={"DISABLE_VERSION_CHECK": "1"})) == set()


def test_packages_that_bring_their_own_torch() -> None:
    assert found(having({"use_unsloth": True}))["install_replaces_torch"].evidence == {"torch": "2.6.0"}
    assert "install_replaces_torch" not in found(having({"quantization_bit": 4}))


def test_a_model_that_was_quantized_before() -> None:
    stored = ModelFolder(
        "/m", True, has_tokenizer=True, facts=ModelFacts("/m", "m", file_bytes=1, quantization="gptq")
    )
    assert found(having({}, model=stored))["package_missing"].evidence["requirement"] == "gptqmodel>=2.0.0"


def test_flash_attention_falls_back_without_a_word() -> None:
    assert found(having({"flash_attn": "fa2"}))["flash_attention_missing"].level == "advice"
    assert found(having({"flash_attn": "fa2"}, {"flash_attn": "2.7"})) == {}
