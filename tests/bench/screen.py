"""Bytes, CPU, first paint, memory and key latency of the screen, beside nvitop and a bare Textual app.

    PYTHONPATH=tests python -m bench.screen [--nvitop /path/to/nvitop] [--seconds 20]

Everything runs one after another in the same kind of pseudo-terminal: 160x45, 8 cards, 50 processes,
all figures changing once a second. nvitop reads a stand-in NVML library, so it needs a C compiler.
"""

import argparse
import os
import select
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from support.fake_nvml import FakeNvml, FakeProcess, cards
from support.terminal import Terminal

HERE = Path(__file__).parent
COLUMNS, LINES = 160, 45
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Result:
    """What one program cost. Bytes per second, percent of one CPU, seconds, MiB, milliseconds."""

    name: str
    bytes_per_second: float
    cpu: float
    first_paint: float
    memory: float
    key_latency: float | None = None


def measure(
    name: str,
    argv: Sequence[str],
    environ: Mapping[str, str],
    seconds: float,
    painted: Callable[[str], bool],
    key: str | None = None,
) -> Result:
    """Run it, let it settle, then watch it for so long."""
    began = time.monotonic()
    terminal = Terminal(argv, columns=COLUMNS, lines=LINES, environ=environ)
    try:
        while not painted(terminal.text):
            terminal.read(0.005)
            if time.monotonic() - began > 20:
                raise AssertionError(f"{name} paints nothing:\n{terminal.text}")
        first = time.monotonic() - began
        _read_for(terminal, 5.0)
        before, cpu, at = terminal.bytes, _cpu(terminal.pid), time.monotonic()
        _read_for(terminal, seconds)
        took = time.monotonic() - at
        sent, used = terminal.bytes - before, _cpu(terminal.pid) - cpu
        latency = _key_latency(terminal, key) if key else None
        return Result(name, sent / took, 100 * used / took, first, _memory(terminal.pid), latency)
    finally:
        terminal.close()


def _read_for(terminal: Terminal, seconds: float) -> None:
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        terminal.read(min(left, 0.2))


def _key_latency(terminal: Terminal, key: str, presses: int = 100) -> float:
    """The 99th percentile of the time from a key to the first byte of the answer, in milliseconds."""
    times = []
    for at in range(presses):
        terminal.read(0.03 + at % 7 * 0.01)  # at any moment of a tick
        began = time.monotonic()
        terminal.type(key)
        select.select([terminal.fd], [], [], 2.0)
        times.append(time.monotonic() - began)
    return 1000 * sorted(times)[int(0.99 * presses) - 1]


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _memory(pid: int) -> float:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    kib = sum(int(line.split()[1]) for line in lines if line.startswith(("Private_Clean", "Private_Dirty")))
    return kib / 1024


class Drivers:
    """Eight cards and fifty sleeping processes, whose figures change every second."""

    def __init__(self, folder: Path) -> None:
        self._nvml = FakeNvml(folder)
        self._sleepers = [subprocess.Popen(["sleep", "600"]) for _ in range(50)]  # ended by close
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._change, daemon=True)
        self._thread.start()

    def env(self) -> Mapping[str, str]:
        return self._nvml.env()

    def close(self) -> None:
        self._stop.set()
        self._thread.join()
        for sleeper in self._sleepers:
            sleeper.terminate()
            sleeper.wait()

    def _change(self) -> None:
        tick = 0
        while not self._stop.is_set():
            tick += 1
            gpus = [
                replace(
                    card,
                    total=80 << 30,
                    used=(20 << 30) + (tick * 37 + at * 11) % 200 * (50 << 20),
                    utilization=(tick * 13 + at * 7) % 100,
                    power=100_000 + (tick * 31 + at) % 200 * 1000,
                    temperature=40 + (tick + at) % 40,
                )
                for at, card in enumerate(cards(8))
            ]
            processes = [
                FakeProcess(sleeper.pid, (1 << 30) + (tick * 17 + at) % 100 * (10 << 20), gpu=at % 8)
                for at, sleeper in enumerate(self._sleepers)
            ]
            self._nvml.write(gpus, processes=processes)
            self._stop.wait(1.0)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--nvitop", type=Path)
    parser.add_argument("--seconds", type=float, default=20.0)
    chosen = parser.parse_args()
    environ = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor", "LANG": "C.UTF-8"}
    environ["PYTHONPATH"] = str(HERE.parent)
    played = [sys.executable, "-m", "support.played", "--scene", "eight"]
    results = [
        measure("llamaherd", played, environ, chosen.seconds, _says("llamaherd"), key="\t"),
        measure(
            "llamaherd, 256 colours", played, {**environ, "COLORTERM": ""}, chosen.seconds, _says("llamaherd")
        ),
        measure("llamaherd, nothing changes", [*played, "--still"], environ, 10.0, _says("llamaherd")),
        measure(
            "llamaherd, no frame diff", [*played, "--plain"], environ, chosen.seconds, _says("llamaherd")
        ),
        measure(
            "bare Textual", [sys.executable, str(HERE / "bare.py")], environ, chosen.seconds, _says("line")
        ),
    ]
    if chosen.nvitop is not None:
        with tempfile.TemporaryDirectory() as folder:
            drivers = Drivers(Path(folder))
            try:
                argv = [str(chosen.nvitop), "--monitor", "full", "--interval", "1"]
                results.append(
                    measure("nvitop", argv, {**environ, **drivers.env()}, chosen.seconds, _says("NVITOP"))
                )
            finally:
                drivers.close()
    print(f"{'':28} {'bytes/s':>9} {'CPU %':>7} {'first s':>8} {'MiB':>6} {'key ms':>7}")
    for result in results:
        key = f"{result.key_latency:7.1f}" if result.key_latency is not None else ""
        print(
            f"{result.name:28} {result.bytes_per_second:9.0f} {result.cpu:7.1f}"
            f" {result.first_paint:8.2f} {result.memory:6.1f} {key}"
        )
    return 0


def _says(text: str) -> Callable[[str], bool]:
    return lambda shown: text in shown


if __name__ == "__main__":
    sys.exit(main())
