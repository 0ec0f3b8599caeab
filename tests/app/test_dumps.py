"""Every view as text, in both languages and three sizes, compared with what is in ``tests/data/screens``.

``UPDATE_SCREENS=1 pytest tests/app/test_dumps.py`` writes them anew; look at the difference.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timezone
from pathlib import Path

import pytest
from rich.cells import cell_len
from support.opened import open_screen
from support.recording import eight_gpus, failed_job, no_driver, one_gpu, stale

from tui.app.options import Options
from tui.app.widgets.jobs import JobsPanel
from tui.app.widgets.training import TrainingPanel
from tui.facts.snapshot import Snapshot
from tui.text.translate import Language, set_language

FOLDER = Path(__file__).parent.parent / "data" / "screens"
SIZES = ((60, 20), (80, 24), (160, 45))


USUAL = (80, 24)


@dataclass(frozen=True)
class Dump:
    name: str
    scene: Callable[[int], Snapshot] = one_gpu
    keys: tuple[str, ...] = ()
    ascii: bool = False
    sizes: tuple[tuple[int, int], ...] = (USUAL,)


DUMPS = (
    Dump("one", sizes=SIZES),
    Dump("eight", eight_gpus, sizes=SIZES),
    Dump("no-gpu", lambda _tick: no_driver(), sizes=SIZES),
    Dump("owners", eight_gpus, keys=("2",), sizes=SIZES),
    Dump("start", keys=("n",), sizes=SIZES),
    Dump("stop", keys=("X",), sizes=SIZES),
    Dump("help", keys=("question_mark",), sizes=SIZES),
    Dump("no-driver", lambda _tick: no_driver("driver_not_loaded", gpu_mode="unknown")),
    Dump("silent-driver", lambda _tick: stale(37)),
    Dump("failed", lambda tick: replace(one_gpu(tick), jobs=(failed_job(),))),
    Dump("nothing", lambda tick: replace(one_gpu(tick), jobs=(), findings=())),
    Dump("ascii", ascii=True),
)
CASES = [
    pytest.param(dump, size, id=f"{dump.name}-{size[0]}x{size[1]}") for dump in DUMPS for size in dump.sizes
]


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize(("dump", "size"), CASES)
async def test_a_view_is_as_recorded(
    dump: Dump, language: Language, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TrainingPanel, "zone", timezone.utc)
    monkeypatch.setattr(JobsPanel, "zone", timezone.utc)
    monkeypatch.setenv("TZ", "UTC")
    set_language(language)
    pictures = [replace(dump.scene(tick * 8), number=tick + 1) for tick in range(12)]
    async with open_screen(*pictures, size=size, options=Options(ascii=dump.ascii)) as opened:
        for _ in pictures:
            opened.feed.step()
            opened.app.look()
        await opened.press(*dump.keys)
        opened.app.draw()
        await opened.settle()
        lines = [strip.text for strip in opened.app.frame()]
    assert [cell_len(text) for text in lines] == [size[0]] * size[1]
    shown = "\n".join(text.rstrip() for text in lines) + "\n"
    if dump.ascii and language == "en":
        assert shown.replace("中文", "").isascii()
    path = FOLDER / f"{dump.name}.{language}.{size[0]}x{size[1]}.txt"
    if os.environ.get("UPDATE_SCREENS"):
        FOLDER.mkdir(parents=True, exist_ok=True)
        path.write_text(shown)
    assert shown == path.read_text()


@pytest.mark.parametrize(("width", "height"), [(59, 40), (200, 17), (10, 3)])
async def test_too_small_says_one_sentence(width: int, height: int) -> None:
    async with open_screen(size=(width, height)) as opened:
        assert opened.text.strip().startswith("This t")


async def test_another_size_draws_the_same_screen_as_opening_in_it() -> None:
    async with open_screen(size=(80, 24)) as opened:
        small = opened.text
        await opened.pilot.resize_terminal(160, 45)
        await opened.settle()
        wide = opened.text
        await opened.pilot.resize_terminal(80, 24)
        await opened.settle()
        assert opened.text == small
    async with open_screen(size=(160, 45)) as opened:
        assert opened.text == wide


async def test_before_the_first_picture_the_frame_is_there() -> None:
    async with open_screen(size=(80, 24)) as opened:
        opened.app.scene = replace(opened.app.scene, snapshot=None)
        opened.app.draw()
        await opened.settle()
        assert "Reading this machine" in opened.text
        assert "q leave" in opened.text
