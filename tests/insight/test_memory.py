"""The memory estimate: measured peaks, the rule of thumb, and what each setting must change."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.measured_peaks import MODELS, PEAKS, MeasuredPeak

from tui.facts.memory import ByteRange, MemoryEstimate, PartName
from tui.facts.steps import TokenLengths
from tui.facts.weights import ModelFacts
from tui.insight.memory import estimate, fit_checks, rule_of_thumb
from tui.llamafactory.config import TrainingConfig
from tui.llamafactory.setup import training_setup
from tui.llamafactory.weights import read_model

GIB = 1 << 30
FUSED = "adamw_torch_fused"  # needs no copies while it steps
SEVEN = read_model(MODELS / "Qwen2.5-7B-Instruct")
PARAMETERS = 7_615_616_512
RANK_8 = 20_185_088  # adapters of rank 8 beside every linear layer, as LLaMA-Factory prints for this model


def of(
    model: ModelFacts = SEVEN, *, world: int = 1, lengths: TokenLengths | None = None, **values: Any
) -> MemoryEstimate:
    settings = {"bf16": True, "per_device_train_batch_size": 1, "cutoff_len": 2048, **values}
    setup = training_setup(TrainingConfig(settings, Path("x.yaml")), model, world=world)
    return estimate(model, setup, lengths=lengths)


def part(result: MemoryEstimate, name: PartName) -> ByteRange:
    return next((part.bytes for part in result.parts if part.name == name), ByteRange(0, 0))


def most(result: MemoryEstimate) -> int:
    assert result.needed is not None
    return result.needed.high


@pytest.mark.parametrize("peak", PEAKS, ids=lambda peak: peak.name)
def test_measured_peaks_lie_in_what_is_likely_reserved(peak: MeasuredPeak) -> None:
    reserved = peak.estimate().reserved
    assert reserved is not None
    assert reserved.low <= peak.measured <= reserved.high


def test_the_rule_of_thumb_gives_the_textbook_figure() -> None:
    setup = training_setup(
        TrainingConfig({"per_device_train_batch_size": 1, "cutoff_len": 4096}, Path("x.yaml")), SEVEN, world=1
    )
    rule = rule_of_thumb(SEVEN, setup)
    assert rule is not None
    assert (rule.weights, rule.framework, rule.adapter, rule.activations) == (14.0, 1.0, 0.5, 10.0)
    assert rule.total == 25.5


@pytest.mark.parametrize(
    ("batch", "cutoff", "liger", "total"),
    [(3, 2048, False, 30.5), (1, 4096, True, 17.9), (2, 1024, False, 20.5)],
)
def test_the_rule_of_thumb_elsewhere(batch: int, cutoff: int, liger: bool, total: float) -> None:
    result = of(per_device_train_batch_size=batch, cutoff_len=cutoff, enable_liger_kernel=liger, world=1)
    assert result.rule is not None
    assert result.rule.total == pytest.approx(total)


def test_lora_holds_the_weights_once_and_its_adapter_in_32_bits() -> None:
    result = of()
    assert SEVEN.parameters == PARAMETERS
    assert part(result, "weights") == ByteRange(2 * PARAMETERS, 2 * PARAMETERS)
    assert part(result, "adapter") == ByteRange(4 * RANK_8, 4 * RANK_8)
    assert part(result, "gradients") == ByteRange(4 * RANK_8, 4 * RANK_8)
    assert part(result, "optimizer") == ByteRange(8 * RANK_8, 8 * RANK_8)
    assert result.loaded == ByteRange(2 * PARAMETERS, 2 * PARAMETERS)


def test_full_training_holds_sixteen_bytes_for_each_parameter() -> None:
    result = of(finetuning_type="full", optim=FUSED)
    held = sum(part(result, name).high for name in ("weights", "gradients", "optimizer"))
    assert held == 16 * PARAMETERS
    pure = of(finetuning_type="full", optim=FUSED, bf16=False, pure_bf16=True)
    held = sum(part(pure, name).high for name in ("weights", "gradients", "optimizer"))
    assert held == 8 * PARAMETERS


def test_an_optimizer_that_steps_many_tensors_at_once_needs_a_copy() -> None:
    plain, fused = of(finetuning_type="full", optim="adamw_torch"), of(finetuning_type="full", optim=FUSED)
    assert plain.moment == "optimizer"
    assert plain.moments["optimizer"].high - fused.moments["load"].high == 4 * PARAMETERS
    assert "optimizer_temporaries" in [reason for part in plain.parts for reason in part.reasons]


def zero(stage: int, **section: Any) -> dict[str, Any]:
    return {"deepspeed": {"zero_optimization": {"stage": stage, **section}}}


def test_each_stage_of_zero_shares_one_part_more() -> None:
    stages = [of(finetuning_type="full", optim=FUSED, world=4, **zero(stage)) for stage in range(4)]
    weights, gradients, states = (
        [part(result, name).high for result in stages] for name in ("weights", "gradients", "optimizer")
    )
    whole = [2 * PARAMETERS, 4 * PARAMETERS, 12 * PARAMETERS]
    assert weights == [whole[0]] * 3 + [whole[0] // 4]
    assert gradients == [whole[1]] * 2 + [whole[1] // 4] * 2
    assert states == [whole[2]] + [whole[2] // 4] * 3


def test_offloading_moves_a_part_to_the_host() -> None:
    on_card = of(finetuning_type="full", world=4, **zero(3))
    section = {"offload_optimizer": {"device": "cpu"}, "offload_param": {"device": "cpu"}}
    offloaded = of(finetuning_type="full", world=4, **zero(3, **section))
    host = {part.name: part.bytes for part in offloaded.host}
    assert host["optimizer"].high == 12 * PARAMETERS
    assert host["weights"].high == 2 * PARAMETERS
    assert host["gradients"] == ByteRange(2 * PARAMETERS, 4 * PARAMETERS)
    assert part(offloaded, "optimizer") == part(offloaded, "weights") == ByteRange(0, 0)
    assert most(offloaded) < most(on_card)
    assert not on_card.host


def test_four_bits_hold_linear_layers_in_a_quarter() -> None:
    result = of(quantization_bit=4)
    embeddings = 2 * 152064 * 3584
    rest = sum(t.elements for t in SEVEN.tensors if len(t.shape) == 1)
    linear = PARAMETERS - embeddings - rest
    # 4 bits, an 8-bit scale for 64 numbers, a 32-bit one for 256 of those.
    assert part(result, "weights").low == int(linear * (0.5 + 1 / 64 + 4 / 16384)) + 2 * (embeddings + rest)
    assert part(of(quantization_bit=8), "weights").low == linear + 2 * (embeddings + rest)


def test_checkpointing_keeps_one_layer_instead_of_all() -> None:
    kept, checkpointed = of(disable_gradient_checkpointing=True), of()
    assert most(kept) > most(checkpointed) + 5 * GIB


def test_without_liger_the_logits_decide_and_with_it_they_vanish() -> None:
    plain, fused = of(), of(enable_liger_kernel=True)
    assert plain.moment == "logits"
    # Three copies of 32 bits at once in the backward pass of the loss.
    assert part(plain, "logits").high == 3 * 4 * 2048 * 152064
    assert fused.moment == "layers"
    assert most(fused) < most(plain)


def test_an_evaluation_of_eight_samples_is_seen() -> None:
    result = of(eval_strategy="steps")
    assert result.moment == "evaluation"
    assert result.moments["evaluation"].high > result.moments["logits"].high
    assert of(eval_strategy="steps", per_device_eval_batch_size=1).moment == "logits"


def test_more_tokens_need_more_and_accumulation_nothing() -> None:
    assert most(of(cutoff_len=4096)) > most(of())
    assert most(of(per_device_train_batch_size=2)) == most(of(cutoff_len=4096))
    assert most(of(gradient_accumulation_steps=16)) == most(of())


def test_measured_lengths_narrow_the_range() -> None:
    blind, told = of(), of(lengths=TokenLengths({100: 50, 500: 5}, complete=True))
    assert told.batch_lengths == (504, 504)
    assert blind.batch_lengths == (1024, 2048)
    assert "lengths_unknown" in blind.reasons
    assert "lengths_unknown" not in told.reasons
    assert most(told) < most(blind)


def test_a_limit_far_above_the_samples_changes_nothing() -> None:
    lengths = TokenLengths({957: 3, 100: 50}, complete=True)
    assert of(lengths=lengths).needed == of(lengths=lengths, cutoff_len=1024).needed


def test_packing_makes_every_batch_the_same() -> None:
    result = of(packing=True)
    assert result.batch_lengths == (2048, 2048)
    assert "lengths_vary" not in result.reasons


def test_the_parts_of_the_worst_moment_add_up() -> None:
    for result in (of(), of(finetuning_type="full"), of(world=2, **zero(3)), of(eval_strategy="steps")):
        assert sum(part.bytes.high for part in result.parts) == most(result)


def test_what_is_fetched_from_other_cards_has_a_limit() -> None:
    result = of(world=2, **zero(3, stage3_max_live_parameters=1e8, reduce_bucket_size=1000))
    # The output matrix is fetched whole while it is used; beyond it the limit and the bucket count.
    assert part(result, "gathered") == ByteRange(2 * 152064 * 3584, 2 * (152064 * 3584 + 10**8 + 1000))


def test_more_cards_without_sharding_save_nothing() -> None:
    assert part(of(world=2), "weights") == part(of(), "weights")
    assert "communication" in [reason for part in of(world=2).parts for reason in part.reasons]


def test_a_model_of_unknown_shape_tells_its_weights() -> None:
    strange = replace(SEVEN, shape=type(SEVEN.shape)(hidden=8), model_type="new")
    result = of(strange)
    assert result.loaded == ByteRange(2 * PARAMETERS, 2 * PARAMETERS)
    assert result.needed is None
    assert result.unknown == {"needed": "not_reported", "reserved": "not_reported"}
    assert "architecture_unknown" in result.reasons


def test_a_model_without_files_tells_why() -> None:
    result = of(ModelFacts("/m", "m", unknown={"tensors": "missing_file"}))
    assert result.needed is None
    assert result.unknown["loaded"] == "missing_file"
    assert not result.parts


def test_three_questions_have_three_answers() -> None:
    result = of(finetuning_type="full")
    disk, weights, training = fit_checks(SEVEN, result, disk_free=20 * GIB, card_free=40 * GIB)
    assert (disk.verdict, weights.verdict, training.verdict) == ("fits", "fits", "does_not_fit")
    small = fit_checks(SEVEN, result, disk_free=10 * GIB, card_free=None)
    assert [check.verdict for check in small] == ["does_not_fit", "unknown", "unknown"]
    assert result.needed is not None
    between = (result.needed.low + result.needed.high) // 2
    assert fit_checks(SEVEN, result, disk_free=None, card_free=between)[2].verdict == "tight"
