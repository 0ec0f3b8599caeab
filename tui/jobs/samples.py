"""The GPU samples of a job: ``gpu-samples.csv`` and ``gpu-peaks.json`` in its folder.

``gpu-samples.csv`` has a header and one row per card and sample: epoch seconds, NVML index, UUID, MiB,
percent, watts, and the ``kind`` of row. For the first 30 minutes every sample is a row of kind
``sample``; then each 10 seconds become three rows, ``min``, ``mean`` and ``max``, each column for
itself, with the time of the last sample in them. An empty cell is unknown.
``gpu-peaks.json`` maps UUIDs to the highest memory in use that was seen, in bytes.
"""

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from tui.facts.machine import GpuReading

SAMPLES_NAME = "gpu-samples.csv"
PEAKS_NAME = "gpu-peaks.json"
HEADER = "time,gpu,uuid,used_mib,utilization_percent,power_w,kind\n"
_FINE_SECONDS = 1800.0
_WINDOW_SECONDS = 10.0
_MIB = 1 << 20
_PEAKS_LIMIT = 64 << 10


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


_SUMMARIES: tuple[tuple[str, Callable[[Sequence[float]], float]], ...] = (
    ("min", min),
    ("mean", _mean),
    ("max", max),
)


class Recorder:
    """Turns readings into rows and peaks; no input or output."""

    def __init__(self, fine_seconds: float = _FINE_SECONDS, window_seconds: float = _WINDOW_SECONDS) -> None:
        self.peaks: dict[str, int] = {}
        self._fine_seconds = fine_seconds
        self._window_seconds = window_seconds
        self._window_number = 0
        self._window_end = 0.0
        self._window: dict[tuple[int, str], list[tuple[float | None, ...]]] = {}

    def add(self, at: float, elapsed: float, gpus: Iterable[GpuReading]) -> str:
        """The rows that this reading completes. ``at``: epoch seconds; ``elapsed``: since the start.

        A card that says nothing, or not who it is, gives no row.
        """
        number = int((elapsed - self._fine_seconds) // self._window_seconds)
        rows = self.finish() if number != self._window_number else ""
        self._window_number, self._window_end = number, at
        for gpu in gpus:
            figures = _figures(gpu)
            if not gpu.uuid or not any(figure is not None for figure in figures):
                continue
            if gpu.used is not None:
                self.peaks[gpu.uuid] = max(gpu.used, self.peaks.get(gpu.uuid, 0))
            if elapsed < self._fine_seconds:
                rows += _row(at, gpu.index, gpu.uuid, figures, "sample")
            else:
                self._window.setdefault((gpu.index, gpu.uuid), []).append(figures)
        return rows

    def finish(self) -> str:
        """The rows of the window that is open, which ends with this."""
        rows = ""
        for (index, uuid), figures in self._window.items():
            columns = [
                [figure for figure in column if figure is not None] for column in zip(*figures, strict=True)
            ]
            for kind, summary in _SUMMARIES:
                summaries = [summary(column) if column else None for column in columns]
                rows += _row(self._window_end, index, uuid, summaries, kind)
        self._window.clear()
        return rows


def append_rows(folder: Path, rows: str) -> None:
    """Add rows to the samples. What does not fit on the disk is left out: never half a row."""
    if not rows:
        return
    with suppress(OSError):
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(folder / SAMPLES_NAME, flags, 0o600)
        try:
            size = os.fstat(descriptor).st_size
            data = (rows if size else HEADER + rows).encode()
            if os.write(descriptor, data) < len(data):
                os.ftruncate(descriptor, size)
        finally:
            os.close(descriptor)


def write_peaks(folder: Path, peaks: Mapping[str, int]) -> bool:
    """Replace the peaks; a reader never sees half. False: the disk did not take them."""
    temporary = folder / f"{PEAKS_NAME}.tmp"
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(temporary, flags, 0o600), "w") as file:
            json.dump(peaks, file)
        temporary.replace(folder / PEAKS_NAME)
    except OSError:
        return False
    return True


def read_peaks(folder: Path) -> dict[str, int]:
    """Bytes by UUID; empty when nothing was sampled, or the file cannot be understood."""
    try:
        with (folder / PEAKS_NAME).open("rb") as file:
            content = json.loads(file.read(_PEAKS_LIMIT))
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(content, dict):
        return {}
    return {uuid: peak for uuid, peak in content.items() if type(peak) is int and peak >= 0}


def _figures(gpu: GpuReading) -> tuple[float | None, ...]:
    """The three columns: MiB, percent, watts."""
    return (
        None if gpu.used is None else gpu.used / _MIB,
        None if gpu.utilization is None else gpu.utilization * 100,
        gpu.power,
    )


def _row(at: float, index: int, uuid: str, figures: Sequence[float | None], kind: str) -> str:
    cells = ["" if figure is None else f"{figure:.1f}" for figure in figures]
    return ",".join([f"{at:.3f}", str(index), uuid, *cells, kind]) + "\n"
