"""CPU time of one look at /proc among 450 real processes, 50 of which hold devices and are busy.

Run it alone: ``python tests/bench/collect.py``. It prints milliseconds of CPU: the best and the median
of the scans after the first. The budget is 15 ms for the table of processes and the holders together.
"""

import argparse
import contextlib
import mmap
import os
import signal
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tui.collect.holders import HolderScanner
from tui.collect.proc import Proc

HOLDERS, PROCESSES = 50, 450
HOLDER_FILES, OTHER_FILES = 40, 12
CARDS = 8


def live_as(files: int, device: Path | None, tick: float) -> None:
    """The life of one child: some open files, perhaps a device that it has opened and mapped."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    kept = [os.open("/dev/null", os.O_RDONLY) for _ in range(files)]
    if device is not None:
        kept.append(os.open(device, os.O_RDWR))
        area = mmap.mmap(kept[-1], mmap.PAGESIZE)
        while area is not None:
            # Two clock ticks of work, so that every scan finds the process changed.
            until = time.process_time() + 0.02
            while time.process_time() < until:
                pass
            time.sleep(tick)
    while True:
        signal.pause()


@contextlib.contextmanager
def population(folder: Path, tick: float) -> Iterator[str]:
    """The processes, and the prefix of their devices. They end with the context."""
    children: list[int] = []
    others = max(0, PROCESSES - HOLDERS - len(Proc().pids()))
    for card in range(CARDS):
        (folder / f"nvidia{card}").write_bytes(b"\0" * mmap.PAGESIZE)
    try:
        for number in range(HOLDERS + others):
            holds = number < HOLDERS
            child = os.fork()
            if child == 0:
                live_as(
                    HOLDER_FILES if holds else OTHER_FILES,
                    folder / f"nvidia{number % CARDS}" if holds else None,
                    tick,
                )
            children.append(child)
        yield str(folder / "nvidia")
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)
        for child in children:
            os.waitpid(child, 0)


def milliseconds(work: Callable[[], object]) -> float:
    """CPU time of this process, user and system."""
    began = time.process_time()
    work()
    return (time.process_time() - began) * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scans", type=int, default=20)
    parser.add_argument("--every", type=float, default=1.0, help="seconds between scans")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, population(Path(folder), options.every / 2) as prefix:
        proc = Proc()
        scanner = HolderScanner(proc, prefix)
        while len(scanner.find(proc.table())) < HOLDERS:
            time.sleep(0.1)
        scanner = HolderScanner(proc, prefix)
        first = milliseconds(lambda: scanner.find(proc.table()))
        tables: list[float] = []
        scans: list[float] = []
        for _ in range(options.scans):
            time.sleep(options.every)
            tables.append(milliseconds(proc.table))
            table = proc.table()
            scans.append(milliseconds(lambda table=table: scanner.find(table)))  # type: ignore[misc]
        totals = [a + b for a, b in zip(tables, scans, strict=True)]
        print(f"processes {len(table)}, holders {len(scanner.find(table))}")
        print(f"first look          {first:6.1f} ms")
        for name, values in [("table", tables), ("holders", scans), ("table and holders", totals)]:
            print(f"{name:18}  {min(values):6.1f} ms best  {statistics.median(values):6.1f} ms median")


if __name__ == "__main__":
    main()
