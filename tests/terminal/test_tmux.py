"""The screen inside tmux, where it is installed: it opens, takes keys, and leaves a clean terminal."""

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.waiting import wait_until
from terminal.conftest import clean_environ

Tmux = Callable[..., str]

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")


@pytest.fixture
def tmux(tmp_path: Path) -> Iterator[Tmux]:
    def run(*arguments: str) -> str:
        command = ["tmux", "-S", str(tmp_path / "socket"), "-f", "/dev/null", *arguments]
        done = subprocess.run(
            command, env=clean_environ({}), capture_output=True, text=True, check=True, timeout=10
        )
        return done.stdout

    yield run
    subprocess.run(["tmux", "-S", str(tmp_path / "socket"), "kill-server"], check=False, capture_output=True)


def test_it_opens_takes_keys_and_leaves(tmux: Tmux) -> None:
    program = f"{sys.executable} -m support.played --still; echo left with $?; sleep 60"
    tmux("new-session", "-d", "-x", "80", "-y", "24", program)
    wait_until(lambda: "qwen-lora.yaml" in tmux("capture-pane", "-p"), 20, "the screen")
    tmux("send-keys", "2")
    wait_until(lambda: "no visible process explains" in tmux("capture-pane", "-p"), 10, "the owners")
    tmux("resize-window", "-x", "120", "-y", "40")
    wait_until(lambda: "╮" in tmux("capture-pane", "-p"), 10, "the new size")
    tmux("send-keys", "q")
    wait_until(lambda: "left with 0" in tmux("capture-pane", "-p"), 10, "it has left")
    assert "llamaherd" not in tmux("capture-pane", "-p")
