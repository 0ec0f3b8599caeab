"""Models, adapters, data sets, templates and DeepSpeed files that are named."""

from dataclasses import replace
from typing import Any

import pytest
from support.preflight import GIB, blockers, facts, found

from tui.facts.weights import ModelFacts
from tui.insight.preflight.facts import Installed, Place
from tui.insight.preflight.files import size_by_name
from tui.llamafactory.dataset_info import Dataset, DatasetInfo, DatasetProblem
from tui.llamafactory.deepspeed import Deepspeed
from tui.llamafactory.hub_cache import HubModel
from tui.llamafactory.model_folder import AdapterFolder, ModelFolder

WEIGHTS = ModelFacts("/m", "m", file_bytes=GIB)
MODEL = ModelFolder("/m", True, has_tokenizer=True, facts=WEIGHTS)
HUB = HubModel("Qwen/Qwen3-8B", "huggingface", "/root/.cache/huggingface/hub")


@pytest.mark.parametrize(
    ("model", "code"),
    [
        (ModelFolder("/m", False), "model_missing"),
        (replace(MODEL, config_problem="not_json"), "model_unreadable"),
        (replace(MODEL, has_tokenizer=False), "tokenizer_missing"),
        (replace(MODEL, needs_transformers_5=True), "model_too_new"),
        (replace(MODEL, facts=replace(WEIGHTS, missing=("a.safetensors",))), "shards_missing"),
        (replace(MODEL, facts=replace(WEIGHTS, truncated=("a.safetensors",))), "weights_truncated"),
        (replace(MODEL, facts=replace(WEIGHTS, file_bytes=None)), "weights_missing"),
    ],
)
def test_a_model_that_cannot_be_loaded_blocks(model: ModelFolder, code: str) -> None:
    assert blockers(facts(model=model)) == {code}


def test_a_sound_model_passes() -> None:
    assert found(facts(model=MODEL)) == {}
    newer = Installed({"transformers": "5.6.2"})
    assert found(facts(model=replace(MODEL, needs_transformers_5=True), installed=newer)) == {}


def test_a_model_that_would_be_downloaded() -> None:
    finding = found(facts(hub=HUB, hub_place=Place("/", 30 * GIB)))["model_not_cached"]
    assert (finding.evidence["size"], finding.evidence["free"]) == (16_000_000_000, 30 * GIB)
    assert not finding.blocks
    assert found(facts(hub=HUB, hub_place=Place("/", 10 * GIB)))["download_too_large"].level == "danger"
    assert "model_not_cached_offline" in blockers(facts(hub=replace(HUB, offline=True)))
    assert "model_half_downloaded" in found(facts(hub=replace(HUB, unfinished=True)))


def test_a_model_in_the_cache() -> None:
    cached = replace(HUB, snapshot="/m")
    assert found(facts(hub=cached, model=MODEL)) == {}
    half = replace(MODEL, facts=replace(WEIGHTS, missing=("a.safetensors",)))
    assert blockers(facts(hub=cached, model=half)) == set()
    assert "model_half_downloaded" in found(facts(hub=cached, model=half))


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("Qwen/Qwen3-8B", 16_000_000_000),
        ("Qwen/Qwen3-0.6B", 1_200_000_000),
        ("org/model-7b-chat", 14_000_000_000),
        ("gpt2", None),
        ("org/4bits", None),
    ],
)
def test_the_size_by_the_name(name: str, size: int | None) -> None:
    assert size_by_name(name) == size


@pytest.mark.parametrize(
    ("adapter", "code"),
    [
        (AdapterFolder("/a", False), "adapter_missing"),
        (AdapterFolder("/a", True, "missing"), "adapter_unreadable"),
        (AdapterFolder("/a", True), "weights_missing"),
        (AdapterFolder("/a", True, has_weights=True, is_truncated=True), "weights_truncated"),
    ],
)
def test_an_adapter_that_cannot_be_loaded_blocks(adapter: AdapterFolder, code: str) -> None:
    assert blockers(facts(adapters=(adapter,))) == {code}


def test_a_sound_adapter_passes() -> None:
    assert found(facts(adapters=(AdapterFolder("/a", True, has_weights=True),))) == {}


@pytest.mark.parametrize(
    ("problem", "code"),
    [
        ("undefined", "dataset_misspelt"),
        ("malformed", "dataset_malformed"),
        ("file_missing", "dataset_file_missing"),
        ("file_type", "dataset_file_type"),
        ("mixed_types", "dataset_file_type"),
        ("empty", "dataset_empty"),
    ],
)
def test_a_data_set_that_cannot_be_read_blocks(problem: DatasetProblem, code: str) -> None:
    info = DatasetInfo("/d/dataset_info.json", names=("sums",), datasets=(Dataset("sumz", problem),))
    assert blockers(facts(data=info)) == {code}


def test_the_file_of_data_sets() -> None:
    assert blockers(facts(data=DatasetInfo("/d/x", "missing"))) == {"dataset_info_missing"}
    assert blockers(facts(data=DatasetInfo("/d/x", "not_json", 3))) == {"dataset_info_unreadable"}
    undefined = DatasetInfo("/d/x", names=("sums",), datasets=(Dataset("zzzzzz", "undefined"),))
    assert blockers(facts(data=undefined)) == {"dataset_undefined"}


@pytest.mark.parametrize(
    ("stage", "ranking", "fits"),
    [
        ("dpo", True, True),
        ("dpo", False, False),
        ("rm", True, True),
        ("sft", True, False),
        ("sft", False, True),
    ],
)
def test_pairs_are_for_two_stages(stage: str, ranking: bool, fits: bool) -> None:
    info = DatasetInfo("/d/x", datasets=(Dataset("sums", ranking=ranking),))
    assert ("dataset_not_for_stage" not in blockers(facts({"stage": stage}, data=info))) is fits


def test_templates() -> None:
    installed = Installed({}, templates=frozenset({"qwen3_nothink", "llama3"}))
    assert found(facts({"template": "qwen3_nothing"}, installed=installed))["template_misspelt"].blocks
    assert blockers(facts({"template": "zzzzzz"}, installed=installed)) == {"template_unknown"}
    assert blockers(facts({"template": "zzzzzz"})) == set()
    assert found(facts({"template": None}))["template_unset"].level == "advice"
    assert "template_unset" not in found(facts({"template": None, "stage": "pt"}))


@pytest.mark.parametrize(
    ("deepspeed", "expected"),
    [
        (Deepspeed("/x", "missing"), {"deepspeed_missing"}),
        (Deepspeed("/x", "not_json", 2), {"deepspeed_unreadable"}),
        (Deepspeed("/x", stage=2, fixed={"train_micro_batch_size_per_gpu": 2}), {"deepspeed_mismatch"}),
        (Deepspeed("/x", stage=2, fixed={"train_micro_batch_size_per_gpu": 4}), set()),
        (Deepspeed("/x", stage=3), set()),
    ],
)
def test_the_deepspeed_file(deepspeed: Deepspeed, expected: set[str]) -> None:
    values: dict[str, Any] = {"deepspeed": "x"}
    planned = facts(values, deepspeed=deepspeed, torchrun=True, installed=None)
    assert blockers(planned) == expected
    assert ("zero3_no_gather" in found(planned)) is (deepspeed.stage == 3)
