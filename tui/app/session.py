"""Opens the screen, wires it to the machine or to the demo, and says afterwards which jobs go on."""

import os
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

from tui.app.app import HerdApp
from tui.app.desk import Desk
from tui.app.desks import DemoDesk, MachineDesk
from tui.app.feed import Camera, Feed, ThreadFeed
from tui.app.options import Options, prefers_ascii
from tui.app.scene import Scene
from tui.app.widgets.training import job_name
from tui.text.outside import outside
from tui.text.translate import set_language, tr, tr_plural

if TYPE_CHECKING:
    from tui.demo.stage import Stage
    from tui.facts.snapshot import Snapshot


def open_screen(options: Options) -> int:
    """Open it and stay until it is left; the exit code."""
    if prefers_ascii(os.environ, sys.stderr.encoding):
        # What cannot draw a line cannot write Chinese either.
        options = replace(options, ascii=True, language="en")
        set_language("en")
    with ExitStack() as closing:
        feed, desk = _demo(options, closing) if options.demo else _machine(options)
        closing.callback(feed.close)
        app = HerdApp(feed, desk, options)
        app.run(mouse=options.mouse)
        code = app.return_code or 0
    sys.stdout.write(farewell(app.scene))
    return code


def farewell(scene: Scene) -> str:
    """What goes on after the screen was left; nothing is said when nothing does."""
    if scene.demo or not scene.live:
        return ""
    head = tr_plural("{count} job goes on:", "{count} jobs go on:", len(scene.live))
    lines = [f"  {outside(job.id)}  {job_name(job)}" for job in scene.live]
    return "\n".join([head, *lines, tr("`llamaherd` shows them again."), ""])


def _machine(options: Options) -> tuple[Feed, Desk]:
    def make() -> Camera:
        return _MachineCamera(options)

    return ThreadFeed(make, options.interval), MachineDesk(options)


class _MachineCamera:
    """The observer of this machine."""

    def __init__(self, options: Options) -> None:
        from tui.operate.observe import Observer, adopt_orphans
        from tui.operate.places import Places
        from tui.operate.settings import Settings

        settings = options.settings or Settings()
        roots = Places.of(settings, os.environ).roots
        if not options.readonly:
            adopt_orphans(roots)  # jobs whose keeper was killed get a new one
        self._observer = Observer(roots, price_per_hour=settings.price_per_hour)
        self._observer.start()

    def snapshot(self) -> "Snapshot":
        return self._observer.snapshot()

    def close(self) -> None:
        self._observer.close()


def _demo(options: Options, closing: ExitStack) -> tuple[Feed, Desk]:
    from tui.demo.stage import Stage

    stage = Stage()
    closing.callback(stage.close)
    return ThreadFeed(_demo_camera(stage), options.interval), DemoDesk(stage)


def _demo_camera(stage: "Stage") -> Callable[[], Camera]:
    """Made in the feed's thread; starting the first run there keeps the first frame quick."""
    started = False

    def make() -> Camera:
        nonlocal started
        if not started:
            stage.start(stage.configs()[0], os.environ)
            started = True
        return _DemoCamera(stage)

    return make


class _DemoCamera:
    """A real observer of the demo's root, with simulated cards around what it sees."""

    def __init__(self, stage: "Stage") -> None:
        from tui.demo.cards import Cards
        from tui.operate.observe import Observer

        # Never started: the driver of this machine is not the demo's.
        self._observer = Observer([stage.root])
        self._cards = Cards()

    def snapshot(self) -> "Snapshot":
        return self._cards.dress(self._observer.snapshot())

    def close(self) -> None:
        self._observer.close()
