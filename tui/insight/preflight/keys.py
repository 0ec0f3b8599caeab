"""Names and shapes of settings: misspelt, from another release, or read by YAML as something else."""

from collections.abc import Iterator
from difflib import get_close_matches

from tui.facts.finding import Action, EvidenceValue, Finding, Level
from tui.facts.secrets import MASK, is_secret_name
from tui.insight.preflight.facts import PreflightFacts
from tui.llamafactory.config import TrainingConfig

_SHOWN = 80
_OFF_WORDS = frozenset({"no", "off", "false", "n", "0", "none", ""})
_OF_SOMETHING_ELSE = (
    *("vllm_", "sglang_", "export_", "profiler_", "image_", "video_", "audio_", "generation_", "swanlab_"),
    *("galore_", "apollo_", "badam_", "ppo_", "pref_", "kto_", "dpo_", "oft_", "freeze_", "ray_", "top_"),
)
"""Settings that a training may never look at, so that a wrong value need not end it."""

_RENAMED = {"evaluation_strategy": "eval_strategy", "eval_batch_size": "per_device_eval_batch_size"}
_STAGES = ("pt", "sft", "rm", "ppo", "dpo", "kto")
_METHODS = ("lora", "oft", "freeze", "full")


def key_findings(facts: PreflightFacts) -> Iterator[Finding]:
    """Findings about the keys themselves and the kinds of their values; a subject is the key."""
    config = facts.config
    for key in config.values:
        if key not in facts.settings.kinds:
            yield _unknown(facts, key)
        else:
            yield from _shape(facts, key)
    yield from _word(config, "stage", _STAGES)
    yield from _word(config, "finetuning_type", _METHODS)
    if config.path.suffix == ".json":
        if facts.reads_copy:
            yield Finding("json_config", "info", str(config.path))
        else:
            yield Finding("json_refused", "danger", str(config.path), blocks=True)


def _unknown(facts: PreflightFacts, key: str) -> Finding:
    """LLaMA-Factory refuses a key that it does not know, unless told to let it pass."""
    refused = facts.settings.exact and not facts.enabled("ALLOW_EXTRA_ARGS")
    level: Level = "danger" if refused else "warning"
    shown = key[:_SHOWN]
    evidence: dict[str, EvidenceValue] = {"key": shown, "line": facts.config.lines.get(key)}
    close = get_close_matches(shown, facts.settings.kinds, n=1, cutoff=0.75)
    nearest = _RENAMED.get(key) or next(iter(close), None)
    releases = facts.settings.elsewhere.get(key)
    if releases and key not in _RENAMED:
        evidence["releases"] = ", ".join(releases)
        return Finding("key_of_other_release", level, shown, evidence, blocks=refused)
    if nearest is None:
        return Finding("key_unknown", level, shown, evidence, blocks=refused)
    evidence["nearest"] = nearest
    return Finding("key_misspelt", level, shown, evidence, blocks=refused)


def _shape(facts: PreflightFacts, key: str) -> Iterator[Finding]:
    value, kind = facts.config.values[key], facts.settings.kinds[key]
    evidence: dict[str, EvidenceValue] = {"key": key, "line": facts.config.lines.get(key)}
    if isinstance(value, str) and kind in ("whole", "number"):
        evidence["text"] = _shown(key, value)
        actions = (Action("set", (f"{key}={value}",)),) if _is_number(value) else ()
        refused = not key.startswith(_OF_SOMETHING_ELSE)
        level: Level = "danger" if refused else "warning"
        yield Finding("number_as_text", level, key, evidence, actions, blocks=refused)
    elif isinstance(value, str) and kind == "flag":
        # Any text is true in Python, also "no".
        means_off = value.strip().lower() in _OFF_WORDS
        evidence["text"] = _shown(key, value)
        action = Action("set", (f"{key}={'false' if means_off else 'true'}",))
        level = "danger" if means_off else "warning"
        yield Finding("flag_as_text", level, key, evidence, (action,), blocks=means_off)
    elif isinstance(value, bool) and kind == "word":
        word = "no" if value is False else "yes"
        evidence["word"] = word
        yield Finding(
            "word_became_flag", "danger", key, evidence, (Action("set", (f'{key}="{word}"',)),), blocks=True
        )


def _word(config: TrainingConfig, key: str, allowed: tuple[str, ...]) -> Iterator[Finding]:
    value = config.values.get(key)
    if value is None or value in allowed or isinstance(value, bool):
        return
    nearest = get_close_matches(str(value)[:_SHOWN], allowed, n=1)
    evidence: dict[str, EvidenceValue] = {
        "key": key,
        "value": str(value)[:_SHOWN],
        "allowed": ", ".join(allowed),
    }
    actions = tuple(Action("set", (f"{key}={word}",)) for word in nearest)
    yield Finding("value_wrong", "danger", key, evidence, actions, blocks=True)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _shown(key: str, value: str) -> str:
    return MASK if is_secret_name(key) else value[:_SHOWN]
