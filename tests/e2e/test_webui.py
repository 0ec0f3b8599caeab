"""The real WebUI and the training that it starts: seen, and stopped by the rules of their kind."""

import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from support.command_line import Herd
from support.real_llamafactory import RealLlamaFactory
from support.waiting import wait_until

from tui.collect.proc import Proc

pytestmark = pytest.mark.e2e

PRESS = Path(__file__).parent / "press_webui.py"
PROC = Proc()


@dataclass
class WebUi:
    """A WebUI that runs, and the pages that are open on it."""

    real: RealLlamaFactory
    herd: Herd
    project: Path
    port: int
    pid: int
    pages: list["subprocess.Popen[bytes]"] = field(default_factory=list)

    def press(self, *words: str) -> "subprocess.Popen[bytes]":
        """Press a button from a page of its own, which stays open."""
        python = str(self.real.environment / "bin" / "python")
        page = subprocess.Popen(
            [python, str(PRESS), str(self.port), *words],
            cwd=self.project,
            env=self._environ(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        self.pages.append(page)
        return page

    def train(self, name: str) -> dict[str, Any]:
        """Start a training from a page; the run as ``status`` shows it once it has trained a step."""
        page = self.press("train", str(self.project / "tiny-qwen3"), name)

        def stepping() -> dict[str, Any] | None:
            assert page.poll() is None, (self.project / "webui.log").read_text()[-2000:]
            runs = (run for run in self.foreign() if run["kind"] == "training")
            return next((run for run in runs if ((run["progress"] or {}).get("step") or 0) > 0), None)

        return wait_until(stepping, 240, "the training that the WebUI started steps")

    def foreign(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.herd.document("status")["foreign"]
        mine = set(self.herd.processes())
        return [run for run in found if run["main_pid"] in mine]

    def _environ(self) -> dict[str, str]:
        return dict(self.herd.environment) | {"NO_PROXY": "127.0.0.1,localhost"}


@pytest.fixture
def webui(llamafactory: RealLlamaFactory, herd: Herd, tmp_path: Path) -> Iterator[WebUi]:
    project = tmp_path / "project"
    project.mkdir()
    llamafactory.write_project(project, rows=400)
    with _running(llamafactory, herd, project) as found:
        yield found


@contextmanager
def _running(real: RealLlamaFactory, herd: Herd, project: Path) -> Iterator[WebUi]:
    port = _free_port()
    environ = dict(herd.environment) | {
        "GRADIO_SERVER_NAME": "127.0.0.1",
        "GRADIO_SERVER_PORT": str(port),
        "GRADIO_ANALYTICS_ENABLED": "False",
        "NO_PROXY": "127.0.0.1,localhost",
        "PATH": f"{real.environment / 'bin'}{os.pathsep}{herd.environment['PATH']}",
    }
    with (project / "webui.log").open("wb") as log:
        process = subprocess.Popen(
            [str(real.command), "webui"],
            cwd=project,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    found = WebUi(real, herd, project, port, process.pid)
    try:
        wait_until(lambda: _answers(port), 180, "the WebUI answers")
        yield found
    finally:
        for page in found.pages:
            page.kill()
            page.wait()
        herd.end_all()
        process.wait(30)


def test_the_training_is_stopped_and_the_webui_lives_on(webui: WebUi) -> None:
    run = webui.train("one")
    roles = {member["pid"]: member["role"] for member in run["members"]}
    assert webui.pid not in roles
    assert list(roles.values()).count("main") == 1
    stopped = webui.herd.document("stop", str(run["main_pid"]), "--yes")
    assert (stopped["job"]["ending"], stopped["left"], stopped["behind"]) == ("stopped", [], [])
    assert [pid for pid in roles if Path(f"/proc/{pid}").exists() and _alive(pid)] == []
    assert _answers(webui.port)
    assert [seen["main_pid"] for seen in webui.foreign()] == [webui.pid]

    left = webui.herd.document("stop", str(webui.pid), "--yes")
    assert (left["job"]["kind"], left["job"]["ending"], left["left"]) == ("service", "stopped", [])
    assert not _answers(webui.port)


def test_the_abort_button_pressed_meanwhile_does_no_harm(webui: WebUi) -> None:
    run = webui.train("two")
    abort = webui.press("abort")
    stopped = webui.herd.document("stop", str(run["main_pid"]), "--yes")
    assert abort.wait(60) == 0
    assert stopped["left"] == []
    assert stopped["job"]["state"] == "ended"
    assert not any(_alive(member["pid"]) for member in run["members"])
    assert _answers(webui.port)


def test_a_run_that_stalls_behind_a_closed_page_is_stopped(webui: WebUi) -> None:
    """Its page is closed, so nobody reads the pipe that it writes to, until it can write no more."""
    run = webui.train("three")
    webui.pages[0].kill()
    pid = run["main_pid"]

    def stalled() -> bool:
        _fill_pipe(pid)  # again, as long as the WebUI has not noticed that its page is gone
        return "pipe_write" in PROC.wchan(pid)

    wait_until(stalled, 240, "the training waits for its pipe")
    stopped = webui.herd.document("stop", str(pid), "--yes")
    assert (stopped["job"]["state"], stopped["left"]) == ("ended", [])
    assert not any(_alive(member["pid"]) for member in run["members"])
    assert _answers(webui.port)


def _fill_pipe(pid: int) -> None:
    """What hours of progress bars do: the training's own pipe gets full."""
    descriptor = os.open(f"/proc/{pid}/fd/2", os.O_WRONLY | os.O_NONBLOCK)
    try:
        while True:
            os.write(descriptor, b"." * 4096)
    except BlockingIOError:
        return
    finally:
        os.close(descriptor)


def _alive(pid: int) -> bool:
    stat = PROC.stat(pid)
    return stat is not None and stat.lives_on


def _free_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        port: int = server.getsockname()[1]
        return port


def _answers(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0
