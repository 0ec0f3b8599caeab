"""How long a stop of two real ranks takes, beside torchrun's own answer to SIGTERM.

``python tests/bench/stop_time.py [PAIRS]``. Each pair runs the same training twice: once as a job that
is stopped, once from a plain shell line whose torchrun gets SIGTERM. Needs real LLaMA-Factory (see
``tests/support/real_llamafactory.py``).
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.command_line import Herd
from support.real_llamafactory import RealLlamaFactory, provide_llamafactory, run_environment
from support.waiting import wait_until

from tui.collect.proc import Proc, descendants

LIMIT = 1.5
RANKS = {"FORCE_TORCHRUN": "1", "NPROC_PER_NODE": "2"}
STEP = 5
PROC = Proc()


def of_llamaherd(real: RealLlamaFactory, folder: Path, environ: Mapping[str, str], port: int) -> float:
    """Seconds from the request until every process is proved gone."""
    project = folder / "ours"
    project.mkdir()
    real.write_project(project, rows=400, max_steps=5000, dataloader_num_workers=1)
    herd = Herd.at(folder / "state", environ)
    variables = {**RANKS, "MASTER_PORT": str(port)}
    job = herd.start("train.yaml", "--env", real.environment, cwd=project, variables=variables)
    herd.wait_for_step(job, STEP)
    stopped = herd.document("stop", job, "--yes")
    assert stopped["left"] == []
    assert herd.processes_of(job) == {}
    seconds: float = stopped["job"]["stop"]["seconds"]
    return seconds


def of_torchrun(real: RealLlamaFactory, folder: Path, environ: Mapping[str, str], port: int) -> float:
    """Seconds from SIGTERM to torchrun until everything that it had started is gone."""
    project = folder / "plain"
    project.mkdir()
    real.write_project(project, rows=400, max_steps=5000, dataloader_num_workers=1)
    bin_folder = f"{real.environment / 'bin'}{os.pathsep}{environ['PATH']}"
    variables = {**environ, **RANKS, "MASTER_PORT": str(port), "PATH": bin_folder}
    with (
        (project / "log").open("wb") as log,
        subprocess.Popen(
            [str(real.command), "train", "train.yaml"],
            cwd=project,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        ) as run,
    ):
        trainer_log = project / "out" / "trainer_log.jsonl"
        wait_until(
            lambda: trainer_log.exists() and trainer_log.read_text().count("\n") > STEP // 2, 180, "a step"
        )
        table = PROC.table()
        tree = {pid: table[pid].start for pid in descendants(run.pid, table)}
        agent = next(pid for pid in tree if table[pid].ppid == run.pid)
        began = time.monotonic()
        os.kill(agent, signal.SIGTERM)
        run.wait(120)
        wait_until(lambda: not _alive(tree), 120, "everything gone")
        return time.monotonic() - began


def _alive(tree: Mapping[int, int]) -> bool:
    stats = (PROC.stat(pid) for pid in tree)
    return any(stat is not None and stat.start == tree[stat.pid] and stat.lives_on for stat in stats)


def main() -> int:
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    real = provide_llamafactory()
    ours: list[float] = []
    plain: list[float] = []
    for number in range(pairs):
        with tempfile.TemporaryDirectory(prefix="herd") as name:
            folder = Path(name)
            environ = run_environment(folder)
            ours.append(of_llamaherd(real, folder, environ, 29600 + 2 * number))
            plain.append(of_torchrun(real, folder, environ, 29601 + 2 * number))
        print(f"pair {number + 1}: stop {ours[-1]:.2f} s, torchrun on SIGTERM {plain[-1]:.2f} s", flush=True)
    ratio = median(ours) / median(plain)
    print(f"median: {median(ours):.2f} s and {median(plain):.2f} s, ratio {ratio:.2f} (limit {LIMIT})")
    return 0 if ratio <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
