"""Plays a recorded feed in a real terminal: ``PYTHONPATH=tests python -m support.played --scene eight``.

``--still`` plays the same figures for ever in new pictures, which must cost no byte.
"""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from support.recording import RecordedDesk, eight_gpus, no_driver, one_gpu
from tui.facts.snapshot import Snapshot

SCENES: dict[str, Callable[[int], Snapshot]] = {
    "one": one_gpu,
    "eight": eight_gpus,
    "none": lambda _tick: no_driver(),
}


class PlayedFeed:
    """One picture per period, by the clock."""

    def __init__(self, scene: Callable[[int], Snapshot], period: float, *, still: bool = False) -> None:
        self._scene = scene
        self._still = still
        self._period = period
        self._began: float | None = None
        self._tick = -1
        self._picture: Snapshot | None = None

    def start(self) -> None:
        self._began = time.monotonic()

    def latest(self) -> Snapshot | None:
        if self._began is None:
            return None
        tick = int((time.monotonic() - self._began) / self._period)
        if tick != self._tick:
            picture = self._scene(0 if self._still else tick)
            self._tick, self._picture = tick, replace(picture, number=tick + 1)
        return self._picture

    def trouble(self) -> str:
        return ""

    def close(self) -> None:
        pass


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--scene", choices=SCENES, default="one")
    parser.add_argument("--period", type=float, default=1.0)
    parser.add_argument("--lang", choices=("en", "zh"), default="en")
    parser.add_argument("--still", action="store_true")
    parser.add_argument("--ascii", action="store_true")
    parser.add_argument("--plain", action="store_true")
    chosen = parser.parse_args(arguments)

    from tui.app.app import HerdApp
    from tui.app.options import Options
    from tui.text.translate import set_language

    set_language(chosen.lang)
    options = Options(ascii=chosen.ascii, language=chosen.lang, frame_diff=not chosen.plain)
    app = HerdApp(
        PlayedFeed(SCENES[chosen.scene], chosen.period, still=chosen.still), RecordedDesk(), options
    )
    app.run()
    return app.return_code or 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
