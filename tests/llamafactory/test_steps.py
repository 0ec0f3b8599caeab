"""The step count against the plans that real LLaMA-Factory printed, and against its rules."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.plan_cases import PlanCase, load_cases, write_datasets

from tui.facts.steps import Bound, DatasetRows, StepCount, TokenLengths
from tui.llamafactory.config import TrainingConfig
from tui.llamafactory.datasets import count_rows
from tui.llamafactory.steps import count_steps, packs, rounds_up

CASES = load_cases()
WITH_REASON = {
    "dropped rows and validation": {"rows_dropped"},
    "packing": {"packing"},
    "pre-training packs by itself": {"packing"},
}


def config_of(case: PlanCase, folder: Path) -> TrainingConfig:
    values = {"stage": "sft", "dataset": "sums", "cutoff_len": 128, "dataset_dir": "data", **case.values}
    kept = {key: value for key, value in values.items() if value is not None}
    return TrainingConfig(kept, folder / "train.yaml", cwd=folder)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.name}, {case.transformers}")
def test_the_count_is_what_llamafactory_printed(case: PlanCase, tmp_path: Path) -> None:
    write_datasets(case, tmp_path / "data")
    config = config_of(case, tmp_path)
    count = count_steps(config, count_rows(config), world=case.ranks, transformers=case.transformers)
    assert set(count.reasons) == WITH_REASON.get(case.name, set())
    if case.name == "pre-training packs by itself":
        assert count.total is None
        assert count.unknown["total"] == "not_yet"
        return
    assert count.total is not None
    assert count.samples is not None
    assert count.batches is not None
    for bound, printed in (
        (count.total, case.printed["total_steps"]),
        (count.samples, case.printed["examples"]),
        (count.batches, case.printed["batches"]),
    ):
        assert bound.low <= printed <= bound.high, case.name
        assert bound.exact == (not count.reasons), case.name


def test_there_are_more_than_twenty_recordings_with_an_exact_count() -> None:
    for version in {case.transformers for case in CASES}:
        recorded = {case.name for case in CASES if case.transformers == version}
        assert len(recorded - WITH_REASON.keys()) > 20


def worked_example(transformers: str | None, world: int | None = 2, **values: Any) -> StepCount:
    settings: dict[str, Any] = {
        "dataset": "security",
        "val_size": 0.15,
        "per_device_train_batch_size": 1,
        "gradient_accumulation_steps": 8,
        "num_train_epochs": 3.0,
        **values,
    }
    config = TrainingConfig({k: v for k, v in settings.items() if v is not None}, Path("x.yaml"))
    rows = (DatasetRows("security", 2876, 2876),)
    return count_steps(config, rows, world=world, transformers=transformers)


@pytest.mark.parametrize(
    ("version", "total"),
    # 456 and 459 are also what real runs of this example printed.
    [("4.45.2", 456), ("4.51.3", 456), ("4.52.0", 459), ("4.57.1", 459), ("5.6.2", 459)],
)
def test_rounding_changed_with_transformers_4_52(version: str, total: int) -> None:
    count = worked_example(version)
    assert (count.validation, count.samples, count.batches) == (432, Bound(2444, 2444), Bound(1222, 1222))
    assert count.total == Bound(total, total)
    assert count.effective_batch == 16


def test_an_unknown_version_gives_both_counts() -> None:
    count = worked_example(None)
    assert count.total == Bound(456, 459)
    assert count.reasons == ("version_unknown",)


def test_an_unknown_number_of_cards_leaves_the_samples() -> None:
    count = worked_example("4.57.1", world=None)
    assert count.samples == Bound(2444, 2444)
    assert (count.total, count.effective_batch) == (None, None)
    assert count.reasons == ("world_unknown",)
    assert "total" in count.unknown


def test_max_steps_needs_no_rows() -> None:
    config = TrainingConfig({"max_steps": 30, "streaming": True}, Path("x.yaml"))
    count = count_steps(config, (), world=None, transformers=None)
    assert count.total == Bound(30, 30)
    assert not count.reasons


def test_max_steps_below_one_counts_as_none() -> None:
    assert worked_example("4.57.1", max_steps=-1).total == Bound(459, 459)


def test_streaming_without_max_steps_is_unknown() -> None:
    count = worked_example("4.57.1", streaming=True)
    assert (count.total, count.reasons) == (None, ("streaming",))


@pytest.mark.parametrize("values", [{"val_size": 1.0}, {"eval_dataset": "other"}, {"val_size": 5000}])
def test_settings_that_llamafactory_refuses_give_no_count(values: dict[str, Any]) -> None:
    count = worked_example("4.57.1", **values)
    assert (count.total, count.reasons) == (None, ("settings_invalid",))


def test_early_stopping_is_an_upper_bound() -> None:
    count = worked_example("4.57.1", early_stopping_steps=5, max_steps=20)
    assert count.total == Bound(20, 20)
    assert count.reasons == ("early_stopping",)


def test_lengths_bound_a_packed_data_set() -> None:
    lengths = TokenLengths({100: 2876}, complete=True)
    config = TrainingConfig({"packing": True, "cutoff_len": 1001, "dataset": "x"}, Path("x.yaml"))
    rows = (DatasetRows("x", 2876, 2876),)
    count = count_steps(config, rows, world=1, transformers="4.57.1", lengths=lengths)
    assert count.samples is not None
    # 287,600 tokens fill 288 samples of 1000.
    assert count.samples.low == 288
    assert count.samples.high < 600
    blind = count_steps(config, rows, world=1, transformers="4.57.1")
    assert blind.samples == Bound(1, 2876)


def test_rows_that_were_not_checked_are_said() -> None:
    config = TrainingConfig({"dataset": "x"}, Path("x.yaml"))
    count = count_steps(config, (DatasetRows("x", 80),), world=1, transformers="4.57.1")
    assert count.total == Bound(30, 30)
    assert count.reasons == ("rows_not_checked",)


def test_rows_that_cannot_be_counted_give_their_reason() -> None:
    config = TrainingConfig({"dataset": "x"}, Path("x.yaml"))
    rows = (DatasetRows("x", None, unknown={"rows": "missing_file"}),)
    count = count_steps(config, rows, world=1, transformers="4.57.1")
    assert count.unknown == {"samples": "missing_file", "total": "missing_file"}
    assert count.reasons == ("rows_unknown",)


def test_versions() -> None:
    assert [rounds_up(text) for text in ("4.51.3", "4.52", "5.0.0.dev0", "", None, "dev")] == [
        False,
        True,
        True,
        None,
        None,
        None,
    ]


def test_pre_training_packs_unless_told_otherwise() -> None:
    base = TrainingConfig({"stage": "pt"}, Path("x.yaml"))
    assert packs(base)
    assert not packs(replace(base, values={"stage": "pt", "packing": False}))
    assert packs(replace(base, values={"stage": "sft", "packing": False, "neat_packing": True}))
