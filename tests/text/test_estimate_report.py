"""Steps, memory and lengths in words: complete, in cells, in both languages, and honest about gaps."""

from dataclasses import replace
from typing import get_args

import pytest

from tui.facts.estimate import Estimate
from tui.facts.memory import (
    ByteRange,
    Calibration,
    FitCheck,
    MemoryEstimate,
    MemoryPart,
    MemoryReason,
    Moment,
    PartName,
    RuleOfThumb,
)
from tui.facts.steps import (
    Bound,
    DatasetRows,
    LengthProblem,
    LengthSummary,
    StepCount,
    StepReason,
    TokenLengths,
)
from tui.text.cells import width
from tui.text.estimate_report import MEMORY_REASONS, MOMENTS, PARTS, between, estimate_report
from tui.text.length_report import LENGTH_PROBLEMS
from tui.text.step_report import STEP_REASONS
from tui.text.translate import set_language

GIB = 1 << 30
STEPS = StepCount(
    batch=1,
    accumulation=8,
    world=2,
    epochs=3.0,
    datasets=(DatasetRows("security", 2876, 2876),),
    rows=2876,
    validation=432,
    samples=Bound(2444, 2444),
    batches=Bound(1222, 1222),
    per_epoch=Bound(153, 153),
    total=Bound(459, 459),
    rounds_up=True,
    effective_batch=16,
)
MEMORY = MemoryEstimate(
    parts=(
        MemoryPart("weights", ByteRange(14 * GIB, 14 * GIB)),
        MemoryPart("logits", ByteRange(2 * GIB, 3 * GIB)),
        MemoryPart("framework", ByteRange(GIB // 4, GIB), ("context_size",)),
    ),
    host=(MemoryPart("optimizer", ByteRange(GIB, GIB)),),
    moment="logits",
    needed=ByteRange(16 * GIB, 18 * GIB),
    reserved=ByteRange(17 * GIB, 21 * GIB),
    loaded=ByteRange(14 * GIB, 14 * GIB),
    moments={"logits": ByteRange(16 * GIB, 18 * GIB)},
    world=2,
    rule=RuleOfThumb(14.0, 1.0, 0.5, 4.0, 2.5),
    reasons=("lengths_unknown",),
)
LENGTHS = TokenLengths({50: 90, 700: 10}, complete=True, dropped=2)
SUMMARY = LengthSummary(
    samples=100,
    complete=True,
    longest=700,
    percentiles={50: 50, 90: 50, 95: 700, 99: 700},
    cut={512: 10, 2048: 0},
    cutoff=2048,
    batch=4,
    padding=0.41,
    padded_to=8,
    dropped=2,
)
FULL = Estimate(
    steps=STEPS,
    memory=MEMORY,
    checks=(
        FitCheck("disk", ByteRange(15 * GIB, 15 * GIB), 100 * GIB, "fits"),
        FitCheck("weights", ByteRange(14 * GIB, 14 * GIB), 23 * GIB, "fits"),
        FitCheck("training", ByteRange(16 * GIB, 18 * GIB), 17 * GIB, "tight"),
    ),
    lengths=LENGTHS,
    summary=SUMMARY,
    measured=(
        Calibration(
            "j",
            "Qwen",
            "V100",
            {},
            "lora",
            4096,
            ByteRange(1, 2),
            ByteRange(15 * GIB, 16 * GIB),
            15 * GIB,
            0.0,
        ),
    ),
    model="Qwen",
    parameters=7_615_616_512,
)


def report(estimate: Estimate = FULL, cells: int = 100) -> str:
    return " ".join(estimate_report(estimate, cells).split())


def test_the_sum_behind_the_steps_is_shown() -> None:
    text = report()
    for line in (
        "Steps: 459",
        "2,876 rows - 432 for validation = 2,444 samples",
        "2,444 samples / 1 a batch / 2 cards = 1,222 batches a card",
        "1,222 batches / 8 accumulated, rounded up = 153 steps an epoch",
        "153 steps x 3 epochs = 459 steps",
        "16 samples: 1 a card x 8 accumulated x 2 cards",
    ):
        assert line in text


def test_a_bound_shows_both_ends_and_why() -> None:
    steps = replace(STEPS, total=Bound(456, 459), rounds_up=None, reasons=("version_unknown",))
    text = report(replace(FULL, steps=steps))
    assert "Steps: 456 - 459" in text
    assert "before 4.52" in text


def test_unknown_rows_name_their_data_set() -> None:
    dataset = DatasetRows("security", None, unknown={"rows": "timed_out"})
    steps = StepCount(1, 8, None, 3.0, datasets=(dataset,), reasons=("rows_unknown",))
    text = report(replace(FULL, steps=steps))
    assert "Steps: unknown" in text
    assert "Rows of security are unknown: no answer in time." in text


def test_the_parts_the_two_figures_and_the_three_questions_are_told_apart() -> None:
    text = report()
    for line in (
        "logits and their copies 2.0 - 3.0 GiB",
        "Needed at once: 16.0 - 18.0 GiB, most at the loss.",
        "Likely shown as in use: 17.0 - 21.0 GiB",
        "In the host's memory: optimizer states, 1.0 GiB.",
        "model files on the disk 15.0 GiB of 100.0 GiB free fits",
        "training on a card 16.0 - 18.0 GiB of 17.0 GiB free may fit, may not",
        "25.5 GB = 14 weights + 1 framework + 0.5 adapter + 10 for 4 thousand tokens",
        "Measured with Qwen on V100 (lora): 15.0 GiB; the estimate was 15.0 - 16.0 GiB.",
        "Lengths are not measured",
    ):
        assert line in text


def test_an_evaluation_that_needs_most_says_what_training_needs() -> None:
    moments: dict[Moment, ByteRange] = {
        "evaluation": ByteRange(16 * GIB, 18 * GIB),
        "layers": ByteRange(14 * GIB, 15 * GIB),
    }
    memory = replace(MEMORY, moment="evaluation", moments=moments)
    text = report(replace(FULL, memory=memory))
    assert "Training alone needs 14.0 - 15.0 GiB: see per_device_eval_batch_size." in text


def test_lengths_and_cuts() -> None:
    text = report()
    for line in (
        "All 100 samples. 2 rows have no answer and are dropped.",
        "P50 P90 P95 P99 longest 50 50 700 700 700",
        "512 tokens: 10 samples would be cut (10%)",
        "2,048 tokens (cutoff_len): 0 samples are cut (0%)",
        "padding fills 41%",
    ):
        assert line in text


def test_a_failed_measurement_says_why_with_its_words_made_harmless() -> None:
    failed = TokenLengths(problem="tokenizer", detail="OSError: \x1b[31m token=hf_aaaaaaaaaaaaaaaaaaaaaaaa")
    text = estimate_report(replace(FULL, lengths=failed, summary=None), 100)
    assert "The tokenizer or the template of this model cannot be loaded." in text
    assert "OSError" in text
    assert "\x1b" not in text
    assert "hf_a" not in text


def test_a_model_that_is_not_here_is_said() -> None:
    memory = MemoryEstimate(reasons=("model_absent",), unknown={"needed": "missing_file"})
    text = report(Estimate(STEPS, memory))
    assert "How much is needed is unknown" in text
    assert "download it, or name its folder" in text


def test_missing_files_are_named_and_hostile_names_are_harmless() -> None:
    text = report(replace(FULL, model="\x1b]0;evil\x07", missing=("model-2.safetensors",)))
    assert "missing or cut short: model-2.safetensors" in text
    assert "\x1b" not in text


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("cells", [40, 60, 100])
def test_no_line_is_wider_than_the_page(language: str, cells: int) -> None:
    set_language("zh" if language == "zh" else "en")
    try:
        lines = estimate_report(FULL, cells).splitlines()
    finally:
        set_language("en")
    assert max(map(width, lines)) <= cells


def test_every_code_has_its_words() -> None:
    assert set(MEMORY_REASONS) == set(get_args(MemoryReason))
    assert set(MOMENTS) == set(get_args(Moment))
    assert set(PARTS) == set(get_args(PartName))
    assert set(STEP_REASONS) == set(get_args(StepReason))
    assert set(LENGTH_PROBLEMS) == set(get_args(LengthProblem))


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [(GIB, GIB, "1.0 GiB"), (GIB, 2 * GIB, "1.0 - 2.0 GiB"), (GIB // 2, 2 * GIB, "512 MiB - 2.0 GiB")],
)
def test_ranges(low: int, high: int, text: str) -> None:
    assert between(ByteRange(low, high)) == text


def test_an_unknown_range_is_a_dash() -> None:
    assert between(None) == "-"
