"""The program behind a terminal, ended with the test."""

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from support.terminal import Terminal

TESTS = Path(__file__).parent.parent

Play = Callable[..., Terminal]


@pytest.fixture
def play() -> Iterator[Play]:
    """Plays a recorded scene: ``play("--scene", "eight", columns=80, lines=24)``."""
    opened: list[Terminal] = []

    def start(*arguments: str, columns: int = 80, lines: int = 24, **environ: str) -> Terminal:
        argv = [sys.executable, "-m", "support.played", *arguments]
        terminal = Terminal(argv, columns=columns, lines=lines, environ=clean_environ(environ))
        opened.append(terminal)
        return terminal

    yield start
    for terminal in opened:
        terminal.close()


def clean_environ(more: Mapping[str, str]) -> Mapping[str, str]:
    """This environment without what decides about looks; an empty value means unset."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("LC_", "TEXTUAL", "LANG")) and name not in {"COLORTERM", "NO_COLOR", "TMUX"}
    }
    chosen = {"TERM": "xterm-256color", "LANG": "C.UTF-8", "PYTHONPATH": str(TESTS)} | dict(more)
    return kept | {name: value for name, value in chosen.items() if value}
