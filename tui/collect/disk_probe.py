"""The helper process that asks file systems for their size: ``disk_probe.py SECONDS PATH...``.

``stat`` and ``statvfs`` of a network disk whose server is away can wait in the kernel for ever, where
no time-out reaches. So they are asked here, each path by a thread of its own, and the process ends
after ``SECONDS`` whatever is still out. One JSON array per answer, in the order of arrival.

Standard library only: the file is run by its path, without the package around it.
"""

import errno
import json
import os
import sys
import threading
import time
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import NamedTuple


class Answer(NamedTuple):
    """What the path with this place in the argument list said.

    ``real`` is the path behind symlinks, or its nearest existing parent (``exists`` is then false).
    ``device`` is ``st_dev``; ``error`` the name of an errno, or ``""``. ``total`` and ``free`` are
    bytes; ``inodes`` is 0 where the file system has no fixed number of them.
    """

    number: int
    real: str
    exists: bool = True
    device: int = 0
    total: int = 0
    free: int = 0
    inodes: int = 0
    inodes_free: int = 0
    error: str = ""


def probe(number: int, path: str) -> Answer:
    """Ask one file system. May never return."""
    exists = True
    try:
        real = Path(os.path.realpath(path))
        while not real.exists() and real != real.parent:
            exists = False
            real = real.parent
        device = real.stat().st_dev
        figures = os.statvfs(real)
    except OSError as error:
        return Answer(number, path, error=errno.errorcode.get(error.errno or 0, "EIO"))
    return Answer(
        number,
        os.fsencode(real).decode("utf-8", "replace"),
        exists,
        device,
        figures.f_blocks * figures.f_frsize,
        figures.f_bavail * figures.f_frsize,
        figures.f_files,
        figures.f_favail,
    )


def main(seconds: float, paths: list[str]) -> None:
    """Write the answers that come within ``seconds``."""
    deadline = time.monotonic() + seconds
    answers: SimpleQueue[Answer] = SimpleQueue()
    for number, path in enumerate(paths):
        ask = threading.Thread(
            target=lambda *asked: answers.put(probe(*asked)), args=(number, path), daemon=True
        )
        ask.start()
    for _ in paths:
        try:
            answer = answers.get(timeout=max(0.0, deadline - time.monotonic()))
        except Empty:
            break
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(float(sys.argv[1]), sys.argv[2:])
    # Leaving in the ordinary way could wait for a thread that is stuck in the kernel.
    os._exit(0)
