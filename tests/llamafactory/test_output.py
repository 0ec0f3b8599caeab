import json
import os
from pathlib import Path

import pytest

from tui.llamafactory.output import read_output


def checkpoint(output: Path, step: int, state: str | None = None) -> Path:
    folder = output / f"checkpoint-{step}"
    folder.mkdir(parents=True)
    (folder / "adapter_model.safetensors").write_bytes(b"x")
    if state is None:
        state = json.dumps({"global_step": step, "max_steps": 90, "log_history": [{"loss": 1.0}]})
    (folder / "trainer_state.json").write_text(state)
    return folder


def test_a_finished_run(tmp_path: Path) -> None:
    checkpoint(tmp_path, 40)
    checkpoint(tmp_path, 90)
    (tmp_path / "trainer_state.json").write_text('{"global_step": 90, "max_steps": 90}')
    for name in ("all_results.json", "eval_results.json", "trainer_log.jsonl"):
        (tmp_path / name).write_text("{}")
    (tmp_path / "adapter_model.safetensors").write_bytes(b"x")
    os.utime(tmp_path / "all_results.json", (1000.0, 1000.0))
    facts = read_output(tmp_path)
    assert facts.exists
    assert [(one.step, one.complete) for one in facts.checkpoints] == [(40, True), (90, True)]
    assert (facts.global_step, facts.max_steps) == (90, 90)
    assert facts.all_results_at == 1000.0
    assert facts.eval_results_at is not None
    assert facts.weights_at is not None
    assert facts.trainer_log_at is not None
    assert facts.unknown == {}


def test_checkpoints_that_are_not_complete(tmp_path: Path) -> None:
    (checkpoint(tmp_path, 10) / "trainer_state.json").unlink()
    checkpoint(tmp_path, 20, '{"global_step": 20, "max_st')
    checkpoint(tmp_path, 30, "")
    (checkpoint(tmp_path, 40) / "checkpoint-is-incomplete.txt").write_text("x")
    checkpoint(tmp_path, 50, '{"global_step": 50, "max_steps": 90, "log_history": [{"loss": NaN}]}')
    checkpoint(tmp_path, 60, '{"global_step": "60"}')
    checkpoint(tmp_path, 70, "[" * 100_000)
    (tmp_path / "checkpoint-80").write_text("a file")
    (tmp_path / "checkpoint-x").mkdir()
    facts = read_output(tmp_path)
    assert [(one.step, one.complete) for one in facts.checkpoints] == [
        (10, False),
        (20, False),
        (30, False),
        (40, False),
        (50, True),
        (60, False),
        (70, False),
        (80, False),
    ]
    assert facts.checkpoints[0].saved_at is None


def test_a_checkpoint_that_becomes_complete(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path, 10, "{")
    assert not read_output(tmp_path).checkpoints[0].complete
    (folder / "trainer_state.json").write_text('{"global_step": 10, "max_steps": 90}')
    assert read_output(tmp_path).checkpoints[0].complete


def test_what_is_not_there(tmp_path: Path) -> None:
    missing = read_output(tmp_path / "none")
    assert not missing.exists
    assert missing.unknown == {"checkpoints": "missing_file"}
    empty = read_output(tmp_path)
    assert empty.exists
    assert empty.unknown == {"global_step": "missing_file", "max_steps": "missing_file"}
    (tmp_path / "trainer_state.json").write_text("torn")
    assert read_output(tmp_path).unknown["global_step"] == "unreadable_file"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_what_may_not_be_read(tmp_path: Path) -> None:
    (tmp_path / "locked").mkdir(mode=0o000)
    assert read_output(tmp_path / "locked").unknown == {"checkpoints": "no_permission"}


def test_links_pipes_and_folders_in_the_place_of_files(tmp_path: Path) -> None:
    (tmp_path / "checkpoint-1").symlink_to(tmp_path / "checkpoint-1")
    (tmp_path / "checkpoint-2").symlink_to(tmp_path)
    os.mkfifo(tmp_path / "trainer_state.json")
    (tmp_path / "all_results.json").mkdir()
    real = checkpoint(tmp_path / "elsewhere", 3)
    (tmp_path / "checkpoint-3").symlink_to(real)
    facts = read_output(tmp_path)
    assert [(one.step, one.complete) for one in facts.checkpoints] == [(1, False), (2, False), (3, True)]
    assert facts.all_results_at is None
    assert facts.unknown["global_step"] == "unreadable_file"


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("adapter_model.safetensors", True),
        ("adapter_model.bin", True),
        ("model.safetensors", True),
        ("model-00001-of-00002.safetensors", True),
        ("pytorch_model.bin", True),
        ("training_args.bin", False),
        ("optimizer.bin", False),
        ("tokenizer.json", False),
    ],
)
def test_which_files_are_final_weights(tmp_path: Path, name: str, counts: bool) -> None:
    (tmp_path / name).write_bytes(b"x")
    assert (read_output(tmp_path).weights_at is not None) == counts
