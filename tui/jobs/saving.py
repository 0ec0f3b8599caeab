"""Is a checkpoint being written, and does the output folder still grow?

The output folder may lie on a network disk that does not answer, so a thread looks and the stop reads
what it saw last. LLaMA-Factory writes ``trainer_state.json`` last into each ``checkpoint-N``.
"""

import os
import re
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

_CHECKPOINT = re.compile(r"checkpoint-(\d{1,12})")
_LAST_FILE = "trainer_state.json"
_PERIOD = 0.5
_FILES = 5000


@dataclass(frozen=True, slots=True)
class OutputLook:
    """``saving``: the newest checkpoint lacks its last file; ``size``: bytes of the folder's files."""

    saving: bool
    size: int


def look(output: Path, since: float) -> OutputLook:
    """One look. A checkpoint left incomplete before ``since`` (epoch seconds) is an old story."""
    return OutputLook(_is_saving(output, since), _size(output))


class OutputWatch:
    """Looks again and again until the process ends; ``latest`` is ``None`` until the folder answers."""

    def __init__(self, output: str | None, since: float) -> None:
        self.latest: OutputLook | None = OutputLook(False, 0) if output is None else None
        if output is not None:
            threading.Thread(target=self._watch, args=(Path(output), since), daemon=True).start()

    def _watch(self, output: Path, since: float) -> None:
        while True:
            self.latest = look(output, since)
            time.sleep(_PERIOD)


def _is_saving(output: Path, since: float) -> bool:
    try:
        with os.scandir(output) as entries:
            found = ((_CHECKPOINT.fullmatch(entry.name), entry.path) for entry in entries)
            steps = {int(match[1]): Path(path) for match, path in found if match}
        if not steps:
            return False
        newest = steps[max(steps)]
        return not (newest / _LAST_FILE).exists() and newest.stat().st_mtime >= since
    except OSError:
        return False


def _size(output: Path) -> int:
    return sum(islice(_file_sizes(output), _FILES))


def _file_sizes(output: Path) -> Iterator[int]:
    for folder, _, names in os.walk(output):
        for name in names:
            with suppress(OSError):
                yield os.lstat(f"{folder}/{name}").st_size
