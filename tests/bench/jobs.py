"""The promises of jobs in numbers: ``python tests/bench/jobs.py [--few] [PART …]``; without a part all of
them, with ``--few`` three runs of each.

``escapes`` stops every shape of escaping children, 25 runs each; ``init`` does it below a PID 1 that
collects nobody; ``reuse`` gives a dead process's PID to another, 200 times; ``kills`` ends keeper, client or
both at random moments, 100 times; ``writes`` kills a writer of ``job.json``, 1,000 times; ``disk`` fills a
disk of 1 MiB under a job. Graces are divided by 20. What real trainings do is in ``stop_moments.py`` and
``stop_time.py``.
"""

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from support import imitation
from support.folders import RECORD
from support.imitation import SHAPES
from support.jobs import PROC, QUICK, TestJob, Yard, alive, yard
from support.waiting import wait_until

from tui.facts.errors import LlamaherdError
from tui.facts.job import Identity, JobRecord
from tui.jobs.client import FoundJob, JobSpec, ensure_keeper, is_over, list_jobs, request_stop, start_job
from tui.jobs.folder import create_folder
from tui.jobs.identity import identify
from tui.jobs.stopper import PidFds, Stopper

FEW, INSIDE = "--few", "--inside"
"""Three runs each; this part again, in namespaces of its own."""

_BROKEN = 3
"""Exit code of a part inside: not one that unshare gives."""

IS_FEW = FEW in sys.argv
RUNS, AT_ONCE = (3, 3) if IS_FEW else (25, 5)
REUSES, KILLS, WRITES, FULL = (3, 3, 3, 1) if IS_FEW else (200, 100, 1000, 5)
STEADY = ("leaves_daemon",)
"""Shapes that end by themselves: what they leave is swept without a stop."""

LIFE = [sys.executable, "-I", "-S", "-c", "import time; time.sleep(600)"]


