"""Trouble seen on real processes."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from support.live_jobs import running_job
from support.samples import CUDA_0, gpu
from support.samples import rank as owner
from support.waiting import wait_until

from tui.collect.proc import Proc
from tui.facts.finding import Finding
from tui.facts.job import Job
from tui.facts.machine import Disk, Gpu
from tui.facts.training import MetricPoint, OutputFacts, Progress, RunLog
from tui.operate.run_facts import RunFacts
from tui.operate.trouble import TroubleWatch

STANDING = Progress(stage="train", step=5, total=100, age=100.0, sign_interval=2.0)


@contextmanager
def process(code: str, **streams: int) -> Iterator["subprocess.Popen[bytes]"]:
    child = subprocess.Popen([sys.executable, "-I", "-S", "-c", code], **streams)  # type: ignore[call-overload]
    try:
        yield child
    finally:
        child.send_signal(signal.SIGCONT)
        child.kill()
        child.communicate()


def stall_of(job: Job) -> Finding:
    found = TroubleWatch(Proc()).findings([job], {}, [], [])
    return next(finding for finding in found if finding.code == "stalled")


def test_a_trainer_whose_output_nobody_reads() -> None:
    code = "import sys\nwhile True: sys.stderr.write('x' * 4096)"
    with process(code, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as child:
        wait_until(lambda: "pipe_write" in Proc().wchan(child.pid), 20, "the pipe is full")
        found = stall_of(running_job([child.pid], progress=STANDING))
    assert (found.evidence["cause"], found.evidence["pid"]) == ("pipe", child.pid)
    assert "pipe_write" in str(found.evidence["wchan"])


def test_a_trainer_that_is_suspended() -> None:
    with process("import time; time.sleep(600)") as child:
        child.send_signal(signal.SIGSTOP)
        wait_until(lambda: (stat := Proc().stat(child.pid)) and stat.state == "T", 20, "it is stopped")
        assert stall_of(running_job([child.pid], progress=STANDING)).evidence["cause"] == "stopped"


def test_a_trainer_that_waits_for_its_data() -> None:
    with process("import time; time.sleep(600)") as main, process("while True: pass") as loader:
        job = running_job([main.pid, loader.pid], roles=("main", "data_worker"), progress=STANDING)
        watch = TroubleWatch(Proc())
        before = Proc().stat(loader.pid)
        assert before is not None
        watch.findings([job], {}, [], [])
        busy = before.user_ticks + 5
        wait_until(lambda: (now := Proc().stat(loader.pid)) and now.user_ticks > busy, 20, "it works")
        (found,) = watch.findings([job], {}, [], [])
    assert (found.evidence["cause"], found.evidence["pid"]) == ("data_workers", loader.pid)


def idle_card(utilization: float) -> Gpu:
    return replace(gpu(owners=(owner(0, 1, 8.0, job="job"),)), utilization=utilization)


def test_idle_time_counts_from_the_last_work() -> None:
    now = [1000.0]
    watch = TroubleWatch(Proc(), price_per_hour=6.0, clock=lambda: now[0])
    job = running_job(gpus=(CUDA_0,))

    def codes(utilization: float, at: float) -> list[str]:
        now[0] = at
        return [one.code for one in watch.findings([job], {}, [idle_card(utilization)], [])]

    assert codes(0.0, 1000.0) == []
    assert codes(0.9, 1100.0) == []
    assert codes(0.0, 1200.0) == []
    assert codes(0.0, 1300.0) == []
    assert codes(0.0, 1400.0) == ["gpu_idle_paid"]
    assert watch.findings([replace(job, state="ended")], {}, [idle_card(0.0)], []) == ()
    assert codes(0.0, 9000.0) == [], "another time"


def test_what_log_and_files_of_a_run_tell() -> None:
    log = RunLog(metrics=(MetricPoint(5, loss=float("nan")),), step=5)
    job = running_job(output_dir="/data/out")
    disks = [Disk("/", 1, 1, 1, "system"), Disk("/data", 100, 50, 10, "data")]
    facts = {"job": RunFacts(log=log, output=OutputFacts("/data/out", exists=True))}
    found = TroubleWatch(Proc()).findings([job], facts, [], disks)
    assert [one.code for one in found] == ["loss_not_finite"]
