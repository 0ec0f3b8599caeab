"""The helper process that reads NVML for ``collect/gpu_worker.py``: one JSON line per reading.

Where the library cannot be loaded, ``nvidia-smi`` is asked. This imports little, because ``status`` waits
for its first line. It ends with its parent: a thread watches standard input, which closes when the parent
ends, even while a call hangs in the library.
"""

import json
import os
import resource
import threading
import time
from dataclasses import asdict

from tui.collect.nvidia_smi import NvidiaSmi
from tui.collect.nvml import NvmlSession


def main(period: float) -> None:
    """Write ``{"at": …, "reading": …}`` every ``period`` seconds until nobody reads.

    ``at`` is the monotonic second at which the reading began (that clock is the machine's, so the
    parent can tell the age); ``reading`` is a ``DriverReading``.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a library that aborts leaves no core file
    frames = os.dup(1)
    os.dup2(2, 1)  # what the library prints must not get between the frames
    threading.Thread(target=_end_with_parent, daemon=True).start()
    session, last_resort = NvmlSession(), NvidiaSmi()
    while True:
        began = at = time.monotonic()
        reading = session.read()
        if reading.driver.error is not None and reading.driver.error.code == "library_missing":
            at, reading = last_resort.read() or (at, reading)
        frame = json.dumps({"at": at, "reading": asdict(reading)}).encode() + b"\n"
        try:
            while frame:
                frame = frame[os.write(frames, frame) :]
        except BrokenPipeError:
            return
        time.sleep(max(0.0, began + period - time.monotonic()))


def _end_with_parent() -> None:
    while os.read(0, 1):
        pass
    os._exit(0)
