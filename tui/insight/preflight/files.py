"""The files that a config names: model, adapters, data sets, template, DeepSpeed's JSON."""

import re
from collections.abc import Iterator
from difflib import get_close_matches

from tui.facts.finding import Action, EvidenceValue, Finding
from tui.insight.preflight.facts import PreflightFacts
from tui.insight.preflight.values import trains
from tui.llamafactory.dataset_info import Dataset, DatasetInfo
from tui.llamafactory.hub_cache import HubModel
from tui.llamafactory.model_folder import AdapterFolder, ModelFolder

_BILLIONS = re.compile(r"(?<![0-9A-Za-z.])(\d{1,4}(?:\.\d{1,3})?)[bB](?![0-9A-Za-z])")
_BYTES_PER_PARAMETER = 2
_PAIRS = frozenset({"rm", "dpo"})


def file_findings(facts: PreflightFacts) -> Iterator[Finding]:
    """Findings about what is named and is not there, not whole, or not what it should be."""
    if facts.hub is not None:
        yield from _hub(facts, facts.hub)
    if facts.model is not None:
        yield from _model(facts, facts.model)
    for adapter in facts.adapters:
        yield from _adapter(adapter)
    if facts.data is not None:
        yield from _data(facts, facts.data)
    yield from _template(facts)
    yield from _deepspeed(facts)


def size_by_name(name: str) -> int | None:
    """Bytes of 16-bit weights by the parameter count that a model's name carries (``Qwen3-8B``)."""
    match = _BILLIONS.search(name.rpartition("/")[2])
    return int(float(match[1]) * 1e9 * _BYTES_PER_PARAMETER) if match else None


def _hub(facts: PreflightFacts, hub: HubModel) -> Iterator[Finding]:
    """A model that is not here would be downloaded first, perhaps to the wrong disk."""
    if hub.snapshot is not None and (facts.model is None or facts.model.is_whole):
        return
    size = size_by_name(hub.name)
    free = facts.hub_place.free if facts.hub_place is not None else None
    evidence: dict[str, EvidenceValue] = {
        "name": hub.name,
        "hub": hub.hub,
        "cache": hub.cache,
        "size": size,
        "free": free,
    }
    if hub.offline:
        yield Finding("model_not_cached_offline", "danger", hub.name, evidence, blocks=True)
        return
    if hub.unfinished or hub.snapshot is not None:
        yield Finding("model_half_downloaded", "warning", hub.name, evidence)
    else:
        yield Finding("model_not_cached", "warning", hub.name, evidence)
    if size is not None and free is not None and size > free:
        yield Finding("download_too_large", "danger", hub.cache, evidence)  # the size is a guess


def _model(facts: PreflightFacts, model: ModelFolder) -> Iterator[Finding]:
    if not model.exists:
        yield Finding("model_missing", "danger", model.path, blocks=True)
        return
    if model.config_problem is not None:
        if facts.hub is None:
            evidence = {"file": "config.json", "problem": model.config_problem}
            yield Finding("model_unreadable", "danger", model.path, evidence, blocks=True)
        return
    yield from _weights(model, is_complete=facts.hub is None or facts.hub.offline)
    transformers = facts.installed.versions.get("transformers") if facts.installed else None
    if model.needs_transformers_5 and transformers is not None and transformers.startswith("4."):
        yield Finding("model_too_new", "danger", model.path, {"transformers": transformers}, blocks=True)


def _weights(model: ModelFolder, *, is_complete: bool) -> Iterator[Finding]:
    """``is_complete``: what is missing will not be fetched from the hub."""
    facts = model.facts
    if facts is None:
        return
    if facts.truncated:
        evidence: dict[str, EvidenceValue] = {
            "files": ", ".join(facts.truncated[:3]),
            "count": len(facts.truncated),
        }
        yield Finding("weights_truncated", "danger", model.path, evidence, blocks=True)
    if not is_complete:
        return
    if facts.missing:
        evidence = {"count": len(facts.missing), "first": facts.missing[0]}
        yield Finding("shards_missing", "danger", model.path, evidence, blocks=True)
    elif not facts.file_bytes:
        yield Finding("weights_missing", "danger", model.path, blocks=True)
    if not model.has_tokenizer:
        yield Finding("tokenizer_missing", "danger", model.path, blocks=True)


