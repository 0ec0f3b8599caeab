"""Value against value: what LLaMA-Factory or transformers refuses, and what goes well but not as meant.

The refusals are those of ``hparams`` in LLaMA-Factory 0.9.4 and 0.9.5 and of transformers' arguments.
"""

from collections.abc import Iterator

from tui.facts.finding import Action, Finding
from tui.insight.preflight.facts import PreflightFacts
from tui.llamafactory.config import TrainingConfig
from tui.llamafactory.schedule import schedule

DEFAULT_EVAL_BATCH = 8
"""transformers' ``per_device_eval_batch_size``; LLaMA-Factory's WebUI copies the training batch instead."""

DEFAULT_CUTOFF = 2048
_DOING = ("do_train", "do_eval", "do_predict", "predict_with_generate")


def value_findings(facts: PreflightFacts) -> Iterator[Finding]:
    """Findings about values, in the order in which a person reads a config."""
    config = facts.config
    yield from _needed(facts, config)
    yield from _conflicts(facts, config)
    yield from _numbers(config)
    yield from _evaluation(config)
    yield from rhythm_findings(config, config.max_steps)
    yield from _packing(config)


def trains(config: TrainingConfig) -> bool:
    """Whether a training is asked for."""
    return config.flag("do_train") is True


def evaluates(config: TrainingConfig) -> bool:
    """Whether there is an evaluation during or after the training."""
    plan = schedule(config.values)
    return plan.eval_steps is not None or plan.eval_epochs or plan.final_eval


def _has(config: TrainingConfig, key: str) -> bool:
    return config.values.get(key) not in (None, False, "")


def _needed(facts: PreflightFacts, config: TrainingConfig) -> Iterator[Finding]:
    if not _has(config, "model_name_or_path"):
        yield _missing("model_name_or_path", "llamafactory-cli train")
    if not any(_has(config, key) for key in _DOING) and not evaluates(config):
        action = Action("set", ("do_train=true",))
        yield Finding("nothing_to_do", "danger", "do_train", actions=(action,), blocks=True)
    if trains(config) and not _has(config, "dataset"):
        yield _missing("dataset", "do_train: true")
    if (evaluates(config) or _has(config, "do_predict")) and not _has_eval_data(config):
        yield _missing("val_size", "eval_strategy")
    if config.flag("streaming") and (config.max_steps or -1) <= 0:
        yield _missing("max_steps", "streaming: true")
    if config.stage == "ppo" and not _has(config, "reward_model"):
        yield _missing("reward_model", "stage: ppo")
    if (
        config.stage in (None, "sft")
        and config.flag("do_predict")
        and not config.flag("predict_with_generate")
    ):
        yield _missing("predict_with_generate", "do_predict: true")
    if config.values.get("deepspeed") and facts.torchrun is False:
        action = Action("environment", ("FORCE_TORCHRUN=1",))
        yield Finding("deepspeed_needs_torchrun", "danger", "deepspeed", actions=(action,), blocks=True)


def _conflicts(facts: PreflightFacts, config: TrainingConfig) -> Iterator[Finding]:
    for applies, first, second in (
        *_data_pairs(config),
        *_method_pairs(config),
        *(_zero3_pairs(facts, config) if facts.zero == 3 else ()),
    ):
        if applies:
            evidence = {"first": first, "second": second}
            yield Finding("values_conflict", "danger", first.partition(":")[0], evidence, blocks=True)
    if facts.zero == 3 and config.values.get("quantization_bit") == 4:
        yield Finding("zero3_quantized", "warning", "quantization_bit")


_Pair = tuple[bool, str, str]
"""Whether two settings that exclude each other are both there, and the two as they are written."""


def _data_pairs(config: TrainingConfig) -> Iterator[_Pair]:
    stage = config.stage or "sft"
    for key in ("neat_packing", "train_on_prompt", "mask_history"):
        yield _on(config, key) and stage != "sft", f"{key}: true", f"stage: {stage}"
    yield (
        _on(config, "mask_history") and _on(config, "train_on_prompt"),
        "mask_history: true",
        "train_on_prompt: true",
    )
    yield _has(config, "eval_dataset") and (config.number("val_size") or 0) > 1e-6, "eval_dataset", "val_size"
    yield _on(config, "streaming") and _has(config, "max_samples"), "streaming: true", "max_samples"
    best = "load_best_model_at_end"
    yield stage in ("rm", "ppo") and _on(config, best), f"stage: {stage}", f"{best}: true"


def _method_pairs(config: TrainingConfig) -> Iterator[_Pair]:
    method = config.text("finetuning_type") or "lora"
    written = f"finetuning_type: {method}"
    yield _on(config, "fp16") and _on(config, "bf16"), "fp16: true", "bf16: true"
    yield _has(config, "adapter_name_or_path") and method != "lora", "adapter_name_or_path", written
    for key in ("use_galore", "use_apollo", "use_badam"):
        yield _on(config, key) and method == "lora", f"{key}: true", written
    for key in ("use_galore", "use_apollo"):
        yield _on(config, key) and _has(config, "deepspeed"), f"{key}: true", "deepspeed"
    if config.values.get("quantization_bit") is not None:
        bits = f"quantization_bit: {config.values['quantization_bit']}"
        yield method not in ("lora", "oft"), bits, written
        for key in ("resize_vocab", "pissa_init"):
            yield _on(config, key), bits, f"{key}: true"


