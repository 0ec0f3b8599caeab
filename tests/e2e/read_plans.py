"""Runs inside the LLaMA-Factory environment: starts each training of the JSON file named by its argument
and writes what the trainer counts when it begins, one JSON line each, into the file of its second one.

A training is stopped where its first step would begin, after its plan was printed.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

from llamafactory.train.tuner import run_exp
from transformers import TrainerCallback


class PlanReadError(Exception):
    """The plan is known: no need to train."""


class StopAtStart(TrainerCallback):  # type: ignore[misc]  # transformers is not installed where this is checked
    plan: dict[str, int]

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        loader = kwargs["train_dataloader"]
        self.plan = {"total_steps": state.max_steps, "epochs": state.num_train_epochs, "batches": len(loader)}
        self.plan["examples"] = len(loader.dataset)
        raise PlanReadError


def main(cases: Path, answers: Path) -> None:
    first = os.environ.get("RANK", "0") == "0"
    for case in json.loads(cases.read_text()):
        os.chdir(case["cwd"])
        stop = StopAtStart()
        try:
            run_exp(case["values"], callbacks=[stop])
        except PlanReadError:
            answer: dict[str, Any] = {"name": case["name"], "printed": stop.plan}
        except Exception as error:  # noqa: BLE001  one broken case must not cost the others
            answer = {"name": case["name"], "error": f"{type(error).__name__}: {error}"}
        if first:
            with answers.open("a") as file:
                file.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
