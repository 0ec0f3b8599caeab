"""stop, sweep and jobs --prune on what was started elsewhere or is left over."""

import json
import os
import signal
from pathlib import Path

import pytest
from support.command_line import Herd
from support.foreign_runs import PYTHON, alive, enrolled, make_programs, running
from support.stand_in_trainer import write_config
from support.waiting import wait_until


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "train.yaml").write_text("stage: sft\n")
    return make_programs(folder)


def train(place: Path) -> str:
    return f"{PYTHON} {place / 'bin' / 'llamafactory-cli'} train train.yaml"


def test_a_run_from_another_terminal_with_a_shutdown_behind_it(herd: Herd, place: Path) -> None:
    line = f"{train(place)}; /no/such/shutdown"
    with running(place, ["/bin/sh", "-c", line], 1):
        (pid,) = enrolled(place / "yard")
        unasked = herd.run("stop", str(pid), cwd=place)
        assert unasked.returncode == 3
        assert herd.run("stop", str(pid), "--yes", "--readonly", cwd=place).returncode == 3
        code, said = herd.typed("stop", str(pid), cwd=place, answer="n\n")
        assert code == 3
        assert "switches the machine off" in said
        assert f"PID {pid}" in said
        assert alive(place / "yard") == {pid: "cli"}
        stopped = herd.document("stop", str(pid), "--yes")
        assert (stopped["job"]["ending"], stopped["job"]["foreign"], stopped["left"]) == ("stopped", True, [])
        assert [item["code"] for item in stopped["behind"]][:1] == ["shutdown"]
        assert alive(place / "yard") == {}
    assert herd.run("stop", str(pid), "--yes", cwd=place).returncode == 2
    (listed,) = herd.document("jobs")["jobs"]
    assert listed["id"] == stopped["job"]["id"]
    herd.wait_until_nothing_runs()


def test_strays_are_listed_then_swept(herd: Herd, place: Path) -> None:
    with running(place, train(place).split(), 4, FORCE_TORCHRUN="1", STUBBORN="1") as process:
        ranks = {pid for pid, (_, name) in enrolled(place / "yard").items() if name == "rank"}
        (agent,) = (pid for pid, (_, name) in enrolled(place / "yard").items() if name == "agent")
        os.kill(agent, signal.SIGKILL)
        process.wait(10)

        def mine() -> list[str]:
            groups = herd.document("sweep")["groups"]
            return [g["id"] for g in groups if {s["process"]["pid"] for s in g["strays"]} == ranks]

        (group,) = wait_until(mine, 20, "the ranks are listed")
        listed = herd.run("sweep", cwd=place)
        assert listed.returncode == 0
        assert group in listed.stdout
        assert "a rank whose torchrun is gone" in listed.stdout
        assert set(alive(place / "yard")) == ranks
        assert herd.run("sweep", group, "--readonly", cwd=place).returncode == 3
        assert herd.run("sweep", group, cwd=place).returncode == 3
        assert herd.run("sweep", "1:1", "--yes", cwd=place).returncode == 3
        code, _ = herd.typed("sweep", group, cwd=place, answer="y\n")
        assert code == 0
        assert alive(place / "yard") == {}
        assert mine() == []
    herd.wait_until_nothing_runs()


def test_old_folders_are_shown_then_removed(herd: Herd, project: Path) -> None:
    write_config(project, max_steps=2)
    first = herd.start("train.yaml", cwd=project)
    herd.wait_for_end(first)
    assert "so long" in herd.run("jobs", "--prune", cwd=project).stdout
    assert herd.run("jobs", "--prune", "0", cwd=project).returncode == 3
    assert herd.run("jobs", "--prune", "0", "--yes", "--readonly", cwd=project).returncode == 3
    code, said = herd.typed("jobs", "--prune", "0", cwd=project, answer="n\n")
    assert (code, first in said) == (3, True)
    assert herd.document("jobs")["jobs"]
    said = herd.run("jobs", "--json", "--prune", "0", "--yes", cwd=project).stdout
    assert [folder["job"] for folder in json.loads(said)["removed"]] == [first]
    assert herd.document("jobs")["jobs"] == []
    assert (project / "out" / "adapter_model.safetensors").exists()
