"""What reading a log costs: opening a big one late, and following a fast one.

``python -m tests.bench.log`` writes a 500 MB log full of carriage returns to a temporary folder and prints
the time to the first progress and the memory it took (in a process of its own), then the share of one
core that following 5 MB/s takes. Budgets: 200 ms, 20 MiB, 10 %.
"""

import multiprocessing
import tempfile
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path

from tui.llamafactory.follow import LogFollower

_SIZE = 500_000_000
_RATE = 5_000_000
_SECONDS = 10
_STEPS = 100_000_000
_LOGGING_STEPS = 10
_PLAN = (
    b"[INFO|trainer.py:2519] 2026-11-29 14:44:06,472 >> ***** Running training *****\n"
    b"[INFO|trainer.py:2520] 2026-11-29 14:44:06,472 >>   Num examples = 4,000,000\n"
    b"[INFO|trainer.py:2525] 2026-11-29 14:44:06,472 >>   Total train batch size "
    b"(w. parallel, distributed & accumulation) = 4\n"
    b"[INFO|trainer.py:2527] 2026-11-29 14:44:06,472 >>   Total optimization steps = 100,000,000\n"
)


def steps() -> Iterator[bytes]:
    """What a trainer writes per step, ten a second, without end."""
    yield _PLAN
    step = 0
    while True:
        step += 1
        clock = f"{step // 36000}:{step // 600 % 60:02d}:{step // 10 % 60:02d}"
        bar = f"\r{100 * step // _STEPS:3d}%|{'█' * 3:10}| {step}/{_STEPS} [{clock}<27:46:33, 10.02it/s]"
        if step % _LOGGING_STEPS == 0:
            loss = f"{{'loss': {5 - step * 1e-8:.4f}, 'grad_norm': 0.54399, 'learning_rate': 0.0008, "
            bar += f"\r{' ' * 60}\r{loss}'epoch': {step / 1e6:.2f}}}\n{bar}"
        yield bar.encode()


def write(path: Path, size: int) -> None:
    """About ``size`` bytes of log: the head once, then its own end repeated."""
    with path.open("wb") as file:
        block = bytearray()
        for piece in steps():
            block += piece
            if len(block) > min(size, 8 << 20):
                break
        file.write(block)
        tail = bytes(block[block.index(b"\r", len(_PLAN)) :])
        while file.tell() < size:
            file.write(tail)


def open_late(path: Path, answer: Connection) -> None:
    """Milliseconds to the first progress, those of CPU, MiB more at most."""
    before = peak_memory()
    began, cpu = time.perf_counter(), time.process_time()
    follower = LogFollower(path)
    log = follower.update(time.monotonic(), time.time())
    took, cpu = time.perf_counter() - began, time.process_time() - cpu
    follower.close()
    assert log.step is not None
    answer.send((took * 1000, cpu * 1000, peak_memory() - before))


def peak_memory() -> float:
    """MiB that this program has used at most; getrusage would also count what came before its exec."""
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")) / 1024


def follow(path: Path) -> float:
    """The share of a core that following takes, one update a second."""
    chunks = steps()
    follower = LogFollower(path)
    cpu = 0.0
    with path.open("wb", buffering=0) as file:
        for _ in range(_SECONDS):
            block = bytearray()
            while len(block) < _RATE:
                block += next(chunks)
            file.write(block)
            began = time.process_time()
            log = follower.update(time.monotonic(), time.time())
            cpu += time.process_time() - began
    follower.close()
    assert log.step is not None
    return cpu / _SECONDS


def main() -> None:
    """Print the three figures."""
    with tempfile.TemporaryDirectory() as folder:
        big = Path(folder, "train.log")
        write(big, _SIZE)
        ours, theirs = multiprocessing.Pipe()
        child = multiprocessing.get_context("spawn").Process(target=open_late, args=(big, theirs))
        child.start()
        took, cpu, memory = ours.recv()
        child.join()
        size = big.stat().st_size / 1e6
        print(f"opening {size:.0f} MB: {took:.0f} ms to the first progress, {cpu:.0f} of CPU (budget 200)")
        print(f"memory: {memory:.1f} MiB more (budget 20)")
        big.unlink()
        share = follow(Path(folder, "growing.log"))
        print(f"following {_RATE / 1e6:.0f} MB/s: {share:.1%} of a core (budget 10 %)")


if __name__ == "__main__":
    main()