def _adapter(adapter: AdapterFolder) -> Iterator[Finding]:
    if not adapter.exists:
        yield Finding("adapter_missing", "danger", adapter.path, blocks=True)
    elif adapter.config_problem is not None:
        evidence: dict[str, EvidenceValue] = {"problem": adapter.config_problem}
        yield Finding("adapter_unreadable", "danger", adapter.path, evidence, blocks=True)
    elif not adapter.has_weights:
        yield Finding("weights_missing", "danger", adapter.path, blocks=True)
    elif adapter.is_truncated:
        evidence = {"files": "adapter_model.safetensors", "count": 1}
        yield Finding("weights_truncated", "danger", adapter.path, evidence, blocks=True)


def _data(facts: PreflightFacts, info: DatasetInfo) -> Iterator[Finding]:
    if info.problem is not None:
        evidence: dict[str, EvidenceValue] = {"problem": info.problem, "line": info.line}
        code = "dataset_info_missing" if info.problem == "missing" else "dataset_info_unreadable"
        yield Finding(code, "danger", info.path, evidence, blocks=True)
        return
    for dataset in info.datasets:
        if dataset.problem is not None:
            yield _dataset_problem(info, dataset)
        elif trains(facts.config) and dataset.ranking != ((facts.config.stage or "sft") in _PAIRS):
            evidence = {"stage": facts.config.stage or "sft", "ranking": dataset.ranking}
            yield Finding("dataset_not_for_stage", "danger", dataset.name, evidence, blocks=True)


def _dataset_problem(info: DatasetInfo, dataset: Dataset) -> Finding:
    if dataset.problem == "undefined":
        evidence: dict[str, EvidenceValue] = {"file": info.path}
        nearest = get_close_matches(dataset.name[:80], info.names, n=1)
        if nearest:
            evidence["nearest"] = nearest[0]
            return Finding("dataset_misspelt", "danger", dataset.name, evidence, blocks=True)
        return Finding("dataset_undefined", "danger", dataset.name, evidence, blocks=True)
    if dataset.problem == "malformed":
        return Finding("dataset_malformed", "danger", dataset.name, {"file": info.path}, blocks=True)
    evidence = {"path": dataset.path}
    if dataset.problem == "file_missing":
        return Finding("dataset_file_missing", "danger", dataset.name, evidence, blocks=True)
    if dataset.problem == "empty":
        return Finding("dataset_empty", "danger", dataset.name, evidence, blocks=True)
    return Finding("dataset_file_type", "danger", dataset.name, evidence, blocks=True)


def _template(facts: PreflightFacts) -> Iterator[Finding]:
    name = facts.config.text("template")
    known = facts.installed.templates if facts.installed is not None else frozenset()
    if facts.config.values.get("template") is None:
        if trains(facts.config) and facts.config.stage != "pt":
            yield Finding("template_unset", "advice", "template")
    elif name is not None and known and name not in known:
        nearest = get_close_matches(name[:80], sorted(known), n=1)
        if nearest:
            actions = (Action("set", (f"template={nearest[0]}",)),)
            evidence = {"template": name[:80], "nearest": nearest[0]}
            yield Finding("template_misspelt", "danger", "template", evidence, actions, blocks=True)
        else:
            yield Finding("template_unknown", "danger", "template", {"template": name[:80]}, blocks=True)


def _deepspeed(facts: PreflightFacts) -> Iterator[Finding]:
    deepspeed, config = facts.deepspeed, facts.config
    if deepspeed is None:
        return
    path = deepspeed.path or "deepspeed"
    if deepspeed.problem == "missing":
        yield Finding("deepspeed_missing", "danger", path, blocks=True)
        return
    if deepspeed.problem is not None:
        evidence: dict[str, EvidenceValue] = {"problem": deepspeed.problem, "line": deepspeed.line}
        yield Finding("deepspeed_unreadable", "danger", path, evidence, blocks=True)
        return
    if deepspeed.stage == 3 and not deepspeed.gathers:
        yield Finding("zero3_no_gather", "warning", path)
    own = {
        "train_micro_batch_size_per_gpu": config.whole("per_device_train_batch_size") or 8,
        "gradient_accumulation_steps": config.whole("gradient_accumulation_steps") or 1,
    }
    for key, value in own.items():
        fixed = deepspeed.fixed.get(key)
        if fixed is not None and fixed != value:
            evidence = {"key": key, "fixed": fixed, "config": value}
            yield Finding("deepspeed_mismatch", "danger", path, evidence, blocks=True)
