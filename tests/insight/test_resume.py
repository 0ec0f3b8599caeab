from tui.facts.explained import Resume
from tui.facts.training import Checkpoint
from tui.insight.resume import resume, resume_findings


def at(step: int, *, complete: bool = True, saved_at: float = 100.0) -> Checkpoint:
    return Checkpoint(f"out/checkpoint-{step}", step, complete, saved_at)


def test_the_highest_number_is_taken_and_the_highest_complete_one_is_good() -> None:
    assert resume([], 7) is None
    assert resume([at(50), at(100)], 137) == Resume(100, 100, 37)
    assert resume([at(50), at(100, complete=False)], 137) == Resume(100, 50, 87)
    assert resume([at(50, complete=False)], 60) == Resume(50, None, 60)
    assert resume([at(50)], None) == Resume(50, 50, None)


def test_what_would_go_wrong() -> None:
    half = list(resume_findings("out", [at(50), at(100, complete=False)], 120, 1.0))
    assert [(one.code, one.evidence) for one in half] == [("resume_incomplete", {"taken": 100, "usable": 50})]
    stale = list(resume_findings("out", [at(50), at(900, saved_at=10.0)], 60, began_at=50.0))
    assert [one.code for one in stale] == ["checkpoint_of_older_run"]
    assert list(resume_findings("out", [at(50), at(900, saved_at=10.0)], 60, began_at=5.0)) == []
