"""The main job with real LLaMA-Factory and nothing but the command line: start, watch, lose, find, stop."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from support.command_line import Herd
from support.real_llamafactory import RealLlamaFactory
from support.waiting import wait_until

pytestmark = pytest.mark.e2e

LONG = 5000
"""Optimizer steps that no test waits for."""

RANKS = {1: ["main"], 2: ["wrapper", "agent", "rank", "rank"]}
"""The members that LLaMA-Factory has for so many ranks, data workers apart."""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The folder that relative paths of the config mean."""
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """A folder without anything that a training needs."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("ranks", RANKS)
def test_a_run_is_watched_and_stopped(
    ranks: int, llamafactory: RealLlamaFactory, herd: Herd, project: Path, elsewhere: Path
) -> None:
    config = llamafactory.write_project(project, rows=400, max_steps=LONG, dataloader_num_workers=1)
    config.rename(elsewhere / "mine.yaml")
    port = _free_port()
    torchrun = {"FORCE_TORCHRUN": "1", "NPROC_PER_NODE": "2", "MASTER_PORT": str(port)} if ranks > 1 else {}
    arguments = ("mine.yaml", "--cwd", "../project", "--env", llamafactory.environment)
    job = herd.start(*arguments, cwd=elsewhere, variables=torchrun)

    first = herd.wait_for_step(job, 1)
    later = herd.wait_for_step(job, first["progress"]["step"] + 3)
    progress = later["progress"]
    assert (later["state"], later["keeper"], later["kind"]) == ("running", True, "training")
    assert (progress["stage"], progress["total"], progress["effective_batch"]) == ("train", LONG, 2 * ranks)
    assert progress["seconds_per_step"] > 0
    assert progress["eta"] > 0
    assert progress["loss"] > 0
    assert progress["fraction"] == pytest.approx(progress["step"] / LONG, abs=0.01)
    assert Path(later["output_dir"]) == project / "out"

    roles = {member["pid"]: member["role"] for member in later["members"]}
    assert sorted(role for role in roles.values() if role != "data_worker") == sorted(RANKS[ranks])
    assert list(roles.values()).count("data_worker") == ranks
    assert set(roles) == set(herd.processes_of(job))
    if ranks > 1:
        assert _answers(port)

    stopped = herd.document("stop", job, "--yes")
    assert herd.processes_of(job) == {}
    assert [pid for pid in roles if Path(f"/proc/{pid}").exists()] == []
    assert not _answers(port)
    assert (stopped["job"]["state"], stopped["job"]["ending"]) == ("ended", "stopped")
    assert stopped["left"] == []
    assert [step["name"] for step in stopped["steps"]] == ["interrupt"]
    assert stopped["steps"][-1]["left"] == 0
    assert not (project / "out" / "all_results.json").exists()
    assert [path.name for path in elsewhere.iterdir()] == ["mine.yaml"]
    herd.wait_until_nothing_runs()


def test_a_run_that_is_stopped_while_it_starts_leaves_nothing(
    llamafactory: RealLlamaFactory, herd: Herd, project: Path
) -> None:
    llamafactory.write_project(project)
    job = herd.start("train.yaml", "--env", llamafactory.environment, cwd=project)
    stopped = herd.document("stop", job, "--yes")
    assert herd.processes_of(job) == {}
    assert (stopped["job"]["ending"], stopped["left"]) == ("stopped", [])
    assert not (project / "out").exists()
    herd.wait_until_nothing_runs()


def test_a_run_that_is_stopped_while_it_tokenises_leaves_no_process_of_the_pool(
    llamafactory: RealLlamaFactory, herd: Herd, project: Path
) -> None:
    llamafactory.write_project(project, rows=40_000, preprocessing_num_workers=2)
    job = herd.start("train.yaml", "--env", llamafactory.environment, cwd=project)

    def pool() -> list[int]:
        pids = [member["pid"] for member in herd.job(job)["members"] if member["role"] != "main"]
        return pids if len(pids) > 1 else []

    workers = wait_until(pool, 60, "the tokeniser's processes")
    stopped = herd.document("stop", job, "--yes")
    assert herd.processes_of(job) == {}
    assert [pid for pid in workers if Path(f"/proc/{pid}").exists()] == []
    assert (stopped["job"]["ending"], stopped["left"]) == ("stopped", [])
    herd.wait_until_nothing_runs()


def test_a_run_that_comes_to_its_end_is_finished(
    llamafactory: RealLlamaFactory, herd: Herd, project: Path, elsewhere: Path
) -> None:
    config = llamafactory.write_project(
        project, rows=40, max_steps=6, save_steps=3, val_size=0.2, eval_strategy="steps", eval_steps=3
    ).rename(elsewhere / "train.yaml")
    before = config.read_bytes()
    overrides = ("learning_rate=0.002", "lr_scheduler_type=constant")
    job = herd.start(config, *overrides, "--env", llamafactory.environment, cwd=project)
    ended = herd.wait_for_end(job)
    _assert_finished(ended, 6, herd)
    assert ended["progress"]["last_checkpoint"] == 6
    assert ended["progress"]["eval_loss"] > 0
    assert (project / "out" / "adapter_model.safetensors").is_file()
    assert "'learning_rate': 0.002" in herd.run("logs", job, cwd=elsewhere).stdout
    assert config.read_bytes() == before
    herd.wait_until_nothing_runs()


def test_a_pasted_command_line_is_a_job_too(
    llamafactory: RealLlamaFactory, herd: Herd, project: Path
) -> None:
    llamafactory.write_project(project, rows=40, max_steps=4)
    pasted = (
        "llamafactory-cli train --stage sft --do_train True --model_name_or_path tiny-qwen3 --dataset sums"
    )
    pasted += " --finetuning_type lora --lora_rank 4 --template qwen3_nothink --cutoff_len 128 --use_cpu True"
    pasted += (
        " --output_dir saves/pasted --max_steps 4 --logging_steps 1 --report_to none --learning_rate 1e-3"
    )
    job = herd.start("--env", llamafactory.environment, "--", *pasted.split(), cwd=project)
    ended = herd.wait_for_end(job)
    _assert_finished(ended, 4, herd)
    assert Path(ended["output_dir"]) == project / "saves" / "pasted"


def test_an_environment_without_pip_is_found_in_the_project(
    llamafactory: RealLlamaFactory, herd: Herd, project: Path
) -> None:
    llamafactory.write_project(project, rows=40, max_steps=4)
    environment = llamafactory.link_without_pip(project / ".venv")
    asked = [str(environment / "bin" / "python"), "-m", "pip", "--version"]
    assert subprocess.run(asked, capture_output=True, check=False).returncode != 0
    job = herd.start("train.yaml", cwd=project)
    ended = herd.wait_for_end(job)
    _assert_finished(ended, 4, herd)
    assert ended["command"][0].startswith(str(environment))


def test_the_run_outlives_its_terminal_and_is_found_again(
    llamafactory: RealLlamaFactory, herd: Herd, project: Path
) -> None:
    llamafactory.write_project(project, rows=400, max_steps=LONG)
    terminal, shell = _open_terminal(
        f"llamaherd start train.yaml --env {llamafactory.environment}; llamaherd status --watch 1; true",
        cwd=project,
        environment=herd.environment,
    )
    with shell:
        job = wait_until(lambda: (jobs := herd.document("jobs")["jobs"]) and jobs[0]["id"], 30, "a job")
        members = {member["pid"] for member in herd.wait_for_step(job, 2)["members"]}
        watcher = wait_until(lambda: _children(shell.pid), 15, "status --watch in the terminal")
        for pid in watcher:
            herd.end(pid)
        shell.kill()
    os.close(terminal)  # the line is cut: whatever still belongs to the terminal gets SIGHUP
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in watcher), 10, "the client is gone")

    logged = _logged_step(project)
    found = herd.wait_for_step(job, logged + 4)
    assert {member["pid"] for member in found["members"]} == members
    assert found["keeper"]
    low, shown, high = _logged_step(project), herd.job(job)["progress"]["step"], _logged_step(project)
    assert low <= shown <= high + 2  # a line of the trainer's log is written every second step
    stopped = herd.document("stop", job, "--yes")
    assert (stopped["job"]["ending"], stopped["left"]) == ("stopped", [])
    herd.wait_until_nothing_runs()


def test_a_run_started_in_the_background_of_a_script_reacts_to_an_interrupt(
    llamafactory: RealLlamaFactory, herd: Herd, project: Path
) -> None:
    llamafactory.write_project(project, rows=400, max_steps=LONG)
    script = project / "start.sh"
    script.write_text(
        "grep SigIgn /proc/self/status > ignored &\n"
        f"llamaherd start train.yaml --json --env {llamafactory.environment} > started.json &\n"
        "wait\n"
    )
    subprocess.run(["sh", script], cwd=project, env=herd.environment, check=True, timeout=60)
    ignored = int((project / "ignored").read_text().split()[1], 16)
    assert ignored & 0b10, "this shell leaves SIGINT alone in the background, so the test proves nothing"
    job = json.loads((project / "started.json").read_text())["job"]["id"]
    herd.wait_for_step(job, 1)
    stopped = herd.document("stop", job, "--yes")
    assert [(step["name"], step["left"]) for step in stopped["steps"]] == [("interrupt", 0)]
    assert herd.processes_of(job) == {}


def _assert_finished(job: dict[str, Any], steps: int, herd: Herd) -> None:
    assert (job["ending"], job["exit_code"], job["failure"]) == ("finished", 0, None), herd.log(job["id"])
    assert (job["progress"]["step"], job["progress"]["total"]) == (steps, steps)
    assert job["members"] == []
    assert herd.processes_of(job["id"]) == {}


def _open_terminal(
    line: str, cwd: Path, environment: Mapping[str, str]
) -> tuple[int, "subprocess.Popen[bytes]"]:
    """A shell that runs ``line`` on a terminal of its own; the terminal's other end, and the shell."""
    own, others = os.openpty()
    take_terminal = (
        "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execvp('sh', sys.argv[1:])"
    )
    command = [sys.executable, "-c", take_terminal, "sh", "-c", line]
    shell = subprocess.Popen(
        command, stdin=others, stdout=others, stderr=others, cwd=cwd, env=environment, start_new_session=True
    )
    os.close(others)
    return own, shell


def _children(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(child) for child in text.split()]


def _logged_step(project: Path) -> int:
    """The last step in the trainer's own log."""
    lines = (project / "out" / "trainer_log.jsonl").read_text().splitlines()
    step: int = json.loads(lines[-1])["current_steps"]
    return step


def _free_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        port: int = server.getsockname()[1]
        return port


def _answers(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0
