"""What a command costs before it does anything, and what it can do without."""

import json
import subprocess
import sys

import pytest

from tui import __version__

HEAVY = {"textual", "rich.console", "plotext", "watchfiles", "pynvml"}


def modules_after(*words: str) -> set[str]:
    """The modules that a command line has imported when it is done."""
    code = (
        "import sys, json; from tui.cli.run import run; code = run(sys.argv[1:], lambda _: 0);"
        "sys.stderr.write(json.dumps(sorted(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True)
    names: list[str] = json.loads(done.stderr.splitlines()[-1])
    return set(names)


@pytest.mark.parametrize("words", [("status", "--json"), ("jobs", "--json")])
def test_json_needs_nothing_heavy(words: tuple[str, ...]) -> None:
    assert not modules_after(*words) & HEAVY


def said_by(*words: str) -> str:
    command = [sys.executable, "-m", "tui", *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_version_and_help() -> None:
    assert said_by("--version").strip() == f"llamaherd {__version__}"
    assert "stop a job" in said_by("--lang", "en", "--help")
    assert "停止" in said_by("--lang", "zh", "--help")
