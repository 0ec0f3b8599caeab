"""What looking costs, among 450 real processes, 50 of which hold devices and are busy, and 8 cards.

    PYTHONPATH=tests python -m bench.collect            CPU of one collection, once a second
    PYTHONPATH=tests python -m bench.collect --memory 10000     memory over that many, at full speed

Run it alone. It needs a C compiler for the stand-in NVML library. Budgets: 15 ms of CPU for the table of
processes and the holders, 60 ms for a whole collection with what the helper process spends on it, no
growth of memory, and no collection that waits for a source that hangs.
"""

import argparse
import contextlib
import mmap
import os
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from support.fake_nvml import FakeNvml, FakeProcess, cards

from tui.collect.gpu_worker import GpuSource
from tui.collect.holders import HolderScanner
from tui.collect.proc import Proc
from tui.operate.observe import Observer

HOLDERS, PROCESSES = 50, 450
HOLDER_FILES, OTHER_FILES = 40, 12
CARDS = 8
_TICKS = os.sysconf("SC_CLK_TCK")
_HANG = "sleep nvmlDeviceGetMemoryInfo_v2 600000"


def live_as(files: int, device: Path | None, tick: float) -> None:
    """The life of one child: some open files, perhaps a device that it has opened and mapped."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    kept = [os.open("/dev/null", os.O_RDONLY) for _ in range(files)]
    if device is not None:
        kept.append(os.open(device, os.O_RDWR))
        area = mmap.mmap(kept[-1], mmap.PAGESIZE)
        while area is not None:
            # More than a clock tick of work, so that every scan finds the process changed.
            until = time.process_time() + 0.012
            while time.process_time() < until:
                pass
            time.sleep(tick)
    while True:
        signal.pause()


@contextlib.contextmanager
def population(folder: Path, tick: float, processes: int) -> Iterator[list[int]]:
    """The PIDs of the holders; all processes end with the context."""
    children: list[int] = []
    others = max(0, processes - HOLDERS - len(Proc().pids()))
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
        yield children[:HOLDERS]
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)
        for child in children:
            os.waitpid(child, 0)


def still_tree(folder: Path, processes: int) -> list[int]:
    """A ``/proc`` of files, in which nobody comes or goes; the PIDs of the holders."""
    pids = list(range(100, 100 + processes))
    for number, pid in enumerate(pids):
        home = folder / "proc" / str(pid)
        (home / "fd").mkdir(parents=True)
        (home / "stat").write_text(f"{pid} (python) S 1 {pid} {pid} 0 -1 0 0 0 0 0 9 9 0 0 20 0 1 0 5 0 99\n")
        (home / "status").write_text("Uid:\t0\t0\nSigIgn:\t0\nSigCgt:\t0\n")
        (home / "cmdline").write_bytes(b"python\0train.py\0--rank\0%d\0" % number)
        (home / "environ").write_bytes(b"".join(b"NAME_%d=value\0" % at for at in range(40)))
        device = folder / f"nvidia{number % CARDS}"
        holds = number < HOLDERS
        (home / "maps").write_text(f"7f00-7f01 rw-s 00000000 00:05 9 {device}\n" if holds else "")
        for at in range(HOLDER_FILES if holds else OTHER_FILES):
            (home / "fd" / str(at)).symlink_to("/dev/null")
        if holds:
            (home / "fd" / "99").symlink_to(device)
    return pids[:HOLDERS]


def milliseconds(work: Callable[[], object]) -> float:
    """CPU time of this process, user and system."""
    began = time.process_time()
    work()
    return (time.process_time() - began) * 1000


def resident() -> float:
    """MiB of this process."""
    stat = Proc().stat(os.getpid())
    return 0.0 if stat is None else stat.resident / (1 << 20)


def helper_ticks() -> int:
    """CPU time that the helper process has used."""
    proc = Proc()
    children = [stat for stat in proc.table().values() if stat.ppid == os.getpid()]
    helper = next(
        stat for stat in children if any("gpu_child" in word for word in proc.command(stat.pid) or ())
    )
    return helper.user_ticks + helper.system_ticks


def show(name: str, values: list[float], unit: str = "ms") -> None:
    ordered = sorted(values)
    worst = ordered[int(0.95 * (len(ordered) - 1))]
    print(f"{name:26} {statistics.median(ordered):7.1f} {unit} median {worst:7.1f} {unit} in 95 of 100")


def measure_cost(observer: Observer, prefix: str, scans: int, every: float) -> None:
    proc = Proc()
    scanner = HolderScanner(proc, prefix)
    began = helper_ticks()
    tables, holders, both, wholes, waits = [], [], [], [], []
    for _ in range(scans):
        time.sleep(every)
        tables.append(milliseconds(proc.table))
        table = proc.table()
        holders.append(milliseconds(lambda table=table: scanner.find(table)))  # type: ignore[misc]
        both.append(tables[-1] + holders[-1])
        at = time.monotonic()
        wholes.append(milliseconds(observer.snapshot))
        waits.append((time.monotonic() - at) * 1000)
    helper = (helper_ticks() - began) / _TICKS * 1000 / (scans * every)
    show("table", tables)
    show("holders", holders)
    show("table and holders", both)
    show("collection", wholes)
    print(f"{'helper process':26} {helper:7.1f} ms a second")
    show("collection, on the clock", waits)


def measure_hang(observer: Observer, nvml: FakeNvml, scans: int) -> None:
    nvml.write(cards(CARDS), rules=[_HANG])
    time.sleep(2)
    waits = []
    for _ in range(scans):
        at = time.monotonic()
        snapshot = observer.snapshot()
        waits.append((time.monotonic() - at) * 1000)
        time.sleep(0.2)
    show("while the driver hangs", waits)
    print(f"{'':26} cards {len(snapshot.gpus)}, age {snapshot.ages.get('gpus', 0):.1f} s")


def measure_memory(observer: Observer, count: int) -> None:
    settled = 0.0
    for number in range(1, count + 1):
        observer.snapshot()
        if number == count // 10:
            settled = resident()
        if number % (count // 10) == 0:
            print(f"{number:8} collections {resident():7.1f} MiB", flush=True)
    print(f"growth over the last nine tenths: {resident() - settled:.2f} MiB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scans", type=int, default=20)
    parser.add_argument("--every", type=float, default=1.0, help="seconds between scans")
    parser.add_argument("--processes", type=int, default=PROCESSES)
    parser.add_argument("--memory", type=int, metavar="N", help="collections to watch memory over")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the processes end with this program
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        nvml = FakeNvml(folder)
        if options.memory:
            holders = still_tree(folder, options.processes)
            proc = Proc(folder / "proc")
        else:
            holders = stack.enter_context(population(folder, options.every, options.processes))
            proc = Proc()
        # The minors of these cards run against their indexes.
        cards_of = [CARDS - 1 - at % CARDS for at in range(HOLDERS)]
        listed = [
            FakeProcess(pid, 1 << 30, gpu=card, extra=True)
            for pid, card in zip(holders, cards_of, strict=True)
        ]
        nvml.write(cards(CARDS), processes=listed)
        source = GpuSource({**os.environ, **nvml.env()})
        prefix = str(folder / "nvidia")
        observer = stack.enter_context(
            Observer([folder / "jobs"], proc=proc, gpus=source, device_prefix=prefix)
        )
        snapshot = observer.snapshot(10.0)
        while sum(len(gpu.owners) for gpu in snapshot.gpus) < HOLDERS:
            time.sleep(0.5)
            snapshot = observer.snapshot()
        print(f"processes {len(proc.pids())}, cards {len(snapshot.gpus)}, owners {HOLDERS}")
        print(f"evidence {sorted({owner.evidence for gpu in snapshot.gpus for owner in gpu.owners})}")
        if options.memory:
            measure_memory(observer, options.memory)
        else:
            measure_cost(observer, prefix, options.scans, options.every)
            measure_hang(observer, nvml, 20)


if __name__ == "__main__":
    main()
