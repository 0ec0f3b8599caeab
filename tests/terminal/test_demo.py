"""``llamaherd --demo`` in a pseudo-terminal: it opens, is plainly a demo, and leaves nothing behind."""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.terminal import Terminal
from support.waiting import wait_until
from terminal.conftest import clean_environ

from tui.collect.proc import Proc
from tui.jobs.client import FoundJob, list_jobs

OPEN = "import sys; from tui.app import Options, run; sys.exit(run(Options(demo=True)))"


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Terminal]:
    environ = clean_environ({"TMPDIR": str(tmp_path), "LLAMAHERD_HOME": str(tmp_path / "home")})
    terminal = Terminal([sys.executable, "-c", OPEN], columns=100, lines=32, environ=environ)
    terminal.wait_for(lambda text: "qwen-lora" in text and "DEMO" in text, 30, "the demo runs")
    yield terminal
    terminal.close()


def the_job(tmp_path: Path) -> tuple[FoundJob, Callable[[], bool]]:
    (root,) = tmp_path.glob("llamaherd-demo-*")
    (job,) = list_jobs([root])
    assert isinstance(job, FoundJob)
    main = job.record.main
    assert main is not None
    identity = main

    def alive() -> bool:
        stat = Proc().stat(identity.pid)
        return stat is not None and stat.start == identity.start and stat.state != "Z"

    return job, alive


def test_leaving_ends_the_demos_jobs_and_removes_everything(demo: Terminal, tmp_path: Path) -> None:
    _, alive = the_job(tmp_path)
    assert alive()
    assert not (tmp_path / "home").exists()
    demo.type("q")
    assert demo.wait_exit(15) == 0
    assert not alive()
    assert list(tmp_path.glob("llamaherd-demo-*")) == []


def test_killing_it_ends_them_as_well(demo: Terminal, tmp_path: Path) -> None:
    job, alive = the_job(tmp_path)
    signal.pidfd_send_signal(os.pidfd_open(demo.pid), signal.SIGKILL)
    wait_until(lambda: not alive(), 10, "the child has noticed")
    wait_until(lambda: not job.folder.is_kept(), 20, "the keeper is done")
