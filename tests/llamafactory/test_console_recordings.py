"""What is known of every recorded run is what the parser says of it."""

from dataclasses import dataclass

import pytest
from support.training_logs import LOGS, facts_of, log_bytes

from tui.facts.training import FailureKind, Stage
from tui.llamafactory.console import ConsoleParser

GIB_2 = 2 << 30


@dataclass(frozen=True)
class Truth:
    """What is known of a recorded run."""

    stage: Stage
    step: int | None
    total: int | None
    evals: tuple[int, ...] = ()
    saves: tuple[int, ...] = ()
    resume: int = 0
    completed: bool = False
    interrupted: bool = False
    failure: tuple[FailureKind, Stage, int | None] | None = None


def oom(stage: Stage, at: Stage, step: int | None, rank: int | None = None, total: int | None = 8) -> Truth:
    return Truth(at, step, total, failure=("cuda_oom", stage, rank))


TRUTHS = {
    "v4-stderr": Truth("final_eval", 45, 45, (20, 40), (20, 40, 45), completed=True),
    "v4-single-interrupted": Truth("train", 99, 2000, (50,), (50,), interrupted=True),
    "v4-torchrun-2rank": Truth("final_eval", 60, 60, (50, 60), (50, 60), completed=True),
    "v4-torchrun-sigterm-agent": Truth("train", 4, 1125, interrupted=True),
    "v4-resume-first": Truth("train", 46, 90, (40,), (20, 40)),
    "v4-resume-second": Truth("final_eval", 90, 90, (80, 90), (60, 80, 90), resume=40, completed=True),
    "v5-resume-first": Truth("train", 47, 90, (40,), (20, 40)),
    "v5-resume-second": Truth(
        "final_eval", 300, 300, (260, 280, 300, 300), (260, 280, 300), resume=240, completed=True
    ),
    "v5-sigint": Truth(
        "train", 250, 1360, tuple(range(20, 250, 20)), tuple(range(20, 250, 20)), interrupted=True
    ),
    "v4-oom-load": oom("load", "load", None, total=None),
    "v4-oom-forward": oom("forward", "train", 0),
    "v4-oom-loss": oom("loss", "train", 0),
    "v4-oom-backward": oom("backward", "train", 0),
    "v4-oom-optimizer": oom("optimizer", "train", 0),
    "v4-oom-eval": oom("eval", "eval", 4),
    "v4-oom-save": Truth("save", 4, 8, (4,), (4,), failure=("cuda_oom", "save", None)),
    "v4-oom-final-eval": Truth(
        "final_eval", 6, 6, (), (6,), completed=True, failure=("cuda_oom", "final_eval", None)
    ),
    "v5-oom-forward": oom("forward", "train", 0),
    "v5-oom-loss": oom("loss", "train", 0),
    "v5-oom-backward": oom("backward", "train", 0),
    "v5-oom-optimizer": oom("optimizer", "train", 0),
    "v5-oom-eval": oom("eval", "eval", 4),
    "v5-oom-save": Truth("save", 4, 8, (4,), (4,), failure=("cuda_oom", "save", None)),
    "v4-2rank-oom": oom("forward", "train", 7, rank=1, total=60),
    "v4-2rank-both-oom": oom("forward", "train", 0, rank=0, total=60),
    "v4-2rank-killed": Truth("train", 7, 60, failure=("killed", "train", 1)),
    "v4-disk-full": Truth("train", 3, 20, failure=("disk", "forward", None)),
    "v4-config-unknown-key": Truth("import", None, None, failure=("config", "import", None)),
    "v4-config-no-dataset": Truth("import", None, None, failure=("config", "dataset", None)),
    "v4-epochs": Truth("final_eval", 136, 136, (68, 136, 136), (68, 136), completed=True),
    "v4-finished-again": Truth("final_eval", 136, 136, (136,), resume=136, completed=True),
    "v4-no-bars": Truth("final_eval", 12, 12, (), (6, 12), completed=True),
    "v4-llamaboard": Truth(
        "final_eval", 340, 340, (100, 200, 300, 340), (100, 200, 300, 340), completed=True
    ),
    "v4-webui-running_log.txt": Truth("final_eval", None, 1125, completed=True),
}


def test_every_recording_has_a_truth() -> None:
    recorded = {path.stem if path.suffix == ".log" else path.name for path in LOGS.iterdir()}
    recorded = {name for name in recorded if not name.endswith((".jsonl", ".md"))}
    assert recorded - set(TRUTHS) == {"v4-stdout"}  # the other half of v4-stderr


@pytest.mark.parametrize("name", TRUTHS)
def test_golden(name: str) -> None:
    facts, truth = facts_of(log_bytes(name)), TRUTHS[name]
    failure = facts.failure
    seen = Truth(
        stage=facts.stage,
        step=facts.step,
        total=facts.plan.total_steps,
        evals=tuple(pause.step for pause in facts.evals if pause.step is not None),
        saves=tuple(pause.step for pause in facts.saves if pause.step is not None),
        resume=facts.resume_step,
        completed=facts.training_completed,
        interrupted=facts.interrupted,
        failure=(failure.kind, failure.stage or "start", failure.rank) if failure is not None else None,
    )
    assert seen == truth
    if failure is not None and failure.kind == "cuda_oom":
        assert failure.allocation is not None
        assert failure.allocation.bytes == GIB_2
        assert len(failure.message) <= 500


@pytest.mark.parametrize("piece", [1, 7, 4093])
@pytest.mark.parametrize("name", ["v4-torchrun-2rank", "v5-resume-second", "v4-2rank-oom", "v4-no-bars"])
def test_pieces_make_no_difference(name: str, piece: int) -> None:
    data = log_bytes(name)
    assert facts_of(data, piece=piece) == facts_of(data)


@pytest.mark.parametrize("name", ["v4-torchrun-2rank", "v4-resume-second", "v4-oom-optimizer"])
def test_every_beginning_of_a_log_is_sound(name: str) -> None:
    """At no moment does the step go back or exceed the plan, nor is another bar taken for training."""
    data = log_bytes(name)
    last = 0
    parser = ConsoleParser()
    for start in range(0, len(data), 211):
        parser.feed(data[start : start + 211], 0.0)
        facts = parser.facts()
        step = facts.step or 0
        assert last <= step <= (facts.plan.total_steps or 0)
        last = step
