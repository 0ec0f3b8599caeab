"""Memory that was measured on real cards in published course material, and how those trainings were set up.

Two are screen readings in ``G`` of a card's memory in use, taken as GiB; the others are the highest of
samples every 200 ms, in MiB. Nothing in the program is fitted to them.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tui.facts.memory import MemoryEstimate
from tui.facts.steps import TokenLengths
from tui.insight.memory import estimate
from tui.llamafactory.config import TrainingConfig
from tui.llamafactory.setup import training_setup
from tui.llamafactory.weights import read_model

MODELS = Path(__file__).parent.parent / "data" / "models"
_GIB, _MIB = 1 << 30, 1 << 20

_SEVEN = {
    "stage": "sft",
    "finetuning_type": "lora",
    "lora_rank": 8,
    "lora_target": "all",
    "bf16": True,
    "optim": "adamw_torch",
    "per_device_train_batch_size": 1,
}
_SMALL = {
    "stage": "sft",
    "finetuning_type": "lora",
    "lora_rank": 8,
    "lora_target": "all",
    "fp16": True,
    "cutoff_len": 2048,
    "eval_strategy": "steps",
    "per_device_eval_batch_size": 4,
}
_ZERO_3 = {
    "zero_optimization": {
        "stage": 3,
        "reduce_bucket_size": "auto",
        "stage3_prefetch_bucket_size": "auto",
        "stage3_max_live_parameters": 1e9,
    }
}


@dataclass(frozen=True)
class MeasuredPeak:
    """``lengths`` are what is known of the samples; ``full``: every sample has the limit's length."""

    name: str
    model: str
    values: dict[str, Any]
    measured: int
    card_bytes: int
    world: int = 1
    longest: int | None = None
    full: bool = False

    def estimate(self) -> MemoryEstimate:
        """The estimate from the model's config and the settings alone."""
        model = read_model(MODELS / self.model)
        config = TrainingConfig(self.values, Path("train.yaml"))
        setup = training_setup(config, model, world=self.world, torchrun=self.world > 1)
        return estimate(model, setup, lengths=self._lengths(), card_bytes=self.card_bytes)

    def _lengths(self) -> TokenLengths | None:
        if self.full:
            return TokenLengths({self.values["cutoff_len"]: 1}, complete=True)
        if self.longest is None:
            return None
        # Only the longest sample is known; the others are taken to be spread evenly below it.
        return TokenLengths(dict.fromkeys(range(1, self.longest + 1), 1), complete=True)


def _seven(name: str, measured: float, **values: Any) -> MeasuredPeak:
    return MeasuredPeak(name, "Qwen2.5-7B-Instruct", {**_SEVEN, **values}, int(measured * _GIB), 48 * _GIB)


def _small(name: str, measured: int, batch: int) -> MeasuredPeak:
    values = {**_SMALL, "per_device_train_batch_size": batch}
    return MeasuredPeak(name, "Qwen3-0.6B", values, measured * _MIB, 32 * _GIB, longest=957)


PEAKS = (
    _seven("7B LoRA, liger, 2K tokens", 16.6, cutoff_len=2048, enable_liger_kernel=True),
    _seven("7B LoRA, liger, 4K tokens", 17.9, cutoff_len=4096, enable_liger_kernel=True),
    MeasuredPeak(
        "7B LoRA, ZeRO-3, 2 cards, 3 x 2048",
        "Qwen2.5-7B-Instruct",
        {**_SEVEN, "cutoff_len": 2048, "per_device_train_batch_size": 3, "deepspeed": _ZERO_3},
        int(16.3 * _GIB),
        24 * _GIB,
        world=2,
    ),
    _small("Qwen3-0.6B LoRA, batch 4, longest 957", 28_588, 4),
    _small("Qwen3-0.6B LoRA, batch 2, longest 957", 22_230, 2),
)