def _zero3_pairs(facts: PreflightFacts, config: TrainingConfig) -> Iterator[_Pair]:
    zero3, bits = "DeepSpeed ZeRO-3", config.values.get("quantization_bit")
    for key in ("pure_bf16", "use_unsloth", "pissa_init", "predict_with_generate"):
        yield _on(config, key), zero3, f"{key}: true"
    yield bits == 8, zero3, "quantization_bit: 8"
    yield bits is not None and _is_not_bnb(config), zero3, "quantization_method"
    quantized = facts.model is not None and _is_quantized(facts.model.quantized)
    yield quantized, zero3, "model_name_or_path"


def _on(config: TrainingConfig, key: str) -> bool:
    return config.flag(key) is True


def _numbers(config: TrainingConfig) -> Iterator[Finding]:
    for key in ("per_device_train_batch_size", "gradient_accumulation_steps", "cutoff_len", "lora_rank"):
        value = config.number(key)
        if value is not None and value < 1:
            yield _wrong(key, value, ">= 1")
    bits = config.values.get("quantization_bit")
    if bits is not None and not _is_not_bnb(config) and bits not in (4, 8) and not isinstance(bits, str):
        yield _wrong("quantization_bit", bits if isinstance(bits, int | float) else str(bits)[:20], "4, 8")
    if config.flag("load_best_model_at_end"):
        plan = schedule(config.values)
        by_steps = plan.eval_steps is not None and plan.save_steps is not None
        if not by_steps and not (plan.eval_epochs and plan.save_epochs):
            yield _missing("eval_strategy", "load_best_model_at_end: true")
        elif plan.eval_steps and plan.save_steps and plan.save_steps % plan.eval_steps:
            yield _wrong("save_steps", plan.save_steps, f"n x eval_steps ({plan.eval_steps:g})")


def _evaluation(config: TrainingConfig) -> Iterator[Finding]:
    train_batch = config.whole("per_device_train_batch_size") or DEFAULT_EVAL_BATCH
    asked = config.values.get("per_device_eval_batch_size")
    if evaluates(config) and asked is None and train_batch < DEFAULT_EVAL_BATCH:
        action = Action("set", (f"per_device_eval_batch_size={train_batch}",))
        evidence = {"train": train_batch, "eval": DEFAULT_EVAL_BATCH}
        yield Finding("eval_batch_default", "warning", "per_device_eval_batch_size", evidence, (action,))
    if trains(config) and not evaluates(config) and (config.number("val_size") or 0) > 1e-6:
        evidence_unused = {"val_size": config.number("val_size")}
        action = Action("set", ("eval_strategy=steps",))
        yield Finding("eval_data_unused", "warning", "val_size", evidence_unused, (action,))


def rhythm_findings(config: TrainingConfig, steps: int | None) -> Iterator[Finding]:
    """Evaluations and saves that none of so many steps reaches; both also come after the last step."""
    if steps is None or steps <= 0 or not trains(config):
        return
    plan = schedule(config.values)
    if plan.eval_steps is not None and plan.eval_steps > steps:
        evidence = {"steps": steps, "every": int(plan.eval_steps)}
        yield Finding("eval_never", "advice", "eval_steps", evidence)
    if plan.save_steps is not None and plan.save_steps > steps:
        yield Finding("save_never", "advice", "save_steps", {"steps": steps, "every": int(plan.save_steps)})


def _packing(config: TrainingConfig) -> Iterator[Finding]:
    packs = config.flag("neat_packing") or config.flag("packing")
    if packs or (config.stage == "pt" and config.flag("packing") is None):
        cutoff = config.whole("cutoff_len") or DEFAULT_CUTOFF
        yield Finding("packing_fills", "info", "packing", {"cutoff": cutoff})


def _has_eval_data(config: TrainingConfig) -> bool:
    return _has(config, "eval_dataset") or (config.number("val_size") or 0) > 1e-6


def _is_not_bnb(config: TrainingConfig) -> bool:
    return config.text("quantization_method") not in (None, "bnb", "BNB")


def _is_quantized(method: str | None) -> bool:
    """Quantised beforehand, and not of the two kinds that are made whole again while loading."""
    return method is not None and method not in ("mxfp4", "fp8")


def _missing(key: str, because: str) -> Finding:
    return Finding("value_needed", "danger", key, {"key": key, "because": because}, blocks=True)


def _wrong(key: str, value: float | str, allowed: str) -> Finding:
    evidence = {"key": key, "value": value, "allowed": allowed}
    return Finding("value_wrong", "danger", key, evidence, blocks=True)
