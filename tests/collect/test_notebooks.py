"""What a process calls itself, from its environment, its arguments and its connection file."""

import json
import os
import uuid
from pathlib import Path

import pytest

from tui.collect.notebooks import own_title

KERNEL = ("/opt/bin/python", "-m", "ipykernel_launcher", "-f")


def connection(folder: Path, content: object) -> str:
    path = folder / f"kernel-{uuid.uuid4()}.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return str(path)


def test_a_kernel_is_told_its_notebook_in_the_environment(tmp_path: Path) -> None:
    path = connection(tmp_path, {"jupyter_session": "/root/other.ipynb", "key": "secret"})
    assert own_title((*KERNEL, path), {"JPY_SESSION_NAME": "/root/autodl-tmp/微调.ipynb"}) == "微调.ipynb"


@pytest.mark.parametrize("form", ["-f {}", "--f={}", "-f={}"])
def test_or_in_its_connection_file(tmp_path: Path, form: str) -> None:
    path = connection(tmp_path, {"jupyter_session": "/root/autodl-tmp/train.ipynb", "key": "secret"})
    assert own_title((*KERNEL[:3], *form.format(path).split()), {}) == "train.ipynb"


@pytest.mark.parametrize(
    "content",
    [{}, {"jupyter_session": ""}, {"jupyter_session": 5}, [], "no json", "[" * 50_000, '"' + "a" * (1 << 20)],
)
def test_a_connection_file_that_does_not_say(tmp_path: Path, content: object) -> None:
    assert own_title((*KERNEL, connection(tmp_path, content)), {}) is None


def test_nothing_but_a_file_is_opened_for_another_process(tmp_path: Path) -> None:
    pipe = tmp_path / "kernel-1.json"
    os.mkfifo(pipe)
    for path in (str(pipe), str(tmp_path), "/dev/zero", "a\0b.json", str(tmp_path / "none.json")):
        assert own_title((*KERNEL, path), {}) is None
    assert own_title(KERNEL, {}) is None


def test_parts_of_servers_and_boards() -> None:
    assert own_title(("VLLM::EngineCore",), {}) == "EngineCore"
    assert own_title((), {}, "VLLM::Worker_TP") == "Worker_TP"
    assert own_title(("/opt/bin/python", "/opt/bin/tensorboard", "--logdir", "x"), {}) == "TensorBoard"
    assert own_title(("python", "-m", "tensorboard.main"), {}) == "TensorBoard"
    assert own_title(("python", "train.py", "--tool", "x", "tensorboard"), {}) is None
    assert own_title(("vim", "notes"), {"JPY_SESSION_NAME": "x.ipynb"}) is None, "a terminal in Jupyter"
    assert own_title((), {}) is None
