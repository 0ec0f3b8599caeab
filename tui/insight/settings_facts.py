"""The settings that a run really uses, as its log tells them, beside what its configuration asks for."""

from collections.abc import Iterator, Mapping
from typing import get_args

from tui.facts.explained import SettingFact, SettingName
from tui.facts.finding import Finding
from tui.facts.training import RunLog

_Value = str | int | bool | None

_PRECISIONS = (("pure_bf16", "bfloat16"), ("bf16", "bfloat16"), ("fp16", "float16"))
_ATTENTION = {"fa2": "fa2", "fa3": "fa3", "sdpa": "sdpa", "disabled": "eager"}
_DEFAULT_BATCH = 8  # transformers'; LLaMA-Factory sets none
_DEFAULT_CUTOFF = 2048


def setting_facts(
    log: RunLog, config: Mapping[str, object] | None, deepspeed: Mapping[SettingName, _Value] | None = None
) -> tuple[SettingFact, ...]:
    """Every setting that log or configuration says something about.

    Args:
        log: what the run said.
        config: the values of the training configuration, ``None`` where it is not known.
        deepspeed: what the DeepSpeed file that is really used asks for, under the names of the facts.
    """
    told, asked = _told(log), {**(_asked(config, log) if config is not None else {}), **(deepspeed or {})}
    names = [name for name in _NAMES if told.get(name) is not None or asked.get(name) is not None]
    return tuple(
        SettingFact(name, told.get(name), asked.get(name), _differs(name, told.get(name), asked.get(name)))
        for name in names
    )


def setting_findings(subject: str, facts: tuple[SettingFact, ...]) -> Iterator[Finding]:
    """Where the run does something else than its configuration asks for."""
    for fact in facts:
        if fact.differs:
            yield Finding(
                "setting_differs",
                "advice" if fact.name in _HARMLESS else "warning",
                subject,
                {"name": fact.name, "log": fact.log, "config": fact.config},
            )


_NAMES: tuple[SettingName, ...] = get_args(SettingName)
_HARMLESS: frozenset[SettingName] = frozenset({"attention", "liger"})


def _told(log: RunLog) -> dict[SettingName, _Value]:
    plan, told = log.plan, log.told
    return {
        "effective_batch": plan.effective_batch,
        "batch_per_device": plan.batch_per_device,
        "accumulation": plan.accumulation,
        "data_parallel": _data_parallel(log),
        "total_steps": plan.total_steps,
        "precision": told.compute_dtype,
        "finetuning": told.finetuning,
        "gradient_checkpointing": told.gradient_checkpointing,
        "attention": told.attention,
        "liger": told.liger,
        "quantization": told.quantization,
        "sample_tokens": _sample_tokens(log),
        "zero_stage": told.zero_stage,
    }


def _asked(config: Mapping[str, object], log: RunLog) -> dict[SettingName, _Value]:
    batch = _whole(config, "per_device_train_batch_size", _DEFAULT_BATCH)
    accumulation = _whole(config, "gradient_accumulation_steps", 1)
    groups = _data_parallel(log) or log.told.world_size
    max_steps = _whole(config, "max_steps", -1)
    flash = str(config.get("flash_attn", "auto")).lower()
    return {
        "effective_batch": batch * accumulation * groups if batch and accumulation and groups else None,
        "batch_per_device": batch,
        "accumulation": accumulation,
        "total_steps": max_steps if max_steps is not None and max_steps > 0 else None,
        "precision": next((dtype for key, dtype in _PRECISIONS if _flag(config, key)), "float32"),
        "finetuning": str(config.get("finetuning_type", "lora")).lower(),
        "gradient_checkpointing": _asked_checkpointing(config),
        "attention": _ATTENTION.get(flash),
        "liger": _flag(config, "enable_liger_kernel"),
        # A model that is quantised already says so by itself, without a setting.
        "quantization": _whole(config, "quantization_bit", 0) or None,
        "sample_tokens": _whole(config, "cutoff_len", _DEFAULT_CUTOFF),
    }


def _asked_checkpointing(config: Mapping[str, object]) -> bool | None:
    """Unsloth does its own, and says nothing of it."""
    if _flag(config, "use_unsloth"):
        return None
    return not _flag(config, "disable_gradient_checkpointing")


def _differs(name: SettingName, log: _Value, config: _Value) -> bool:
    if log is None or config is None or name == "sample_tokens":
        return False
    if name == "finetuning":
        return log != config and not (config == "lora" and log == "dora")
    return log != config


def _data_parallel(log: RunLog) -> int | None:
    """Groups that read different samples: cards that share one input count once."""
    plan = log.plan
    if not plan.effective_batch or not plan.batch_per_device or not plan.accumulation:
        return None
    groups, rest = divmod(plan.effective_batch, plan.batch_per_device * plan.accumulation)
    return groups if groups and not rest else None


def _sample_tokens(log: RunLog) -> int | None:
    counted = next(
        (point for point in reversed(log.metrics) if point.step and point.tokens_seen is not None), None
    )
    if counted is None or not counted.step or counted.tokens_seen is None or not log.plan.effective_batch:
        return None
    return round(counted.tokens_seen / (counted.step * log.plan.effective_batch))


def _flag(config: Mapping[str, object], key: str) -> bool:
    value = config.get(key)
    return value is True or str(value).lower() == "true"


def _whole(config: Mapping[str, object], key: str, default: int) -> int | None:
    value = config.get(key)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return int(value)
    except (ValueError, OverflowError):
        return None
