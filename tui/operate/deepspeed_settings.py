"""What the DeepSpeed file of a run asks for, under the names that its log is compared by."""

from collections.abc import Mapping
from pathlib import Path

from tui.facts.explained import SettingName
from tui.llamafactory.config import TrainingConfig
from tui.llamafactory.deepspeed import deepspeed_of, read_deepspeed


def deepspeed_settings(config: TrainingConfig, cwd: Path | None) -> Mapping[SettingName, str | int | None]:
    """What the DeepSpeed file of a run asks for, read as it is now."""
    written = config.values.get("deepspeed")
    if isinstance(written, Mapping):
        found = deepspeed_of({str(key): value for key, value in written.items()})
    elif isinstance(written, str) and written and "\0" not in written:
        found = read_deepspeed((cwd or config.path.parent) / written)
        if found.problem is not None:
            return {"deepspeed": written}
    else:
        return {}
    offloaded = [
        name for name, on in (("optimizer", found.offload_optimizer), ("param", found.offload_param)) if on
    ]
    return {
        "deepspeed": found.path,
        "zero_stage": found.stage,
        "offload": "+".join(offloaded) or None,
        **_fixed(found.fixed),
    }


def _fixed(fixed: Mapping[str, int]) -> Mapping[SettingName, int]:
    names: tuple[tuple[SettingName, str], ...] = (
        ("batch_per_device", "train_micro_batch_size_per_gpu"),
        ("accumulation", "gradient_accumulation_steps"),
        ("effective_batch", "train_batch_size"),
    )
    return {name: fixed[key] for name, key in names if key in fixed}
