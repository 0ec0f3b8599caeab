"""Draws the pictures of this folder from the recorded feed: real screens, made-up figures.

    PYTHONPATH=tests python screenshots/make.py [NAME ...]

Needs two small tools and two fonts, which it names when they are missing.
"""

import asyncio
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from support.recording import (
    RecordedDesk,
    RecordedFeed,
    eight_gpus,
    failed_job,
    job,
    no_driver,
    one_gpu,
    stop_report,
    write_logs,
)

from tui.app.app import HerdApp
from tui.app.options import Options
from tui.app.picture import svg
from tui.facts.snapshot import Snapshot
from tui.text.translate import Language, set_language

HERE = Path(__file__).parent
TOOLS = ("rsvg-convert", "pngquant")
PACKAGES = "librsvg2-bin pngquant fonts-firacode fonts-noto-cjk"
LANGUAGES: tuple[Language, ...] = ("en", "zh")


@dataclass(frozen=True)
class Picture:
    """One screen: what is played, how large it is, and which keys lead there."""

    name: str
    size: tuple[int, int]
    scene: Callable[[int], Snapshot] = one_gpu
    stride: int = 4
    keys: tuple[str, ...] = ()
    ascii: bool = False


def _failed(tick: int) -> Snapshot:
    return replace(one_gpu(tick), jobs=(failed_job(),), findings=())


def _stopping(tick: int) -> Snapshot:
    stopping = job(state="stopping", stop=stop_report(), progress=one_gpu(tick).jobs[0].progress)
    return replace(one_gpu(tick), jobs=(stopping, *one_gpu(tick).jobs[1:]))


PICTURES = (
    Picture("overview", (160, 45)),
    Picture("overview-80x24", (80, 24)),
    Picture("overview-60x20", (60, 20)),
    Picture("eight-gpus", (160, 45), eight_gpus, 9),
    Picture("eight-gpus-80x24", (80, 24), eight_gpus, 9),
    Picture("start", (100, 28), keys=("n",)),
    Picture("stop", (100, 28), keys=("X",)),
    Picture("stopping", (100, 28), _stopping, keys=("X",)),
    Picture("log", (100, 28), _failed, keys=("3", "e")),
    Picture("owners", (120, 28), eight_gpus, 9, keys=("2",)),
    Picture("help", (100, 36), keys=("question_mark",)),
    Picture("no-gpu", (80, 24), lambda _tick: no_driver()),
    Picture("ascii", (80, 24), ascii=True),
    Picture("light", (160, 45), keys=("T",)),
)


async def draw(picture: Picture, language: Language, folder: Path) -> str:
    """The screen as SVG after some minutes of play."""
    set_language(language)
    ticks = range(0, 130 * picture.stride, picture.stride)
    played = [replace(picture.scene(tick), number=at + 1) for at, tick in enumerate(ticks)]
    feed = RecordedFeed([write_logs(snapshot, folder) for snapshot in played])
    app = HerdApp(feed, RecordedDesk(), Options(ascii=picture.ascii, language=language))
    async with app.run_test(size=picture.size) as pilot:
        for _ in played:
            app.look()
            feed.step()
        for key in picture.keys:
            await pilot.press(key)
            await app.workers.wait_for_complete()
            await pilot.pause()
        await asyncio.sleep(1.2)  # the log is read twice a second
        app.look()
        app.draw()
        await pilot.pause()
        return svg(app.frame(), "llamaherd")


def _run(command: Sequence[str], data: bytes) -> bytes:
    return subprocess.run(command, input=data, stdout=subprocess.PIPE, check=True).stdout


def main(names: Sequence[str]) -> int:
    """Draw all, or those that are named."""
    if shutil.which("rsvg-convert") is None:
        sys.stderr.write(
            "rsvg-convert is missing: apt-get install librsvg2-bin fonts-firacode fonts-noto-cjk\n"
        )
        return 1
    for picture in PICTURES:
        if names and picture.name not in names:
            continue
        for language in LANGUAGES:
            with tempfile.TemporaryDirectory() as folder:
                drawn = asyncio.run(draw(picture, language, Path(folder)))
            png = _run(["rsvg-convert", "--zoom", "1.25"], drawn.encode())
            few = _run(["pngquant", "--speed", "1", "48", "-"], png)  # a fifth of the size
            (HERE / f"{picture.name}.{language}.png").write_bytes(few)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
