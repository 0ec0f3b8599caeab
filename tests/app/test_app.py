"""The wiring: frame first, figures when they come; only what differs is painted; ages are said."""

from dataclasses import replace
from pathlib import Path

import pytest
from support.opened import open_screen
from support.recording import RecordedDesk, RecordedFeed, eight_gpus, no_driver, one_gpu, service, write_logs
from textual.geometry import Region

from tui.app.app import HerdApp
from tui.app.options import Options
from tui.app.widgets.gpus import GpuPanel
from tui.app.widgets.log import LogPanel
from tui.app.widgets.owners import OwnersPanel
from tui.app.widgets.panel import Panel


async def test_the_feed_starts_after_the_first_frame() -> None:
    frames_at_start: list[int] = []

    class Feed(RecordedFeed):
        def start(self) -> None:
            frames_at_start.append(app.painted)

    class App(HerdApp):
        painted = 0

        def post_display_hook(self) -> None:
            self.painted += 1

    app = App(Feed([one_gpu()]), RecordedDesk(), Options())
    async with app.run_test() as pilot:
        await pilot.pause()
        assert frames_at_start
        assert frames_at_start[0] > 0


@pytest.fixture
def marked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str | None, int | None]]:
    """(panel, line) of every repaint that is asked for; line ``None`` is the whole panel."""
    asked: list[tuple[str | None, int | None]] = []
    original = Panel.refresh

    def refresh(self: Panel, *regions: Region, **options: bool) -> Panel:
        asked.extend((self.id, region.y) for region in regions)
        if not regions:
            asked.append((self.id, None))
        return original(self, *regions, **options)

    monkeypatch.setattr(Panel, "refresh", refresh)
    return asked


async def test_the_same_figures_again_paint_nothing(marked: list[tuple[str | None, int | None]]) -> None:
    async with open_screen(one_gpu(), replace(one_gpu(), number=2)) as opened:
        marked.clear()
        await opened.tick()
        assert marked == []


async def test_one_changed_figure_paints_one_line(marked: list[tuple[str | None, int | None]]) -> None:
    picture = one_gpu()
    warmer = replace(picture, number=2, gpus=(replace(picture.gpus[0], temperature=62.0),))
    async with open_screen(picture, warmer) as opened:
        marked.clear()
        await opened.tick()
        assert {name for name, _ in marked} == {"gpus"}
        assert len(marked) == 1
        assert marked[0][1] is not None


async def test_a_feed_that_falls_silent_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_screen() as opened:
        monkeypatch.setattr(opened.app, "_arrived", opened.app._arrived - 60)
        opened.app.look()
        await opened.settle()
        assert "figures from 60 s ago" in opened.text


async def test_a_feed_that_broke_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_screen() as opened:
        monkeypatch.setattr(opened.feed, "trouble", lambda: "OSError: disk")
        monkeypatch.setattr(opened.app, "_arrived", opened.app._arrived - 60)
        opened.app.look()
        await opened.settle()
        assert "No new figures, and it is tried again: OSError: disk" in opened.text


async def test_without_a_card_trainings_on_the_cpu_still_show() -> None:
    async with open_screen(no_driver()) as opened:
        assert "started without a GPU" in opened.text
        assert "7/40" in opened.text


async def test_a_table_longer_than_its_panel_scrolls_with_keys_and_wheel() -> None:
    async with open_screen(eight_gpus(), size=(120, 24)) as opened:
        await opened.press("2")
        panel = opened.app.screen.query_one(OwnersPanel)
        first = panel.shown
        await opened.press("pagedown", "pagedown")
        assert panel.shown != first
        await opened.press("home")
        assert panel.row is not None
        assert panel.shown.splitlines()[1] == first.splitlines()[1]
        await opened.press("end")
        assert "7  " in panel.shown.splitlines()[-1]


async def test_hostile_names_neither_move_the_cursor_nor_mark_up() -> None:
    card = replace(one_gpu().gpus[0], name="[red]x[/red]\x1b[2J\nGPU\u202e")
    hostile = replace(
        one_gpu(), gpus=(card,), jobs=(replace(one_gpu().jobs[0], config="[b]\x1b]0;a\x07.yaml"),)
    )
    async with open_screen(hostile) as opened:
        assert "\x1b" not in opened.text
        assert "[red]x[/red]" in opened.text
        assert "[b].yaml" in opened.text
        assert "x[/red]" in opened.app.screen.query_one(GpuPanel).shown


# The log


async def test_the_log_follows_searches_and_finds_the_first_error(tmp_path: Path) -> None:
    async with open_screen(write_logs(one_gpu(), tmp_path), size=(60, 18)) as opened:
        await opened.press("down", "3")
        for _ in range(50):
            await opened.pilot.pause(0.1)
            opened.app._change(log=opened.app._follower.latest())
            if "OutOfMemoryError" in opened.text:
                break
        panel = opened.app.screen.query_one(LogPanel)
        assert "following" in opened.text
        assert "which 0.62 GiB is free" in " ".join(panel.shown.split())
        await opened.press("e")
        assert "following" not in opened.text
        assert panel.shown.splitlines()[0].startswith("Traceback")
        await opened.press("slash", *"shards", "enter")
        assert panel.shown.splitlines()[0].startswith("Loading checkpoint shards")
        await opened.press("f")
        assert "following" in opened.text
        await opened.press("slash", *"nowhere", "enter")
        assert "Not found: nowhere" in opened.text
        await opened.press("escape")
        assert opened.screen_name == "Overview"


async def test_a_run_from_elsewhere_has_no_log_here() -> None:
    picture = replace(one_gpu(), jobs=(), foreign=(replace(service(), kind="training"),))
    async with open_screen(picture) as opened:
        await opened.press("3")
        assert "was not started by llamaherd" in opened.text
