"""start, status, jobs, logs and stop on real processes."""

import json
import subprocess
from pathlib import Path

from support.command_line import Herd
from support.stand_in_trainer import write_config
from support.waiting import wait_until


def test_the_whole_way(herd: Herd, project: Path) -> None:
    config = write_config(project)
    said = herd.run("start", "train.yaml", "max_steps=50000", cwd=project)
    assert said.returncode == 0, said.stderr
    job = said.stdout.strip()
    assert job.count("\n") == 0
    assert f"llamaherd stop {job}" in said.stderr

    shown = herd.wait_for_step(job, 6)
    assert (shown["state"], shown["keeper"], shown["kind"]) == ("running", True, "training")
    assert shown["config"] == str(config)
    assert shown["output_dir"] == str(project / "out")
    assert shown["progress"]["total"] == 50000
    assert shown["progress"]["loss"] > 0
    assert herd.wait_for_step(job, shown["progress"]["step"] + 5)

    table = herd.run("status", cwd=project).stdout
    assert job in table
    assert "/50000" in table
    chinese = herd.run("--lang", "zh", "status", cwd=project).stdout
    assert "任务" in chinese
    assert job in herd.run("jobs", cwd=project).stdout

    stopped = herd.run("stop", job[:-2], "--yes", cwd=project)
    assert stopped.returncode == 0, stopped.stderr
    assert "SIGINT" in stopped.stdout
    assert herd.processes_of(job) == {}
    ended = herd.job(job)
    assert (ended["state"], ended["ending"], ended["members"]) == ("ended", "stopped", [])
    assert ended["stop"]["steps"][0]["name"] == "interrupt"
    again = herd.run("stop", job, "--yes", cwd=project)
    assert again.returncode == 0
    herd.wait_until_nothing_runs()


def test_a_member_s_pid_means_its_job(herd: Herd, project: Path) -> None:
    write_config(project)
    job = herd.start("train.yaml", cwd=project)
    pid = herd.wait_for_step(job, 1)["main_pid"]
    stopped = herd.document("stop", str(pid), "--yes")
    assert (stopped["job"]["id"], stopped["job"]["ending"], stopped["left"]) == (job, "stopped", [])


def test_a_stop_asks_and_takes_no_for_an_answer(herd: Herd, project: Path) -> None:
    write_config(project)
    job = herd.start("train.yaml", cwd=project)
    herd.wait_for_step(job, 3)
    refused = herd.typed("stop", job, cwd=project, answer="n\n")
    assert refused[0] == 3
    assert "lost" in refused[1]
    assert herd.job(job)["state"] == "running"
    assert herd.typed("stop", job, cwd=project, answer="y\n")[0] == 0
    assert herd.job(job)["ending"] == "stopped"


def test_endings_are_told_from_files(herd: Herd, project: Path) -> None:
    endings = {"run": ("finished", 0), "crash": ("failed", 1), "nothing": ("untrained", 0)}
    for kind, (ending, code) in endings.items():
        write_config(project, stand_in=kind, max_steps=8, output_dir=f"out-{kind}")
        ended = herd.wait_for_end(herd.start("train.yaml", cwd=project))
        assert (ended["ending"], ended["exit_code"]) == (ending, code), kind
    newest = herd.document("jobs")["jobs"]
    assert [job["ending"] for job in newest] == ["untrained", "failed", "finished"]
    assert newest[1]["failure"]["message"] == "RuntimeError: CUDA error: the card said no"


def test_the_config_is_only_read_and_the_copy_is_resolved(herd: Herd, project: Path, tmp_path: Path) -> None:
    config = write_config(project, max_steps=8)
    before = config.read_bytes()
    job = herd.start(
        config,
        "--cwd",
        project,
        "max_steps=4",
        "--env",
        project / ".venv",
        "learning_rate=1e-4",
        cwd=tmp_path,
    )
    ended = herd.wait_for_end(job)
    assert ended["progress"]["total"] == 4
    assert config.read_bytes() == before
    copy = Path(ended["folder"]) / "config.yaml"
    assert "learning_rate: 0.0001" in copy.read_text()
    assert copy.stat().st_mode & 0o777 == 0o600
    assert Path(ended["folder"]).stat().st_mode & 0o777 == 0o700


def test_started_in_the_background_of_a_script_it_still_hears_sigint(herd: Herd, project: Path) -> None:
    write_config(project)
    script = "llamaherd start train.yaml & wait"
    subprocess.run(["sh", "-c", script], cwd=project, env=dict(herd.environment), check=True, timeout=60)
    (job,) = herd.document("jobs")["jobs"]
    herd.wait_for_step(job["id"], 1)
    stopped = herd.document("stop", job["id"], "--yes")
    assert [step["name"] for step in stopped["steps"]] == ["interrupt"]


def test_a_pasted_line_with_variables(herd: Herd, project: Path) -> None:
    write_config(project, max_steps=4)
    job = herd.start("--", "PROBE=hello", "llamafactory-cli", "train", "train.yaml", cwd=project)
    herd.wait_for_end(job)
    assert f"env hello in {project}" in herd.log(job)


def test_logs_follow_until_the_end_and_stay_harmless(herd: Herd, project: Path) -> None:
    token = "hf_abcdefghijklmnopqrstuvwxyzABCDEFGH"
    write_config(project, stand_in="secret", hub_token=token, max_steps=30)
    job = herd.start("train.yaml", cwd=project)
    said = herd.run("logs", job, "-f", cwd=project)
    assert said.returncode == 0
    assert "Training completed" in said.stdout
    assert said.stdout.count("30/30") == 1
    assert "\x1b" not in said.stdout
    assert token not in said.stdout
    assert "red" in said.stdout


def test_watch_prints_one_document_a_line_until_interrupted(herd: Herd, project: Path) -> None:
    with subprocess.Popen(
        ["llamaherd", "status", "--json", "--watch", "0.2"],
        env=dict(herd.environment),
        stdout=subprocess.PIPE,
        text=True,
    ) as watching:
        assert watching.stdout is not None
        numbers = [json.loads(watching.stdout.readline())["number"] for _ in range(3)]
        watching.send_signal(2)
        assert watching.wait(10) == 0
    assert numbers == [1, 2, 3]


def test_a_killed_keeper_is_replaced_and_said(herd: Herd, project: Path) -> None:
    write_config(project)
    job = herd.start("train.yaml", cwd=project)
    running = herd.wait_for_step(job, 2)
    record = json.loads((Path(running["folder"]) / "job.json").read_text())
    herd.end(record["keeper"]["pid"])
    found = herd.run("jobs", "--json", cwd=project)
    assert job in found.stderr
    (adopted,) = json.loads(found.stdout)["jobs"]
    assert (adopted["state"], adopted["keeper"]) == ("running", True)
    herd.wait_for_step(job, running["progress"]["step"] + 3)
    stopped = herd.document("stop", job, "--yes")
    assert (stopped["job"]["ending"], stopped["left"]) == ("stopped", [])
    assert stopped["job"]["stop"]["unverified"] is True
    wait_until(lambda: not herd.processes_of(job), 10, "nothing of the job is left")
