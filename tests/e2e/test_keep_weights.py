"""A stop that keeps the weights, as real LLaMA-Factory takes it."""

from pathlib import Path

import pytest
from support.command_line import Herd
from support.real_llamafactory import RealLlamaFactory

pytestmark = pytest.mark.e2e


def test_the_step_is_ended_and_the_weights_are_saved(
    llamafactory: RealLlamaFactory, herd: Herd, tmp_path: Path
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    llamafactory.write_project(
        project, rows=200, max_steps=5000, val_size=0.1, eval_strategy="steps", eval_steps=2000
    )
    job = herd.start("train.yaml", "--env", llamafactory.environment, cwd=project)
    herd.wait_for_step(job, 2)
    code, said = herd.typed("stop", job, "--keep-weights", cwd=project, answer="n\n")
    assert code == 3
    assert "final evaluation" in said
    stopped = herd.document("stop", job, "--keep-weights", "--yes")
    assert [step["name"] for step in stopped["steps"]] == ["cooperate"]
    assert (stopped["job"]["ending"], stopped["job"]["exit_code"], stopped["left"]) == (
        "stopped_saved",
        0,
        [],
    )
    assert (project / "out" / "adapter_model.safetensors").is_file()
    assert (project / "out" / "eval_results.json").is_file()
    assert not list((project / "out").glob("checkpoint-*"))
    assert herd.processes_of(job) == {}
    herd.wait_until_nothing_runs()
