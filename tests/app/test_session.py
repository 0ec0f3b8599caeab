"""The demo wired as ``llamaherd --demo`` wires it, at a quicker pace; and the words after leaving."""

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from support.opened import Opened
from support.recording import RecordedFeed, failed_job, job, one_gpu, service
from support.waiting import wait_until

from tui.app.app import HerdApp
from tui.app.desks import DemoDesk
from tui.app.feed import ThreadFeed
from tui.app.options import Options
from tui.app.scene import Scene
from tui.app.session import _demo_camera, farewell
from tui.demo.stage import Stage


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    stage = Stage(steps=4000, seconds=0.05)
    yield stage
    stage.close()


async def until(opened: Opened, text: str, seconds: float = 20.0) -> None:
    for _ in range(int(seconds / 0.1)):
        await opened.pilot.pause(0.1)
        opened.app.look()
        if text in opened.text:
            return
    raise AssertionError(f"not within {seconds} s: {text}\n{opened.text}")


async def test_the_demo_runs_is_stopped_and_fails_on_request(stage: Stage) -> None:
    feed = ThreadFeed(_demo_camera(stage), 0.2)
    app = HerdApp(feed, DemoDesk(stage), Options(demo=True))
    try:
        async with app.run_test(size=(110, 34)) as pilot:
            opened = Opened(app, pilot, RecordedFeed(()), None)
            await until(opened, "samples/s")
            assert " DEMO " in opened.text
            assert "RTX 4090" in opened.text
            assert "GiB  training" in opened.text
            await opened.press("X")
            await until(opened, "Cancel: let it run on")
            await opened.press("down", "enter")
            await until(opened, "Every process of it is gone")
            await opened.press("enter", "F")
            await until(opened, "out-of-memory-at-load")
            names = [path.stem for path in stage.configs()]
            await opened.press(*["down"] * names.index("out-of-memory-at-load"))
            await until(opened, "--fail-at load")
            await opened.press("enter", "down", "enter")
            await until(opened, "GPU memory ran out (loading weights, 1.2 GiB asked for)")
    finally:
        feed.close()


def test_after_leaving_the_jobs_that_go_on_are_named() -> None:
    both = replace(one_gpu(), foreign=(service(),))
    said = farewell(Scene(both))
    assert "2 jobs go on:" in said
    assert job().id in said
    assert failed_job().id not in said
    assert farewell(Scene(replace(one_gpu(), jobs=()))) == ""
    assert farewell(Scene(one_gpu(), demo=True)) == ""
    assert farewell(Scene()) == ""


def test_the_first_run_of_the_demo_is_started_once_only(stage: Stage) -> None:
    make = _demo_camera(stage)
    for _ in range(2):
        camera = make()
        wait_until(lambda: len(camera.snapshot().jobs) == 1, 10, "the one run")  # noqa: B023
        camera.close()
