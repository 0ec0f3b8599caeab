"""The GPU sampler of a job: a process beside the keeper, not below it.

A process that hangs in the driver keeps its parent from ever reaping it; below the keeper that would
keep a job from being proved gone. It runs isolated, reads NVML itself, and ends with the keeper.
"""

import threading
import time
from pathlib import Path

from tui.collect.nvml import NvmlSession
from tui.facts.machine import DriverErrorCode
from tui.jobs.folder import JobFolder
from tui.jobs.samples import Recorder, append_rows, write_peaks

PERIOD = 0.2
_LOOK_EVERY = 1.0  # seconds between looks at the keeper's lock
_KEEPER_PATIENCE = 10.0  # seconds for the keeper, which starts at the same time, to take its lock
_FIRST_LOOKS = 0.1  # seconds between looks until then
_PEAKS_EVERY = 1.0
_LAST_ROWS_PATIENCE = 2.0  # seconds for a reading under way to end
_NO_GPU: frozenset[DriverErrorCode] = frozenset(
    {"library_missing", "driver_not_loaded", "no_device", "no_permission", "version_mismatch"}
)


def main(argv: list[str]) -> int:
    """Sample until the keeper's lock on the job folder ``argv[0]`` is free; nothing without a GPU."""
    folder = JobFolder(Path(argv[0]))
    over = threading.Event()
    # A thread, since a hung reading must not keep this process from seeing the job's end.
    sampling = threading.Thread(target=_sample, args=(folder.path, over), daemon=True)
    sampling.start()
    _wait_for_end(folder, over)
    over.set()
    sampling.join(_LAST_ROWS_PATIENCE)
    return 0


def _wait_for_end(folder: JobFolder, over: threading.Event) -> None:
    """Return when the keeper is gone, or never came, or there is nothing to sample."""
    deadline = time.monotonic() + _KEEPER_PATIENCE
    while not folder.is_kept():
        if time.monotonic() > deadline or over.wait(_FIRST_LOOKS):
            return
    while folder.is_kept():
        if over.wait(_LOOK_EVERY):
            return


def _sample(folder: Path, over: threading.Event) -> None:
    session = NvmlSession(brief=True)
    recorder = Recorder()
    written: dict[str, int] = {}
    began = due = peaks_due = time.monotonic()
    try:
        while not over.is_set():
            reading = session.read()
            now = time.monotonic()
            if not recorder.peaks and reading.driver.error and reading.driver.error.code in _NO_GPU:
                return
            append_rows(folder, recorder.add(time.time(), now - began, reading.gpus))
            if recorder.peaks != written and now >= peaks_due:
                peaks_due = now + _PEAKS_EVERY
                if write_peaks(folder, recorder.peaks):
                    written = dict(recorder.peaks)
            due = max(due + PERIOD, now)  # after a slow reading there is no burst to catch up
            over.wait(due - now)
        append_rows(folder, recorder.finish())
        if recorder.peaks != written:
            write_peaks(folder, recorder.peaks)
    finally:
        over.set()
