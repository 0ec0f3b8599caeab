"""The demo's training: prints what LLaMA-Factory prints, at its pace, and trains nothing.

Run by its path with the standard library only. It ends by itself as soon as nobody holds the demo's
lock any more, so that not even ``kill -9`` of the demo leaves it behind.
"""

import argparse
import fcntl
import json
import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType

_LOCK_EVERY = 0.3
_OOM = (
    "CUDA out of memory. Tried to allocate 1.16 GiB. GPU 0 has a total capacity of 23.65 GiB of which"
    " 0.62 GiB is free. Including non-PyTorch memory, this process has 22.4 GiB memory in use."
)
STAGES = ("load", "forward", "backward", "optimizer", "eval", "save")
"""Where it can be told to run out of memory."""

_FRAMES = {
    "load": ("run_sft", "load_model", "from_pretrained", "_load_pretrained_model", "load_shard_file"),
    "forward": ("run_sft", "train", "_inner_training_loop", "training_step", "compute_loss", "forward"),
    "backward": ("run_sft", "train", "_inner_training_loop", "training_step", "backward"),
    "optimizer": ("run_sft", "train", "_inner_training_loop", "step", "_init_group"),
    "eval": (
        "run_sft",
        "train",
        "_maybe_log_save_evaluate",
        "evaluate",
        "evaluation_loop",
        "prediction_step",
    ),
    "save": ("run_sft", "train", "_maybe_log_save_evaluate", "_save_checkpoint", "save_model"),
}


class OutOfMemoryError(Exception):
    """The failure that was asked for."""


