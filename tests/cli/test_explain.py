"""``explain`` as a person types it; it needs no job, no GPU and no LLaMA-Factory."""

import json
import shutil
from pathlib import Path

from support.command_line import Herd
from support.training_logs import LOGS


def test_a_log_an_output_folder_and_a_path_that_is_nothing(herd: Herd, tmp_path: Path) -> None:
    shutil.copy(LOGS / "v4-trainer_log.jsonl", tmp_path / "trainer_log.jsonl")
    shutil.copy(LOGS / "v4-oom-eval.log", tmp_path / "a b.out")
    said = herd.run("explain", "--json", "a b.out", ".", "none", cwd=tmp_path)
    assert said.returncode == 1
    assert "none" in said.stderr
    document = json.loads(said.stdout)
    assert document["schema"] == 1
    log, folder = document["runs"]
    assert (log["id"], log["ending"], log["failure"]["stage"]) == ("a b.out", "failed", "eval")
    assert (folder["ending"], folder["progress"]["step"]) == ("finished", 45)
    assert "main_pid" not in log


def test_nothing_to_explain_is_one_error(herd: Herd, tmp_path: Path) -> None:
    said = herd.run("explain", "--json", "none", cwd=tmp_path)
    assert (said.returncode, json.loads(said.stdout)["error"]["code"]) == (1, "explain_nothing")
    assert herd.run("explain", cwd=tmp_path).returncode == 2


def test_it_is_readable(herd: Herd, tmp_path: Path) -> None:
    said = herd.run("explain", "--curve", LOGS / "v4-resume-second.log", cwd=tmp_path)
    assert said.returncode == 0
    assert "90/90 (100%)" in said.stdout
    assert said.stderr == ""
