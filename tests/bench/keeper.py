"""What a keeper costs: ``python tests/bench/keeper.py [SECONDS]``.

One job of ten processes that print, beside everything else that runs on the machine; the keeper's own
resident memory and CPU time from /proc, while the job runs and while it is being stopped.
"""

import os
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.jobs import PROC, TestJob, yard

CHATTY = (
    "import os, time\n"
    "for _ in range(9):\n"
    "    if os.fork() == 0: break\n"
    "for n in range(100_000): print(n, flush=True); time.sleep(0.2)\n"
)
TICK = os.sysconf("SC_CLK_TCK")
LIMIT_BYTES, LIMIT_SHARE = 20 << 20, 0.01


def cpu_seconds(pid: int) -> float:
    stat = PROC.stat(pid)
    return 0.0 if stat is None else (stat.user_ticks + stat.system_ticks) / TICK


def resident(pid: int) -> tuple[int, int]:
    """Resident bytes, and those of them that no other process shares."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    fields = {line.split(":")[0]: int(line.split()[1]) << 10 for line in lines[1:]}
    return fields["Rss"], fields["Private_Dirty"] + fields["Private_Clean"]


def measure(job: TestJob, seconds: float) -> tuple[float, float]:
    """CPU share of the first five seconds, and of ``seconds`` after them."""
    pid = job.keeper_pid
    shares: list[float] = []
    for period in (5.0, seconds):
        before, began = cpu_seconds(pid), time.monotonic()
        time.sleep(period)
        shares.append((cpu_seconds(pid) - before) / (time.monotonic() - began))
    return shares[0], shares[1]


def main() -> int:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 20.0
    with tempfile.TemporaryDirectory() as folder, yard(Path(folder)) as jobs:
        job = jobs.run((sys.executable, "-I", "-S", "-c", CHATTY))
        young, settled = measure(job, seconds)
        rss, private = resident(job.keeper_pid)
        members, processes = len(job.record().members), len(PROC.table())
        began = time.monotonic()
        job.stop()
        stopped = time.monotonic() - began
    print(f"Python {sys.version.split()[0]}, {members} members, {processes} processes on the machine")
    print(f"{'resident memory':28}{rss / 2**20:8.1f} MiB   (limit 20; not shared {private / 2**20:.1f})")
    print(f"{'CPU, first 5 s':28}{young:8.2%}")
    print(f"{f'CPU, next {seconds:.0f} s':28}{settled:8.2%}       (limit 1.00%)")
    print(f"{'stop, graces / 20':28}{stopped:8.2f} s")
    return 0 if rss <= LIMIT_BYTES and settled <= LIMIT_SHARE else 1


if __name__ == "__main__":
    sys.exit(main())
