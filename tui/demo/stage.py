"""The demo's own state root: temporary, held by a lock for as long as the demo lives.

The lock, not a PID, says that the demo is alive: the kernel lets go of it however the process ends.
"""

import fcntl
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tui.demo import child
from tui.jobs.client import FoundJob, JobSpec, list_jobs, start_job

_PREFIX = "llamaherd-demo-"
_LOCK = "alive.lock"
_ENDING = 8.0
"""Seconds in which the demo's jobs must have noticed its end: they look several times a second."""

CONFIG = """\
### A demo: nothing is trained
model_name_or_path: Qwen/Qwen2.5-7B-Instruct
stage: sft
do_train: true
finetuning_type: lora
dataset: keywords_train
output_dir: saves/{name}
per_device_train_batch_size: 4
gradient_accumulation_steps: 8
learning_rate: 1.0e-4
logging_steps: 5
eval_strategy: steps
eval_steps: 40
save_steps: 20
"""


class Stage:
    """The temporary root, its configs, and the jobs started in it."""

    def __init__(self, *, steps: int = 240, seconds: float = 1.0) -> None:
        remove_left_over()
        self.root = Path(tempfile.mkdtemp(prefix=_PREFIX))
        self._steps = steps
        self._seconds = seconds
        self._lock = os.open(self.root / _LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        for name in ("qwen-lora", *(f"out-of-memory-at-{stage}" for stage in child.STAGES)):
            folder = self.root / "configs"
            folder.mkdir(exist_ok=True)
            (folder / f"{name}.yaml").write_text(CONFIG.format(name=name))

    def configs(self) -> Sequence[Path]:
        """What can be started: one run that goes well, and one that fails at each stage."""
        return sorted(
            (self.root / "configs").glob("*.yaml"), key=lambda path: (path.stem != "qwen-lora", path)
        )

    def command(self, config: Path) -> tuple[str, ...]:
        """What would run."""
        words = [sys.executable, "-I", child.__file__, "--lock", str(self.root / _LOCK)]
        words += [
            "--output",
            str(self.output(config)),
            "--steps",
            str(self._steps),
            "--seconds",
            str(self._seconds),
        ]
        _, _, stage = config.stem.partition("out-of-memory-at-")
        return (*words, "--fail-at", stage) if stage else tuple(words)

    def output(self, config: Path) -> Path:
        """The output folder of a config."""
        return self.root / "saves" / config.stem

    def start(self, config: Path, environ: Mapping[str, str]) -> FoundJob:
        """Start it under a real keeper.

        Raises:
            LlamaherdError: As ``tui.jobs.client.start_job``.
        """
        shutil.rmtree(self.output(config), ignore_errors=True)  # a second run of it would seem resumed
        spec = JobSpec(
            kind="training",
            command=self.command(config),
            cwd=str(self.root),
            environ=environ,
            name=config.stem,
            config=str(config),
            config_text=config.read_text(),
            output_dir=str(self.output(config)),
        )
        return start_job(spec, self.root)

    def close(self) -> None:
        """Let go of the lock, wait until the jobs have noticed, and remove everything."""
        os.close(self._lock)
        _remove(self.root, _ENDING)


def remove_left_over() -> None:
    """Remove the roots of demos that were killed."""
    for root in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        if root.stat().st_uid == os.getuid() and not _is_alive(root):
            _remove(root, 0.0)


def _is_alive(root: Path) -> bool:
    try:
        with (root / _LOCK).open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        return time.time() - root.stat().st_mtime < _ENDING  # it may just be beginning
    return False


def _remove(root: Path, patience: float) -> None:
    """Remove a root once no keeper holds a job in it; else it is left to the next demo."""
    deadline = time.monotonic() + patience
    while any(isinstance(job, FoundJob) and job.folder.is_kept() for job in list_jobs([root])):
        if time.monotonic() >= deadline:
            return
        time.sleep(0.05)
    shutil.rmtree(root, ignore_errors=True)
