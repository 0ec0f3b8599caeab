"""Real trainings stopped at twelve moments, single and with two ranks:
``python tests/bench/stop_moments.py [1|2 …]`` (default: both).

Counts survivors and compares how each run ended with what its files say. Needs real LLaMA-Factory (see
``tests/support/real_llamafactory.py``).
"""

import json
import re
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.command_line import Herd
from support.real_llamafactory import RealLlamaFactory, provide_llamafactory, run_environment
from support.waiting import wait_until

STEPS = 40
PATIENCE = 240.0


@dataclass(frozen=True, slots=True)
class Run:
    """A started job: its log so far, and when it was started (monotonic seconds)."""

    log_file: Path
    began: float

    @property
    def log(self) -> str:
        return self.log_file.read_text(errors="replace") if self.log_file.exists() else ""


def after(seconds: float) -> Callable[[Run], bool]:
    return lambda run: time.monotonic() - run.began >= seconds


def says(words: str, times: int = 1) -> Callable[[Run], bool]:
    return lambda run: run.log.count(words) >= times


def reached(step: int) -> Callable[[Run], bool]:
    """The bar is drawn every two seconds, so it shows some of the steps only."""
    return lambda run: any(int(number) >= step for number in re.findall(rf" (\d+)/{STEPS} ", run.log))


MOMENTS: dict[str, Callable[[Run], bool]] = {
    "0.3 s": after(0.3),
    "1.5 s (import)": after(1.5),
    "4 s (import)": after(4.0),
    "tokenising": says("Running tokenizer on dataset"),
    "loading weights": says("loading weights file"),
    "trainer made": says("Running training"),
    "first step": reached(1),
    "evaluating": says("Running Evaluation"),
    "saving": says("Saving model checkpoint"),
    "after the save": reached(21),
    "last step": reached(STEPS),
    "final save": says("Training completed"),
}


def stop_at(moment: str, ranks: int, real: RealLlamaFactory, port: int) -> str:
    """What is wrong (``""``: nothing), after one run that is stopped at ``moment``; prints a line."""
    with tempfile.TemporaryDirectory(prefix="herd") as name:
        folder = Path(name)
        project = folder / "project"
        project.mkdir()
        real.write_project(
            project,
            rows=3000,
            preprocessing_num_workers=2,
            max_steps=STEPS,
            save_steps=20,
            dataloader_num_workers=1,
            val_size=0.1,
            eval_strategy="steps",
            eval_steps=10,
        )
        herd = Herd.at(folder / "state", run_environment(folder))
        torchrun = {"FORCE_TORCHRUN": "1", "NPROC_PER_NODE": "2", "MASTER_PORT": str(port)}
        try:
            began = time.monotonic()
            job = herd.start(
                "train.yaml", "--unchecked", "--env", real.environment,
                cwd=project, variables=torchrun if ranks > 1 else {},
            )  # fmt: skip
            run = Run(herd.home / "jobs" / job / "train.log", began)
            try:
                wait_until(lambda: MOMENTS[moment](run) or "Traceback" in run.log, PATIENCE, moment)
            except AssertionError as late:
                return str(late)
            stopped = herd.document("stop", job, "--yes")
            return _judged(moment, ranks, stopped, herd.processes_of(job), project / "out")
        finally:
            herd.end_all()


def _judged(moment: str, ranks: int, stopped: dict[str, Any], alive: dict[int, str], output: Path) -> str:
    job = stopped["job"]
    steps = [step["name"] for step in stopped["steps"]]
    seconds = (job["stop"] or {}).get("seconds") or 0.0
    truth = _truth(output)
    is_true = job["ending"] == truth or (truth == "finished" and job["ending"] == "stopped" and bool(steps))
    print(
        f"{ranks} {moment:18}{len(alive):10}{seconds:9.1f} s  {job['ending']:10}"
        f"{'' if is_true else f'but {truth} '}{' '.join(steps)}",
        flush=True,
    )
    problems = [f"{len(alive)} survive"] if alive or stopped["left"] else []
    problems += [] if is_true else [f"said {job['ending']}, is {truth}"]
    return ", ".join(problems)


def _truth(output: Path) -> str:
    """Finished if every step was done and all results are written, else stopped."""
    try:
        state = json.loads((output / "trainer_state.json").read_text())
    except (OSError, ValueError):
        return "stopped"
    is_done = state["global_step"] >= state["max_steps"] and (output / "all_results.json").exists()
    return "finished" if is_done else "stopped"


def main() -> int:
    real = provide_llamafactory()
    wrong = []
    print(f"{'ranks, moment':20}{'survivors':>10}{'stop':>11}  ending    steps")
    for ranks in [int(word) for word in sys.argv[1:]] or [1, 2]:
        for number, moment in enumerate(MOMENTS):
            problem = stop_at(moment, ranks, real, 29700 + number)
            wrong += [f"{ranks} ranks, {moment}: {problem}"] if problem else []
    print(f"{len(wrong)} of the stops went wrong", *wrong, sep="\n  ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
