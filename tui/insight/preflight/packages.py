"""Packages that an option needs, and the ranges that LLaMA-Factory itself checks when it starts.

Read from the metadata of the training environment; nothing is imported and nothing installed.
"""

from collections.abc import Iterator

from tui.facts.finding import Action, EvidenceValue, Finding
from tui.insight.preflight.facts import Installed, PreflightFacts
from tui.insight.preflight.values import trains
from tui.llamafactory.requirements import Requirement

PINS_TORCH = frozenset({"vllm", "unsloth", "sglang", "kt_kernel"})
"""Packages that ask for one version of torch, so that installing them usually replaces it."""

_BY_SWITCH = {
    "enable_liger_kernel": "liger-kernel",
    "use_unsloth": "unsloth",
    "use_galore": "galore_torch",
    "use_apollo": "apollo_torch",
    "use_badam": "badam",
    "use_adam_mini": "adam-mini",
    "use_swanlab": "swanlab",
    "plot_loss": "matplotlib",
    "deepspeed": "deepspeed",
}
_FOR_PREDICTION = ("jieba", "nltk", "rouge_chinese")
_TRACKERS = frozenset({"wandb", "swanlab", "tensorboard", "trackio"})
_TENSORBOARDS = frozenset({"tensorboard", "tensorboardx"})
_PREQUANTIZED = {"gptq": Requirement("gptqmodel", ">=2.0.0"), "awq": Requirement("autoawq")}
_ON_THE_FLY = {"hqq": Requirement("hqq"), "eetq": Requirement("eetq")}


def package_findings(facts: PreflightFacts) -> Iterator[Finding]:
    """Findings about packages; a subject is the package."""
    installed = facts.installed
    if installed is None:
        return
    if not facts.enabled("DISABLE_VERSION_CHECK"):
        for requirement in installed.basic:
            yield from _judge(installed, requirement, "llamafactory")
    for because, requirement in _wanted(facts, installed):
        yield from _judge(installed, requirement, because)
    if facts.config.text("flash_attn") == "fa2" and "flash_attn" not in installed.versions:
        yield Finding("flash_attention_missing", "advice", "flash_attn")


def _wanted(facts: PreflightFacts, installed: Installed) -> Iterator[tuple[str, Requirement]]:
    values = facts.config.values
    for key, package in _BY_SWITCH.items():
        if values.get(key):
            yield key, _stated(installed, package)
    if values.get("predict_with_generate"):
        for package in _FOR_PREDICTION:
            yield "predict_with_generate", Requirement(package)
    yield from _for_quantization(facts)
    reports = values.get("report_to")
    for tracker in reports if isinstance(reports, list) else [reports]:
        if tracker == "tensorboard" and _TENSORBOARDS & installed.versions.keys():
            continue
        if trains(facts.config) and isinstance(tracker, str) and tracker in _TRACKERS:
            yield "report_to", Requirement(tracker)


def _for_quantization(facts: PreflightFacts) -> Iterator[tuple[str, Requirement]]:
    model = facts.model
    if model is not None and model.quantized is not None:
        requirement = _PREQUANTIZED.get(model.quantized)
        if requirement is not None:
            yield "model_name_or_path", requirement
        return
    bits = facts.config.values.get("quantization_bit")
    method = (facts.config.text("quantization_method") or "bnb").lower()
    if bits is None:
        return
    if method == "bnb":
        # What LLaMA-Factory asks for: 8 bit, 4 bit, and 4 bit whose storage ZeRO-3 can shard.
        lowest = "0.43.0" if facts.zero == 3 else "0.37.0" if bits == 8 else "0.39.0"
        yield "quantization_bit", Requirement("bitsandbytes", f">={lowest}")
    elif method in _ON_THE_FLY:
        yield "quantization_method", _ON_THE_FLY[method]


def _stated(installed: Installed, package: str) -> Requirement:
    """The strictest that this LLaMA-Factory says of a package."""
    stated = [requirement for requirement in installed.options if requirement.name == package]
    return max(stated, key=lambda requirement: len(requirement.range), default=Requirement(package))


def _judge(installed: Installed, requirement: Requirement, because: str) -> Iterator[Finding]:
    name = requirement.name.replace("-", "_").replace(".", "_").lower()
    version = installed.versions.get(name)
    if version is not None and requirement.allows(version):
        return
    evidence: dict[str, EvidenceValue] = {"requirement": str(requirement), "because": because}
    dry_run = " ".join((*installed.dry_run, f"'{requirement}'"))
    evidence["dry_run"] = dry_run
    actions = (Action("dry_run", (*installed.dry_run, str(requirement))),)
    if version is not None:
        evidence["version"] = version
        yield Finding("package_out_of_range", "danger", requirement.name, evidence, actions, blocks=True)
    else:
        yield Finding("package_missing", "danger", requirement.name, evidence, actions, blocks=True)
    if name in PINS_TORCH:
        torch = installed.versions.get("torch")
        yield Finding("install_replaces_torch", "warning", requirement.name, {"torch": torch})
