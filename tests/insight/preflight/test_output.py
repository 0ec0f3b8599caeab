"""Resume, overwrite, refuse."""

from dataclasses import replace
from typing import Any

from support.preflight import blockers, facts, found
from support.samples import RUNNING

from tui.facts.training import Checkpoint, OutputFacts
from tui.insight.preflight.facts import Place, PreflightFacts

EMPTY = OutputFacts("/x/out", exists=True)


def checkpoint(step: int, *, complete: bool = True) -> Checkpoint:
    return Checkpoint(f"/x/out/checkpoint-{step}", step, complete, 1.0)


def into(output: OutputFacts, values: dict[str, Any] | None = None, **changes: Any) -> PreflightFacts:
    return facts(values, output=output, **changes)


HALF_WAY = replace(EMPTY, checkpoints=(checkpoint(3), checkpoint(5)))
FINISHED = replace(EMPTY, checkpoints=(checkpoint(10),), global_step=10, max_steps=10, weights_at=2.0)


def test_an_empty_or_missing_folder_is_no_matter() -> None:
    assert found(into(EMPTY)) == {}
    assert found(into(OutputFacts("/x/out", exists=False))) == {}


def test_the_last_checkpoint_is_continued() -> None:
    assert found(into(HALF_WAY))["will_resume"].evidence == {"step": 5}


def test_a_run_that_has_no_step_left_blocks() -> None:
    assert blockers(into(FINISHED)) == {"nothing_left_to_train"}
    assert found(into(FINISHED, {"max_steps": 20}))["output_finished"].level == "warning"
    assert (
        found(into(FINISHED, {"max_steps": None, "num_train_epochs": 3}))["output_finished"].blocks is False
    )


def test_a_checkpoint_that_is_not_complete_blocks() -> None:
    torn = replace(EMPTY, checkpoints=(checkpoint(3), checkpoint(5, complete=False)))
    finding = found(into(torn))["checkpoint_incomplete"]
    assert (finding.blocks, finding.evidence) == (True, {"step": 5, "before": 3})


def test_weights_without_a_checkpoint_are_refused() -> None:
    left = replace(EMPTY, weights_at=1.0)
    assert blockers(into(left)) == {"output_refused"}
    assert found(into(left, {"overwrite_output_dir": True}))["will_overwrite"].level == "info"


def test_overwriting_leaves_old_checkpoints() -> None:
    finding = found(into(HALF_WAY, {"overwrite_output_dir": True}))["stale_checkpoints"]
    assert (finding.level, finding.evidence) == ("warning", {"step": 5, "count": 2})


def test_a_named_checkpoint() -> None:
    named = {"resume_from_checkpoint": "other/checkpoint-4"}
    gone = OutputFacts("/x/other/checkpoint-4", exists=False)
    assert blockers(into(EMPTY, named, resume=gone)) == {"resume_missing"}
    torn = replace(gone, exists=True)
    assert blockers(into(EMPTY, named, resume=torn)) == {"resume_incomplete"}
    whole = replace(torn, global_step=4)
    assert found(into(EMPTY, named, resume=whole))["will_resume"].evidence == {"step": 4}
    assert blockers(into(EMPTY, named, resume=replace(whole, global_step=10))) == {"nothing_left_to_train"}


def test_a_stage_that_cannot_resume_begins_anew() -> None:
    values = {"stage": "rm", "finetuning_type": "full"}
    assert found(into(HALF_WAY, values))["output_not_resumed"].level == "warning"


def test_another_run_writes_there() -> None:
    other = replace(RUNNING, output_dir="/x/out")
    planned = into(EMPTY)
    machine = replace(planned.machine, jobs=(other,))
    assert blockers(replace(planned, machine=machine)) == {"output_in_use"}
    ended = replace(machine, jobs=(replace(other, state="ended"),))
    assert blockers(replace(planned, machine=ended)) == set()


def test_a_folder_that_cannot_be_written() -> None:
    assert "output_unwritable" in blockers(into(EMPTY, output_place=Place("/x/out", 1 << 40, writable=False)))
