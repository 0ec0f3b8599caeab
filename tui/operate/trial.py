"""A short trial of a training: few steps, in a folder of its own, so that nothing of the real run is
touched and nothing of an earlier one is continued.
"""

import json
from pathlib import Path

from tui.llamafactory.config import TrainingConfig
from tui.llamafactory.schedule import schedule

_DEFAULT_OUTPUT = "trial"
_FOLDERS = 10_000


def trial_overrides(config: TrainingConfig, steps: int, *, with_pauses: bool) -> tuple[str, ...]:
    """The ``key=value`` words that make a trial of ``steps`` steps out of a resolved config.

    ``with_pauses``: an evaluation (where the config has data for one) and a save come half-way, so that
    their time and memory are seen too.
    """
    overrides = [
        f"max_steps={steps}",
        f"output_dir={json.dumps(_fresh_output(config), ensure_ascii=False)}",
        "resume_from_checkpoint=null",
    ]
    if with_pauses:
        half = max(1, steps // 2)
        overrides += ['save_strategy="steps"', f"save_steps={half}"]
        plan = schedule(config.values)
        if plan.final_eval or config.number("val_size") or config.values.get("eval_dataset"):
            overrides += ['eval_strategy="steps"', f"eval_steps={half}"]
    return tuple(overrides)


def _fresh_output(config: TrainingConfig) -> str:
    """A folder beside the config's output folder that does not exist yet, written as the config does."""
    written = config.text("output_dir") or _DEFAULT_OUTPUT
    place = config.output_dir or (config.cwd or Path()) / _DEFAULT_OUTPUT
    for number in range(1, _FOLDERS):
        name = f"{place.name}-trial-{number}"
        if not place.with_name(name).exists():
            return str(Path(written).with_name(name))
    return f"{written}-trial"
