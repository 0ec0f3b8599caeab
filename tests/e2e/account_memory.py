"""Runs inside the LLaMA-Factory environment: trains one step of each training of the JSON file named by its
argument and writes what torch holds then, one JSON line each, into the file of its second one.

``weights`` are the model's own parameters, ``adapter`` the added ones, in bytes; ``gradients`` are taken
right before the optimizer's step, ``optimizer`` after it, without its counters of steps.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

import torch
from llamafactory.train.tuner import run_exp
from transformers import AutoModelForCausalLM, TrainerCallback


class AccountedError(Exception):
    """The first step is done."""


def size(tensor: Any) -> int:
    bytes_: int = tensor.numel() * tensor.element_size()
    return bytes_


class Account(TrainerCallback):  # type: ignore[misc]  # transformers is not installed where this is checked
    def __init__(self) -> None:
        self.held = dict.fromkeys(("weights", "adapter", "gradients", "optimizer"), 0)

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        for name, parameter in kwargs["model"].named_parameters():
            added = "lora_" in name or "modules_to_save" in name
            self.held["adapter" if added else "weights"] += size(parameter)
            if parameter.grad is not None:
                self.held["gradients"] += size(parameter.grad)

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        for kept in kwargs["optimizer"].state.values():
            self.held["optimizer"] += sum(
                size(value) for name, value in kept.items() if torch.is_tensor(value) and name != "step"
            )
        raise AccountedError


def main(cases: Path, answers: Path) -> None:
    for case in json.loads(cases.read_text()):
        os.chdir(case["cwd"])
        if not Path("tiny-bf16").exists():
            model = AutoModelForCausalLM.from_pretrained("tiny-qwen3").to(torch.bfloat16)
            model.save_pretrained("tiny-bf16")
            for part in Path("tiny-qwen3").glob("*token*"):
                Path("tiny-bf16", part.name).write_bytes(part.read_bytes())
        account = Account()
        try:
            run_exp(case["values"], callbacks=[account])
        except AccountedError:
            with answers.open("a") as file:
                file.write(json.dumps({"name": case["name"], **account.held}) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
