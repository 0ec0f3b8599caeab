"""A DeepSpeed configuration, as far as it decides about memory and about what is saved."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tui.llamafactory.json_file import JsonFileError, JsonProblem, mapping_in, read_json_file

_FIXED = ("train_micro_batch_size_per_gpu", "gradient_accumulation_steps", "train_batch_size")
_COUNT_LIMIT = 1 << 50
_GATHER = ("stage3_gather_16bit_weights_on_model_save", "stage3_gather_fp16_weights_on_model_save")


@dataclass(frozen=True, slots=True)
class Deepspeed:
    """``stage`` is ZeRO's (0 without). ``offload_*``: these live in the host's memory instead.
    ``gathers``: whole 16-bit weights are written at a save. ``fixed``: numbers it sets itself, where
    ``auto`` would follow the training config. ``live_limit``: parameters that stage 3 may hold fetched;
    ``bucket``: numbers that are reduced at a time; ``None``: not told.
    """

    path: str | None
    problem: JsonProblem | None = None
    line: int | None = None
    stage: int = 0
    offload_optimizer: bool = False
    offload_param: bool = False
    gathers: bool = False
    fixed: Mapping[str, int] = field(default_factory=dict)
    live_limit: int | None = None
    bucket: int | None = None


def read_deepspeed(path: Path) -> Deepspeed:
    """Read the file that a training config names. Never raises for what is in it."""
    try:
        return deepspeed_of(read_json_file(path), str(path))
    except JsonFileError as error:
        return Deepspeed(str(path), error.problem, error.line)


def deepspeed_of(document: Mapping[str, object], path: str | None = None) -> Deepspeed:
    """The same of settings that are written out in the training config itself."""
    zero = mapping_in(document, "zero_optimization")
    stage = zero.get("stage")
    return Deepspeed(
        path,
        stage=stage if isinstance(stage, int) else 0,
        offload_optimizer=_is_offloaded(zero, "offload_optimizer"),
        offload_param=_is_offloaded(zero, "offload_param"),
        gathers=any(zero.get(name) is True for name in _GATHER),
        fixed={
            name: value
            for name in _FIXED
            if isinstance(value := document.get(name), int) and not isinstance(value, bool)
        },
        live_limit=_count(zero, "stage3_max_live_parameters"),
        bucket=_count(zero, "reduce_bucket_size"),
    )


def _is_offloaded(zero: Mapping[str, object], name: str) -> bool:
    return mapping_in(zero, name).get("device") in {"cpu", "nvme"}


def _count(zero: Mapping[str, object], name: str) -> int | None:
    """A count, often written as 1e9; ``auto`` is none."""
    value = zero.get(name)
    return int(value) if isinstance(value, int | float) and 0 < value < _COUNT_LIMIT else None
