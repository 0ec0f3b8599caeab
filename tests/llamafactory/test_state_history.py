import json
from pathlib import Path

import pytest

from tui.facts.training import MetricPoint
from tui.llamafactory.state_history import StateHistory, completed_by, read_history


def written(folder: Path, state: object) -> Path:
    path = folder / "trainer_state.json"
    path.write_text(json.dumps(state))
    return path


def test_records_with_their_steps(tmp_path: Path) -> None:
    records = [
        {"step": 5, "epoch": 0.1, "loss": 2.0, "grad_norm": 0.5, "learning_rate": 1e-4},
        {"step": 5, "epoch": 0.1, "eval_loss": 1.9, "eval_runtime": 3.5},
        {"step": 10, "train_runtime": 7.0, "train_loss": 1.5},
        {"step": True, "loss": 1.0},
        {"loss": 10**400, "step": 6},
        "no record",
    ]
    found = read_history(written(tmp_path, {"global_step": 10, "max_steps": 20, "log_history": records}))
    assert found is not None
    assert (found.step, found.total) == (10, 20)
    told = [(point.step, point.loss, point.eval_loss) for point in found.points]
    assert told == [(5, 2.0, None), (5, None, 1.9)]
    assert (found.points[0].grad_norm, found.points[1].eval_runtime) == (0.5, 3.5)


@pytest.mark.parametrize("state", [None, [], {}, {"global_step": "5"}, {"global_step": -1}])
def test_what_is_no_state(tmp_path: Path, state: object) -> None:
    assert read_history(written(tmp_path, state)) is None


def test_hostile_files(tmp_path: Path) -> None:
    assert read_history(tmp_path / "none") is None
    (tmp_path / "trainer_state.json").mkdir()
    assert read_history(tmp_path / "trainer_state.json") is None
    (tmp_path / "deep").write_text("[" * 100_000)
    assert read_history(tmp_path / "deep") is None
    (tmp_path / "odd").mkdir()
    odd = written(tmp_path / "odd", {"global_step": 3, "log_history": 7})
    assert read_history(odd) == StateHistory(3, None, ())


def test_only_what_was_missing_is_added() -> None:
    history = StateHistory(
        10, 20, (MetricPoint(5, loss=2.0, grad_norm=0.5), MetricPoint(10, loss=1.0, grad_norm=0.4))
    )
    points = (MetricPoint(None, loss=9.0), MetricPoint(5, loss=2.1, learning_rate=1e-4))
    assert completed_by(points, history) == (
        points[0],
        MetricPoint(5, loss=2.1, learning_rate=1e-4, grad_norm=0.5),
        MetricPoint(10, loss=1.0, grad_norm=0.4),
    )
