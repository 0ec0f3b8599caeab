"""Facts of a preflight in which everything is well, for changing one thing."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tui.facts.finding import Finding
from tui.facts.machine import Gpu, GpuMemory, HostMemory, SharedMemory
from tui.insight.preflight import preflight
from tui.insight.preflight.facts import Installed, Machine, PreflightFacts, Settings
from tui.llamafactory.config import TrainingConfig
from tui.llamafactory.known_settings import newest_settings

GIB = 1 << 30

VALUES: Mapping[str, Any] = {
    "model_name_or_path": "model",
    "stage": "sft",
    "do_train": True,
    "finetuning_type": "lora",
    "dataset": "sums",
    "template": "qwen3_nothink",
    "output_dir": "out",
    "bf16": True,
    "save_steps": 5,
    "max_steps": 10,
    "per_device_train_batch_size": 4,
}


def facts(values: Mapping[str, Any] | None = None, **changes: Any) -> PreflightFacts:
    """Facts of a config; a value that is ``None`` removes the key, ``changes`` replace whole facts."""
    merged = {key: value for key, value in {**VALUES, **(values or {})}.items() if value is not None}
    whole = PreflightFacts(
        config=TrainingConfig(merged, Path("/x/train.yaml"), Path("/x")),
        environ={},
        settings=Settings(newest_settings(), exact=True),
        machine=Machine(1, (gpu(),), HostMemory(64 * GIB, GIB, None), SharedMemory(GIB, GIB), 8.0),
        torchrun=False,
        processes=1,
        installed=Installed({"torch": "2.6.0", "transformers": "4.57.1"}),
    )
    return replace(whole, **changes)


def gpu(name: str = "NVIDIA GeForce RTX 4090", used: int = 0, **changes: Any) -> Gpu:
    """A card."""
    card = Gpu(
        index=0,
        minor=0,
        uuid="GPU-0",
        name=name,
        state="ok",
        age=0.0,
        memory=GpuMemory(24 * GIB, used, 0, 24 * GIB - used),
        utilization=None,
        temperature=None,
        power=None,
        power_limit=None,
        clocks=None,
        throttle=(),
        peak_memory=None,
        owners=(),
    )
    return replace(card, **changes)


def found(planned: PreflightFacts) -> dict[str, Finding]:
    """The findings by their codes."""
    return {finding.code: finding for finding in preflight(planned)}


def blockers(planned: PreflightFacts) -> set[str]:
    """The codes that refuse a start."""
    return {finding.code for finding in preflight(planned) if finding.blocks}


def codes(findings: Sequence[Finding]) -> list[str]:
    """The codes, in order."""
    return [finding.code for finding in findings]
