"""Whether a screen can be drawn here, decided before Textual is imported."""

import os
import subprocess
import sys

import pytest

from tui.app.options import prefers_ascii, terminal_missing


@pytest.mark.parametrize("term", ["dumb", "unknown"])
def test_a_dumb_terminal_is_none(term: str) -> None:
    assert terminal_missing({"TERM": term})


@pytest.mark.parametrize(
    ("encoding", "term", "ascii_only"),
    [
        ("utf-8", "xterm", False),
        ("UTF8", "screen", False),
        ("gb18030", "xterm", False),
        ("ascii", "xterm", True),
        ("iso8859-1", "xterm", True),
        (None, "xterm", True),
        ("utf-8", "linux", True),
    ],
)
def test_ascii_where_more_cannot_be_shown(encoding: str | None, term: str, ascii_only: bool) -> None:
    assert prefers_ascii({"TERM": term}, encoding) is ascii_only


def test_without_a_terminal_one_sentence_and_exit_2_and_no_textual() -> None:
    code = (
        "import sys; from tui.app import Options, run; code = run(Options());"
        "assert not any(name.startswith('textual') for name in sys.modules); sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "TERM": "xterm"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert "terminal" in done.stderr