def escapes(shapes: list[str]) -> bool:
    """Stops them; whether nobody survived and no bystander was hurt."""
    print(f"{'shape':18}{'runs':>6}{'survivors':>11}{'hurt':>6}{'left':>6}{'slowest stop':>14}")
    good = True
    for shape in shapes:
        survivors = hurt = left = 0
        slowest = 0.0
        for _ in range(RUNS // AT_ONCE):
            with (
                tempfile.TemporaryDirectory() as folder,
                yard(Path(folder)) as jobs,
                subprocess.Popen(LIFE) as bystander,
            ):
                known = identify(bystander.pid, PROC)
                for record, job in _stopped(jobs, shape):
                    survivors += len(job.survivors())
                    left += len(record.stop.left) if record.stop else 0
                    slowest = max(slowest, (record.stop.seconds or 0.0) if record.stop else 0.0)
                hurt += known is None or not alive(known)
                bystander.kill()
        good = good and not (survivors or hurt or left)
        print(f"{shape:18}{RUNS:6}{survivors:11}{hurt:6}{left:6}{slowest:12.2f} s", flush=True)
    return good


def _stopped(jobs: Yard, shape: str) -> list[tuple[JobRecord, TestJob]]:
    running = [jobs.start(shape) for _ in range(AT_ONCE)]
    for job in running:
        with suppress(LlamaherdError):
            if shape not in STEADY:
                request_stop(job.found.folder, "stop")
    return [(job.ended(60), job) for job in running]


def non_reaping_init() -> bool:
    """The same below a PID 1 that never collects an orphan, as in many containers."""
    if os.getpid() == 1:
        return escapes(["daemons", "outliving", "zombies", "torchrun"])
    return _unshared(["-Urpf", "--mount-proc"], "init")


def reuse() -> bool:
    """A stranger gets the PID of a process that a signal was meant for."""
    if os.getpid() != 1:
        return _at_the_handle() and _unshared(["-Urpf", "--mount-proc"], "reuse")
    last_pid = Path("/proc/sys/kernel/ns_last_pid")
    wrong = same_pid = 0
    results: dict[str, int] = {}
    stopper = Stopper(PROC)
    for _ in range(REUSES):
        target = _ended_soon()
        last_pid.write_text(str(target.pid - 1))
        with subprocess.Popen(LIFE) as stranger:
            same_pid += stranger.pid == target.pid
            status = stopper.send(target, signal.SIGKILL, descends=True).status
            results[status] = results.get(status, 0) + 1
            with suppress(subprocess.TimeoutExpired):
                wrong += stranger.wait(0.02) is not None
            stranger.kill()
    print(f"{REUSES} tries, PID really reused {same_pid} times, answers {results}, wrong signals {wrong}")
    return not wrong and (IS_FEW or same_pid > REUSES // 2)


class _Stale(PidFds):
    """The handle was opened on a process that has ended since; now a stranger has its PID."""

    def open(self, pid: int) -> int:
        with subprocess.Popen(LIFE) as gone:
            handle = super().open(gone.pid)
            gone.kill()
        return handle


def _at_the_handle() -> bool:
    """Even a stranger with the very start ticks of the dead process gets nothing."""
    wrong = 0
    with subprocess.Popen(LIFE) as stranger:
        target = identify(stranger.pid, PROC)
        assert target is not None
        for _ in range(REUSES):
            result = Stopper(PROC, pidfds=_Stale()).send(target, signal.SIGKILL, descends=True)
            wrong += result.status != "gone" or stranger.poll() is not None
        stranger.kill()
    print(f"{REUSES} tries at the handle, wrong signals {wrong}", flush=True)
    return not wrong


def _ended_soon() -> Identity:
    """A process that was known for longer than a clock tick, and is gone."""
    with subprocess.Popen(LIFE) as child:
        found = identify(child.pid, PROC)
        time.sleep(0.02)
        child.kill()
    assert found is not None
    return found


def kills() -> bool:
    """After the kill the next client finds the job, in the state that is true."""
    chooser = random.Random(4)
    wrong: list[str] = []
    seen: dict[str, int] = {}
    for number in range(KILLS):
        with tempfile.TemporaryDirectory() as folder, yard(Path(folder)) as jobs:
            who = ("keeper", "client", "both")[number % 3]
            problem, state = _one_kill(jobs, who, chooser.uniform(0.0, 0.8))
            seen[f"{who}: {state}"] = seen.get(f"{who}: {state}", 0) + 1
            if problem:
                wrong.append(f"try {number}, {who}: {problem}")
    for line in wrong:
        print(line)
    for state, count in sorted(seen.items()):
        print(f"  {state:28}{count:4}")
    print(f"{KILLS} tries, {len(wrong)} jobs lost or told wrongly", flush=True)
    return not wrong


def _one_kill(jobs: Yard, who: str, delay: float) -> tuple[str, str]:
    place = jobs.path / "yard-0"
    place.mkdir()
    client = os.fork()
    if client == 0:
        command = (sys.executable, "-I", "-S", imitation.__file__, "sessions", str(place))
        with suppress(LlamaherdError):
            start_job(JobSpec("training", command, "/", dict(os.environ), graces=QUICK), jobs.root)
        time.sleep(60)
        os._exit(0)
    time.sleep(delay)
    folders = [item for item in list_jobs([jobs.root]) if isinstance(item, FoundJob)]
    keeper = folders[0].record.keeper if folders else None
    if who != "client" and keeper is not None:
        Stopper(PROC).send(keeper, signal.SIGKILL)  # refuses: a keeper is nobody's target
        with suppress(ProcessLookupError):
            os.kill(keeper.pid, signal.SIGKILL)
    os.kill(client, signal.SIGKILL) if who != "keeper" else None
    if who != "keeper":
        os.waitpid(client, 0)
    try:
        return _truth(jobs, place)
    finally:
        if who == "keeper":
            os.kill(client, signal.SIGKILL)
            os.waitpid(client, 0)


def _truth(jobs: Yard, place: Path) -> tuple[str, str]:
    """What is wrong with what the next client says (``""``: nothing), and what it says."""
    found = [item for item in list_jobs([jobs.root]) if isinstance(item, FoundJob)]
    if not found:
        return ("something runs without a folder" if list(place.iterdir()) else ""), "no folder yet"
    job = TestJob(found[0], place)
    jobs.jobs.append(job)
    folder = job.found.folder
    # A start that is under way is given its time: it comes to run, or it never does.
    with suppress(AssertionError):
        wait_until(lambda: folder.read_record().state != "starting", 3, "started")
    if folder.read_record().state == "starting":
        folder.write_record(replace(folder.read_record(), created_at=0.0))
    record = ensure_keeper(folder)
    runs = bool(job.survivors())
    said = f"{record.state}{' again' if record.adopted else ''}"
    if runs != (not is_over(record)) and not (record.state == "running" and not list(place.iterdir())):
        return f"{said}, and it {'runs' if runs else 'does not run'}", said
    if not is_over(record):
        job.stop()
    return (f"{len(job.survivors())} survive the stop" if job.survivors() else ""), said


def writes() -> bool:
    """The record parses whenever its writer dies."""
    chooser = random.Random(5)
    unreadable = caught = 0
    with tempfile.TemporaryDirectory() as name:
        folder = create_folder(Path(name), "x", 0.0, "abcd")
        folder.write_record(RECORD)
        for _ in range(WRITES):
            writer = os.fork()
            if writer == 0:
                record = folder.read_record()
                while True:
                    record = replace(
                        record, adopted=record.adopted + 1, command=("x" * (record.adopted % 9973),)
                    )
                    folder.write_record(record)
            time.sleep(chooser.uniform(0.0, 0.04))
            os.kill(writer, signal.SIGKILL)
            os.waitpid(writer, 0)
            caught += (folder.path / "job.json.tmp").exists()
            try:
                folder.read_record()
            except LlamaherdError:
                unreadable += 1
        written = folder.read_record().adopted
    print(f"{WRITES} kills, {caught} in the middle of a write ({written} were whole); ", end="")
    print(f"{unreadable} records that do not parse", flush=True)
    return not unreadable and (IS_FEW or caught >= WRITES // 10)


def disk() -> bool:
    """A job whose disk is full from its first second to its last tells the truth at the end."""
    if os.getpid() != 1:
        return _unshared(["-Urmpf", "--mount-proc"], "disk")
    with tempfile.TemporaryDirectory() as name:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", name], check=True)
        wrong = sum(not _full(Path(name, f"run-{number}")) for number in range(FULL))
        subprocess.run(["umount", "-l", name], check=True)
    print(f"{FULL} jobs on a full disk of 1 MiB, {wrong} with a false last state", flush=True)
    return not wrong


def _full(folder: Path) -> bool:
    folder.mkdir()
    with yard(folder) as jobs:
        job = jobs.start("stubborn")
        with suppress(OSError), (folder / "fill").open("wb", buffering=0) as fill:
            while True:
                fill.write(bytes(4096))
        record = job.stop(seconds=60)
        good = record.state == "ended" and record.exit is not None and record.exit.signal == signal.SIGKILL
        (folder / "fill").unlink()
        return good and not job.survivors()


def _unshared(options: list[str], part: str) -> bool:
    """This part again, in namespaces of its own."""
    command = ["unshare", *options, sys.executable, __file__, *([FEW] if IS_FEW else []), INSIDE, part]
    done = subprocess.run(command, check=False)
    if done.returncode not in (0, _BROKEN):
        print(f"no namespaces here, so this was not measured (unshare gave {done.returncode})")
    return done.returncode == 0


PARTS: dict[str, Callable[[], bool]] = {
    "escapes": lambda: escapes([name for name in SHAPES if name != "saves_on_abort"]),
    "init": non_reaping_init,
    "reuse": reuse,
    "kills": kills,
    "writes": writes,
    "disk": disk,
}


def main() -> int:
    names = [name for name in sys.argv[1:] if name not in (FEW, INSIDE)] or list(PARTS)
    if INSIDE in sys.argv:
        return 0 if PARTS[names[0]]() else _BROKEN
    failed = []
    for name in names:
        print(
            f"--- {name}: {(PARTS[name].__doc__ or 'every shape of escaping children').splitlines()[0]}",
            flush=True,
        )
        began = time.monotonic()
        if not PARTS[name]():
            failed.append(name)
        print(f"    {time.monotonic() - began:.0f} s", flush=True)
    print(f"failed: {', '.join(failed)}" if failed else "all promises kept")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
