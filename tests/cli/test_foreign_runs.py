"""Trainings that somebody started in another terminal: found, and followed wherever their output goes."""

import json
import subprocess
from pathlib import Path
from typing import IO, Any

from support.command_line import Herd
from support.stand_in_trainer import write_config
from support.waiting import wait_until


def start(herd: Herd, project: Path, output: IO[bytes] | int) -> "subprocess.Popen[bytes]":
    """As from a shell: no keeper, no token; it ends with everything else of this test."""
    return subprocess.Popen(
        [project / ".venv/bin/llamafactory-cli", "train", "train.yaml"],
        cwd=project,
        env={**herd.environment},
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT if output != subprocess.DEVNULL else output,
    )


def foreign(herd: Herd, project: Path) -> list[dict[str, Any]]:
    """Other trainings may run on this machine, these are of this test."""
    found: list[dict[str, Any]] = herd.document("status")["foreign"]
    return [run for run in found if run["cwd"] == str(project)]


def with_steps(herd: Herd, project: Path) -> dict[str, Any] | None:
    return next((run for run in foreign(herd, project) if (run["progress"] or {}).get("step")), None)


def test_its_output_goes_to_a_file(herd: Herd, project: Path) -> None:
    write_config(project, max_steps=50000)
    with (project / "my.log").open("wb") as log:
        child = start(herd, project, log)
        run = wait_until(lambda: with_steps(herd, project), 60, "found with its steps")
        assert (run["main_pid"], run["kind"]) == (child.pid, "training")
        assert run["progress"]["total"] == 50000
        assert run["progress"]["source"] == "bar"
        assert run["progress"]["stage"] == "train"
        child.terminate()
        child.wait()
    wait_until(lambda: foreign(herd, project) == [], 30, "it is gone")


def test_its_output_is_lost_but_not_its_trainer_log(herd: Herd, project: Path) -> None:
    write_config(project, max_steps=50000)
    child = start(herd, project, subprocess.DEVNULL)
    wait_until(lambda: len(foreign(herd, project)) == 1, 60, "found")
    (one,) = foreign(herd, project)
    assert (one["progress"], one["unknown"]["progress"]) == (None, "not_yet")
    lines = [
        {"current_steps": n, "total_steps": 90, "loss": 2.0, "elapsed_time": f"0:00:{n:02}", "epoch": n / 90}
        for n in range(5, 46, 5)
    ]
    (project / "out" / "trainer_log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (one,) = foreign(herd, project)
    assert (one["progress"]["step"], one["progress"]["source"], one["progress"]["stage"]) == (
        45,
        "trainer_log",
        "train",
    )
    child.terminate()
    child.wait()


def test_a_log_that_is_appended_to_does_not_tell_of_the_run_before(herd: Herd, project: Path) -> None:
    write_config(project, max_steps=50000, stand_in="silent")
    old = (
        "[INFO|trainer.py:2519] 2020-01-01 00:00:00,000 >> ***** Running training *****\n"
        "[INFO|trainer.py:2527] 2020-01-01 00:00:00,000 >>   Total optimization steps = 100\n"
        "\r 50%|#####     | 50/100 [00:50<00:50,  1.00s/it]"
    )
    (project / "my.log").write_text(old)
    script = project / ".venv/bin/llamafactory-cli"
    script.write_text(script.read_text().partition("\n")[0] + "\nimport time\ntime.sleep(600)\n")
    with (project / "my.log").open("ab") as log:
        child = start(herd, project, log)
        wait_until(lambda: len(foreign(herd, project)) == 1, 60, "found")
        (one,) = foreign(herd, project)
        assert one["progress"] is None
        child.terminate()
        child.wait()
