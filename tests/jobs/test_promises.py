"""The counted promises with few runs each; ``tests/bench/jobs.py`` has the full counts."""

import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[1] / "bench" / "jobs.py"


@pytest.mark.parametrize("part", ["init", "reuse", "kills", "writes", "disk"])
def test_the_promise_holds(part: str) -> None:
    done = subprocess.run(
        [sys.executable, BENCH, "--few", part], check=False, capture_output=True, text=True, timeout=300
    )
    if "no namespaces here" in done.stdout:
        pytest.skip("no namespaces of our own here")
    assert done.returncode == 0, done.stdout + done.stderr
