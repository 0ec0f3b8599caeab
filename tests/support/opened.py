"""A screen on a recorded feed, driven without a terminal."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from textual.pilot import Pilot

from support.recording import RecordedDesk, RecordedFeed, one_gpu
from tui.app.app import HerdApp
from tui.app.options import Options
from tui.facts.snapshot import Snapshot


class Opened:
    """An open screen and its parts."""

    def __init__(
        self, app: HerdApp, pilot: Pilot[None], feed: RecordedFeed, desk: RecordedDesk | None
    ) -> None:
        self.app = app
        self.pilot = pilot
        self.feed = feed
        self.desk = desk or RecordedDesk()

    async def press(self, *keys: str) -> None:
        """Press keys, and let everything that follows from them happen."""
        for key in keys:
            await self.pilot.press(key)
            await self.settle()

    async def settle(self) -> None:
        await self.app.workers.wait_for_complete()
        await self.pilot.pause()
        await self.pilot.pause()

    async def tick(self) -> None:
        """The next picture of the recording."""
        self.feed.step()
        self.app.look()
        await self.pilot.pause()

    @property
    def text(self) -> str:
        """What is on the screen."""
        return "\n".join(strip.text.rstrip() for strip in self.app.frame())

    @property
    def screen_name(self) -> str:
        return type(self.app.screen).__name__


@asynccontextmanager
async def open_screen(
    *snapshots: Snapshot, size: tuple[int, int] = (100, 32), options: Options | None = None
) -> AsyncIterator[Opened]:
    """The screen with the first picture shown."""
    feed, desk = RecordedFeed(snapshots or (one_gpu(),)), RecordedDesk()
    app = HerdApp(feed, desk, options or Options())
    async with app.run_test(size=size, notifications=True) as pilot:
        await pilot.pause()
        app.look()
        opened = Opened(app, pilot, feed, desk)
        await opened.settle()
        yield opened
