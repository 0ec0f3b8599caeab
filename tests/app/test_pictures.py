"""A dozen screens with their colours, as SVG, compared with ``tests/data/pictures``.

``UPDATE_SCREENS=1 pytest tests/app/test_pictures.py`` writes them anew; look at them in a browser.
"""

import os
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timezone
from pathlib import Path

import pytest
from rich.segment import Segment
from rich.style import Style
from support.opened import open_screen
from support.recording import eight_gpus, failed_job, job, no_driver, one_gpu, stale, stop_report
from textual.strip import Strip

from tui.app.options import Options
from tui.app.picture import svg
from tui.app.widgets.jobs import JobsPanel
from tui.app.widgets.training import TrainingPanel
from tui.facts.snapshot import Snapshot
from tui.text.translate import Language, set_language

FOLDER = Path(__file__).parent.parent / "data" / "pictures"


@dataclass(frozen=True)
class Picture:
    name: str
    scene: Callable[[int], Snapshot] = one_gpu
    keys: tuple[str, ...] = ()
    language: Language = "en"
    ascii: bool = False
    size: tuple[int, int] = (80, 24)


def _tight(tick: int) -> Snapshot:
    picture = one_gpu(tick)
    (card,) = picture.gpus
    full = replace(card.memory, used=(card.memory.total or 0) * 97 // 100, free=100 << 20)
    return replace(picture, gpus=(replace(card, memory=full, temperature=88.0),))


def _lost(tick: int) -> Snapshot:
    picture = eight_gpus(tick)
    first, second, *rest = picture.gpus
    return replace(picture, gpus=(first, replace(second, state="lost"), *rest))


def _stopping(tick: int) -> Snapshot:
    return replace(one_gpu(tick), jobs=(job(state="stopping", stop=stop_report()),))


PICTURES = (
    Picture("one"),
    Picture("one-zh", language="zh"),
    Picture("one-light", keys=("T",)),
    Picture("one-ascii", ascii=True),
    Picture("eight", eight_gpus),
    Picture("a-card-lost", _lost),
    Picture("memory-tight-and-hot", _tight),
    Picture("silent-driver", lambda _tick: stale(37)),
    Picture("no-driver", lambda _tick: no_driver("version_mismatch", gpu_mode="unknown")),
    Picture("failed", lambda tick: replace(one_gpu(tick), jobs=(failed_job(),))),
    Picture("stop-question", keys=("X", "down")),
    Picture("stopping", _stopping, keys=("X",)),
    Picture("owners", eight_gpus, keys=("2", "down")),
)


@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.name)
async def test_a_picture_is_as_recorded(picture: Picture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TrainingPanel, "zone", timezone.utc)
    monkeypatch.setattr(JobsPanel, "zone", timezone.utc)
    set_language(picture.language)
    played = [replace(picture.scene(tick * 8), number=tick + 1) for tick in range(12)]
    async with open_screen(*played, size=picture.size, options=Options(ascii=picture.ascii)) as opened:
        for _ in played:
            opened.feed.step()
            opened.app.look()
        await opened.press(*picture.keys)
        opened.app.draw()
        await opened.settle()
        drawn = svg(opened.app.frame(), picture.name)
    ElementTree.fromstring(drawn)  # noqa: S314  # our own text
    path = FOLDER / f"{picture.name}.svg"
    if os.environ.get("UPDATE_SCREENS"):
        FOLDER.mkdir(parents=True, exist_ok=True)
        path.write_text(drawn)
    assert drawn == path.read_text()


def test_outside_text_cannot_break_out_of_a_picture() -> None:
    hostile = "<script>\"&'</text>"
    drawn = svg([Strip([Segment(hostile, Style.parse("red"))])], "<title>")
    texts = "".join(ElementTree.fromstring(drawn).itertext())  # noqa: S314  # our own text
    assert hostile in texts.replace("\n", "")
    assert "<script>" not in drawn
