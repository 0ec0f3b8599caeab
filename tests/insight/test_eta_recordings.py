"""The ETA on recorded runs, against the bar of tqdm and LLaMA-Factory's own figure."""

from pathlib import Path

import pytest
from bench.eta import measure, read, table

RECORDINGS = Path(__file__).parent.parent / "data" / "recordings"
NAMES = ("steady", "uneven-lengths", "evaluation-heavy", "two-ranks", "resumed")


def test_every_recording_is_measured() -> None:
    logs = {path.name for path in RECORDINGS.glob("*.jsonl")} - {
        path.name for path in RECORDINGS.glob("*.trainer_log.jsonl")
    }
    assert logs == {f"{name}.jsonl" for name in NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_no_worse_than_the_better_and_half_of_it_where_pauses_count(name: str) -> None:
    row = measure(read(RECORDINGS / f"{name}.jsonl"))
    assert row.seconds > 180
    assert row.tqdm is not None
    assert row.llamafactory is not None
    assert row.goal is not None
    assert row.ours is not None
    assert row.configured is not None
    assert row.ours <= row.goal, table([row])
    assert row.configured <= row.goal, table([row])
    if name == "evaluation-heavy":
        assert row.goal == min(row.tqdm, row.llamafactory) / 2
