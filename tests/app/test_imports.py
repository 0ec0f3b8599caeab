"""What the first frame waits for: nothing that is not on it."""

import subprocess
import sys

NOT_YET = (
    "msgspec",
    "yaml",
    "psutil",
    "pynvml",
    "watchfiles",
    "plotext",
    "tui.operate",
    "tui.insight",
    "tui.jobs",
)


def test_the_first_frame_imports_nothing_that_only_figures_need() -> None:
    code = "import sys, tui.app.session; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    early = [
        name for name in done.stdout.split() if name.startswith((*NOT_YET, "tui.facts.job", "tui.text.find"))
    ]
    assert early == []
