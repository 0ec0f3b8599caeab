"""What a person gets wrong: one sentence, the right exit code, nothing started."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from support.command_line import Herd
from support.stand_in_trainer import write_config


def refused(herd: Herd, project: Path, *words: str | Path) -> tuple[int, str, str]:
    """Exit code and error code of a command that must fail without starting anything."""
    plain = herd.run(*words, cwd=project)
    assert plain.returncode != 0
    assert plain.stdout == ""
    assert plain.stderr.startswith("llamaherd: ")
    assert "Traceback" not in plain.stderr
    said = herd.run(words[0], "--json", *words[1:], cwd=project)
    error = json.loads(said.stdout)["error"]
    assert said.returncode == plain.returncode
    assert error["message"] in plain.stderr.replace("llamaherd: ", "")
    assert herd.document("jobs")["jobs"] == []
    assert herd.processes() == {}
    return said.returncode, error["code"], plain.stderr


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("a: [1, 2\nb: 3\n", "config_invalid"),
        ("just words\n", "config_not_mapping"),
        ("", "config_not_mapping"),
        ("\x00\x01\x02", "config_unreadable"),
        ("a: " + "x" * (2 << 20), "config_too_large"),
    ],
)
def test_malformed_configs(herd: Herd, project: Path, text: str, code: str) -> None:
    (project / "bad.yaml").write_text(text)
    found = refused(herd, project, "start", "bad.yaml")
    assert found[0] == 1
    assert found[1] in {code, "config_invalid"}
    assert "bad.yaml" in found[2]


def test_a_missing_config(herd: Herd, project: Path) -> None:
    assert refused(herd, project, "start", "none.yaml")[:2] == (1, "config_missing")


def test_no_llamafactory(herd: Herd, project: Path, tmp_path: Path) -> None:
    write_config(tmp_path)
    assert refused(herd, project, "start", "../train.yaml", "--env", tmp_path / "none")[:2] == (
        1,
        "environment_unusable",
    )
    empty = tmp_path / "empty"
    empty.mkdir()
    assert refused(herd, empty, "start", "../train.yaml")[:2] == (1, "environment_not_found")


def test_an_output_folder_that_cannot_be_written(herd: Herd, project: Path) -> None:
    (project / "file").write_text("")
    write_config(project, output_dir="file/out")
    assert refused(herd, project, "start", "train.yaml")[:2] == (1, "output_not_writable")
    write_config(project, output_dir="/proc/out")
    code, name, said = refused(herd, project, "start", "train.yaml")
    assert (code, name) == (1, "output_not_writable")
    assert "/proc/out" in said


def test_processes_that_are_not_ours(herd: Herd, project: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as innocent:
        assert refused(herd, project, "stop", str(innocent.pid), "--yes")[:2] == (3, "not_ours")
        assert innocent.poll() is None
        innocent.kill()
    assert refused(herd, project, "stop", str(innocent.pid), "--yes")[:2] == (2, "pid_missing")
    assert refused(herd, project, "stop", "1", "--yes")[:2] == (3, "not_ours")
    assert refused(herd, project, "stop", "no-such-job", "--yes")[:2] == (2, "job_unknown")
    assert refused(herd, project, "stop", "", "--yes")[:2] == (2, "job_unknown")


def test_a_few_digits_never_mean_a_job_by_its_date(herd: Herd, project: Path) -> None:
    write_config(project)
    job = herd.start("train.yaml", cwd=project)
    herd.wait_for_step(job, 1)
    for digits in ("2", "20", job[:5], "1"):
        assert herd.run("stop", digits, "--yes", cwd=project).returncode in (2, 3), digits
    assert herd.job(job)["state"] == "running"
    herd.document("stop", job, "--yes", "--force")


def test_a_program_that_cannot_run_is_an_error_and_no_riddle(herd: Herd, project: Path) -> None:
    write_config(project)
    program = project / ".venv" / "bin" / "llamafactory-cli"
    program.write_bytes(b"\x7fELF, in name only")
    said = herd.run("start", "train.yaml", "--json", cwd=project)
    assert said.returncode == 1
    assert json.loads(said.stdout)["error"]["code"] in {"command_failed", "environment_unusable"}
    assert [shown["ending"] for shown in herd.document("jobs")["jobs"]] in ([], ["failed"])


def test_output_that_goes_nowhere(herd: Herd, project: Path) -> None:
    for line in ("llamaherd status > /dev/full", "llamaherd jobs --json > /dev/full"):
        said = subprocess.run(
            ["sh", "-c", line], env=dict(herd.environment), capture_output=True, text=True, timeout=60
        )
        assert said.returncode == 1
        assert "Traceback" not in said.stderr
    closed = subprocess.run(["sh", "-c", "llamaherd status >&-"], env=dict(herd.environment), timeout=60)
    assert closed.returncode == 0
    plain = {**herd.environment, "PYTHONIOENCODING": "ascii"}
    said = subprocess.run(
        ["llamaherd", "--lang", "zh", "status"], env=plain, capture_output=True, text=True, timeout=60
    )
    assert said.returncode == 0, said.stderr


def test_a_named_state_folder_is_not_replaced_in_silence(herd: Herd, project: Path) -> None:
    write_config(project)
    (project / "file").write_text("")
    variables = {"LLAMAHERD_HOME": str(project / "file")}
    said = herd.run("start", "train.yaml", cwd=project, variables=variables)
    assert said.returncode == 1
    assert str(project / "file") in said.stderr
    assert herd.processes() == {}


@pytest.mark.parametrize(
    "words",
    [
        ("start",),
        ("start", "a.yaml", "--", "llamafactory-cli", "train", "b.yaml"),
        ("start", "a.yaml", "--no-such-option"),
        ("status", "--watch", "0"),
        ("stop",),
        ("jobs", "--", "x"),
    ],
)
def test_usage(herd: Herd, project: Path, words: tuple[str, ...]) -> None:
    assert herd.run(*words, cwd=project).returncode == 2


def test_pasted_commands_that_are_no_job(herd: Herd, project: Path) -> None:
    typing_error = ["llamafactory-cli", "trian", "x.yaml"]
    glued = ["llamafactory-cli train train.yaml;/usr/bin/shutdown"]
    for pasted in (["rm", "-rf", "/"], typing_error, ["llamafactory-cli train x | tee y"], glued):
        code, name, _said = refused(herd, project, "start", "--", *pasted)
        assert (code, name) == (2, "command_unsupported")


def test_no_confirmation_no_stop(herd: Herd, project: Path) -> None:
    write_config(project)
    job = herd.start("train.yaml", cwd=project)
    said = herd.run("stop", job, cwd=project)
    assert said.returncode == 3
    assert herd.job(job)["state"] == "running"
    for words in (("stop", job, "--yes", "--readonly"), ("--readonly", "stop", job, "--yes")):
        assert herd.run(*words, cwd=project).returncode == 3
    assert herd.run("start", "train.yaml", "--readonly", cwd=project).returncode == 3
    assert herd.job(job)["state"] == "running"
    herd.document("stop", job, "--yes", "--force")


def test_a_dry_run_starts_nothing(herd: Herd, project: Path) -> None:
    write_config(project, api_key="topsecret1")
    plan = herd.document("start", "train.yaml", "--dry-run", cwd=project)
    assert plan["command"][1] == "train"
    assert plan["cwd"] == str(project)
    assert plan["torchrun"] is False
    words = herd.run("start", "train.yaml", "--dry-run", cwd=project)
    assert words.returncode == 0
    assert str(project / "out") in words.stdout
    assert herd.document("jobs")["jobs"] == []


def test_a_damaged_job_folder_is_named_and_the_rest_goes_on(herd: Herd, project: Path) -> None:
    write_config(project, max_steps=2)
    job = herd.start("train.yaml", cwd=project)
    herd.wait_for_end(job)
    damaged = herd.home / "jobs" / "20200101-000000-torn-aaaa"
    damaged.mkdir()
    (damaged / "job.json").write_text('{"schema": 1, "id"')
    listed = herd.document("jobs")
    assert [shown["id"] for shown in listed["jobs"]] == [job]
    assert [folder["path"] for folder in listed["unreadable"]] == [str(damaged)]
    said = herd.run("jobs", cwd=project)
    assert said.returncode == 0
    assert str(damaged) in said.stderr


def test_settings_are_explained_when_wrong(herd: Herd, project: Path) -> None:
    folder = Path(herd.environment["HOME"]) / ".config" / "llamaherd"
    folder.mkdir(parents=True)
    (folder / "settings.yaml").write_text("langage: zh\n")
    said = herd.run("status", cwd=project)
    assert said.returncode == 1
    assert "language" in said.stderr