class Run:
    """One simulated run."""

    def __init__(self, output: Path, steps: int, seconds: float, fail_at: str | None) -> None:
        self._output = output
        self._steps = steps
        self._seconds = seconds
        self._fail_at = fail_at
        self._save_soon = False
        self._began = time.monotonic()

    def save_soon(self, _signal: int, _frame: FrameType | None) -> None:
        """Finish the step, save, leave: what LLaMA-Factory does when its web page says stop."""
        self._save_soon = True

    def train(self) -> None:
        """Everything from the first line to the last."""
        self._prepare()
        self._say("trainer.py:2519", "***** Running training *****")
        for text in (
            "Num examples = 6,400",
            f"Num Epochs = {max(1, self._steps // 100)}",
            "Instantaneous batch size per device = 4",
            "Total train batch size (w. parallel, distributed & accumulation) = 32",
            "Gradient Accumulation steps = 8",
            f"Total optimization steps = {self._steps}",
            "Number of trainable parameters = 20,185,088",
        ):
            self._say("trainer.py:2520", f"  {text}")
        self._loop()
        self._say(
            "trainer.py:2810",
            "\n\nTraining completed. Do not forget to share your model on huggingface.co/models =)\n\n",
        )
        self._save(self._output, self._steps)
        (self._output / "all_results.json").write_text(json.dumps({"train_loss": 0.71, "epoch": 3.0}))
        _out("***** train metrics *****\n  train_loss = 0.71")

    def _prepare(self) -> None:
        self._note("llamafactory.hparams.parser:523", "Process rank: 0, world size: 1, device: cuda:0")
        time.sleep(self._seconds)
        self._note("llamafactory.data.loader:144", "Loading dataset keywords_train.json...")
        self._bar("Running tokenizer on dataset (num_proc=2)", 6400, 1600, " examples")
        self._say("modeling_utils.py:1169", "loading weights file model.safetensors.index.json")
        self._fail_if("load")
        self._bar("Loading checkpoint shards", 4, 1, "")
        self._note("llamafactory.model.model_utils.checkpointing:144", "Gradient checkpointing enabled.")
        self._note("llamafactory.model.adapter:144", "Fine-tuning method: LoRA")
        text = "trainable params: 20,185,088 || all params: 7,635,801,600 || trainable%: 0.2643"
        self._note("llamafactory.model.loader:144", text)

    def _loop(self) -> None:
        self._progress(0)
        for step in range(1, self._steps + 1):
            for stage in ("forward", "backward", "optimizer"):
                self._fail_if(stage)
            time.sleep(self._seconds * (1 + 0.12 * math.sin(step * 1.7)))
            self._progress(step)
            if step % 5 == 0:
                self._metrics(step)
            if step % 40 == 0:
                self._evaluate(step)
            if step % 20 == 0 or self._save_soon:
                self._fail_if("save")
                self._save(self._output / f"checkpoint-{step}", step)
            if self._save_soon:
                self._steps = step
                return

    def _progress(self, step: int) -> None:
        elapsed = time.monotonic() - self._began
        rate = f"{elapsed / step:5.2f}s/it" if step else "?it/s"
        left = _clock(elapsed / step * (self._steps - step)) if step else "?"
        share = 100 * step // self._steps
        blocks = "█" * (share // 10)
        bar = f"\r{share:3d}%|{blocks:<10}| {step}/{self._steps} [{_clock(elapsed)}<{left}, {rate}]"
        sys.stderr.write(bar)
        sys.stderr.flush()

    def _metrics(self, step: int) -> None:
        loss = 0.62 + 1.6 * math.exp(-step / 45) + 0.03 * math.sin(step)
        epoch = round(step / 100, 2)
        values = {"loss": round(loss, 4), "grad_norm": 0.91, "learning_rate": 9.1e-05, "epoch": epoch}
        _out(str(values))
        elapsed = time.monotonic() - self._began
        record = {
            "current_steps": step,
            "total_steps": self._steps,
            "loss": round(loss, 4),
            "lr": 9.1e-05,
            "epoch": epoch,
            "percentage": round(100 * step / self._steps, 2),
            "elapsed_time": _clock(elapsed),
            "remaining_time": _clock(elapsed / step * (self._steps - step)),
        }
        with (self._output / "trainer_log.jsonl").open("a") as file:
            file.write(json.dumps(record) + "\n")

    def _evaluate(self, step: int) -> None:
        self._say("trainer.py:4643", "\n***** Running Evaluation *****")
        self._say("trainer.py:4645", "  Num examples = 320")
        self._fail_if("eval")
        self._bar("", 40, 10, "")
        loss = 0.71 + 1.4 * math.exp(-step / 60)
        _out(str({"eval_loss": round(loss, 4), "eval_runtime": 4 * self._seconds, "epoch": step / 100}))

    def _save(self, folder: Path, step: int) -> None:
        self._say("trainer.py:4309", f"Saving model checkpoint to {folder}")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "adapter_model.safetensors").write_bytes(b"\0" * 4096)
        time.sleep(self._seconds / 2)
        state = {"global_step": step, "max_steps": self._steps, "log_history": []}
        (folder / "trainer_state.json").write_text(json.dumps(state))

    def _bar(self, name: str, total: int, stride: int, unit: str) -> None:
        head = f"{name}: " if name else ""
        for done in range(0, total + 1, stride):
            sys.stderr.write(
                f"\r{head}{100 * done // total:3d}%|{'█' * (10 * done // total):<10}| {done}/{total}"
                f" [00:01<00:01, 1000.00{unit or 'it'}/s]"
            )
            sys.stderr.flush()
            time.sleep(self._seconds)
        sys.stderr.write("\n")

    def _fail_if(self, stage: str) -> None:
        if self._fail_at == stage:
            time.sleep(2 * self._seconds)
            raise OutOfMemoryError(stage)

    def _note(self, where: str, text: str) -> None:
        _out(f"[INFO|{time.strftime('%Y-%m-%d %H:%M:%S')}] {where} >> {text}")

    def _say(self, where: str, text: str) -> None:
        sys.stderr.write(f"[INFO|{where}] {time.strftime('%Y-%m-%d %H:%M:%S')},000 >> {text}\n")
        sys.stderr.flush()


def _out(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes:02}:{rest:02}"


def _print_failure(stage: str) -> None:
    lines = ["Traceback (most recent call last):"]
    for name in _FRAMES[stage]:
        lines += [f'  File "/root/LLaMA-Factory/src/demo.py", line 1, in {name}', "    ..."]
    sys.stderr.write("\n" + "\n".join([*lines, f"torch.OutOfMemoryError: {_OOM}"]) + "\n")


def watch_lock(lock: Path, ended: Callable[[], None]) -> None:
    """Call ``ended`` once nobody holds the lock exclusively any more, or its file is gone."""
    while True:
        try:
            with lock.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_LOCK_EVERY)
        except OSError:
            break
        else:
            break
    ended()


def main(arguments: Sequence[str]) -> int:
    """Run; 1 after the failure that was asked for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--lock", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=240)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--fail-at", choices=STAGES)
    chosen = parser.parse_args(arguments)
    threading.Thread(target=watch_lock, args=(chosen.lock, lambda: os._exit(0)), daemon=True).start()
    chosen.output.mkdir(parents=True, exist_ok=True)
    run = Run(chosen.output, chosen.steps, chosen.seconds, chosen.fail_at)
    signal.signal(signal.SIGABRT, run.save_soon)
    try:
        run.train()
    except OutOfMemoryError as error:
        _print_failure(str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
