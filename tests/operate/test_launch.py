"""From a request to a job that is ready to start."""

import os
import sys
from pathlib import Path

import pytest
from support.fake_prefix import make_prefix

from tui.facts.errors import LlamaherdError
from tui.operate.launch import StartRequest, Trial, find_configs, prepare, shipped_configs, understand
from tui.operate.settings import Settings

ENVIRON = {"PATH": "/usr/bin:/bin", "HOME": "/nowhere"}


def write_config(folder: Path, text: str = "output_dir: out\n") -> Path:
    path = folder / "train.yaml"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    "pasted", [("vllm", "serve", "org/model"), ("python", "-m", "vllm.entrypoints.openai.api_server")]
)
def test_a_vllm_server_needs_no_llamafactory(tmp_path: Path, pasted: tuple[str, ...]) -> None:
    launch = prepare(StartRequest(tmp_path, pasted=pasted), Settings(), ENVIRON)
    assert launch.environment is None
    assert launch.spec.command == pasted
    assert launch.spec.kind == "service"
    own = str(Path(sys.prefix) / "bin")
    assert own not in launch.spec.environ["PATH"].split(":")


def test_everything_else_needs_one(tmp_path: Path) -> None:
    for request in (
        StartRequest(tmp_path, pasted=("llamafactory-cli", "webui")),
        StartRequest(tmp_path, write_config(tmp_path)),
        StartRequest(tmp_path, pasted=("vllm", "serve", "x"), environment=tmp_path / "gone"),
    ):
        with pytest.raises(LlamaherdError) as raised:
            prepare(request, Settings(), ENVIRON)
        assert raised.value.code in ("environment_not_found", "environment_unusable")


def test_a_check_goes_on_without_one(tmp_path: Path) -> None:
    request = StartRequest(tmp_path, write_config(tmp_path))
    launch = understand(request, Settings(), ENVIRON, needs_environment=False)
    assert launch.environment is None
    assert launch.spec.command[0] == "llamafactory-cli"


def test_the_processes_are_counted_as_llamafactory_does(tmp_path: Path) -> None:
    make_prefix(tmp_path / ".venv")
    request = StartRequest(tmp_path, write_config(tmp_path))
    forced = {**ENVIRON, "FORCE_TORCHRUN": "1", "CUDA_VISIBLE_DEVICES": ""}
    launch = prepare(request, Settings(), forced)
    assert (launch.torchrun, launch.processes) == (True, 0)
    launch = prepare(request, Settings(), {**forced, "NPROC_PER_NODE": "2"})
    assert (launch.torchrun, launch.processes) == (True, 2)
    launch = prepare(request, Settings(), {**ENVIRON, "CUDA_VISIBLE_DEVICES": "0,1,2"})
    assert (launch.torchrun, launch.processes) == (True, 3)


def test_a_trial_changes_the_copy_and_the_output(tmp_path: Path) -> None:
    make_prefix(tmp_path / ".venv")
    request = StartRequest(tmp_path, write_config(tmp_path), trial=Trial(7))
    launch = prepare(request, Settings(), ENVIRON)
    assert launch.spec.output_dir == str(tmp_path / "out-trial-1")
    assert "max_steps: 7" in (launch.spec.config_text or "")


def test_a_start_refuses_what_torchrun_would_tear_apart(tmp_path: Path) -> None:
    make_prefix(tmp_path / "my env")
    request = StartRequest(tmp_path, write_config(tmp_path), environment=tmp_path / "my env")
    forced = {**ENVIRON, "FORCE_TORCHRUN": "1", "NPROC_PER_NODE": "1"}
    with pytest.raises(LlamaherdError) as raised:
        prepare(request, Settings(), forced)
    assert raised.value.code == "command_space_in_path"
    assert prepare(request, Settings(), ENVIRON).torchrun is False


def test_configs_to_offer(tmp_path: Path) -> None:
    own = write_config(tmp_path)
    (tmp_path / "configs").mkdir()
    second = write_config(tmp_path / "configs")
    (tmp_path / "configs" / "settings.yaml").touch()
    board = []
    for name, changed in (("old", 1), ("new", 2)):
        folder = tmp_path / "saves" / "Qwen" / "lora" / name
        folder.mkdir(parents=True)
        (folder / "training_args.yaml").touch()
        os.utime(folder / "training_args.yaml", (changed, changed))
        board.append(folder / "training_args.yaml")
    offered = find_configs(tmp_path)
    assert offered[:4] == (own, second, board[1], board[0])
    assert all(path.parent == shipped_configs() for path in offered[4:])
