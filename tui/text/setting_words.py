"""Names of the settings that a log is compared by, and their values as words."""

from collections.abc import Mapping

from tui.facts.explained import SettingName
from tui.text import units
from tui.text.outside import outside
from tui.text.translate import tr, tr_noop

SETTINGS: Mapping[SettingName, str] = {
    "effective_batch": tr_noop("effective batch"),
    "batch_per_device": tr_noop("batch per device"),
    "accumulation": tr_noop("accumulation"),
    "data_parallel": tr_noop("data-parallel groups"),
    "total_steps": tr_noop("steps"),
    "precision": tr_noop("precision"),
    "finetuning": tr_noop("method"),
    "gradient_checkpointing": tr_noop("gradient checkpointing"),
    "attention": tr_noop("attention"),
    "liger": tr_noop("liger kernel"),
    "quantization": tr_noop("quantisation"),
    "sample_tokens": tr_noop("tokens per sample"),
    "deepspeed": tr_noop("DeepSpeed file"),
    "zero_stage": tr_noop("ZeRO stage"),
    "offload": tr_noop("offload"),
}


def setting_name(name: str) -> str:
    """The name of a setting as words; another text stays as it is, made harmless."""
    return next((tr(words) for known, words in SETTINGS.items() if known == name), outside(name, 60))


def setting_value(value: str | int | float | None) -> str:
    """A value in one spelling: a switch, and a number that counts nothing, is yes or no."""
    if value is None:
        return units.UNKNOWN
    if isinstance(value, bool) or value == 0:
        return tr("yes") if value else tr("no")
    return outside(str(value), 60)
