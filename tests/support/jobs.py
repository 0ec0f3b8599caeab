"""Starts real jobs in a folder of the test's own, and ends whatever a test leaves."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from support import imitation
from support.waiting import wait_until
from tui.collect.proc import Proc
from tui.facts.errors import LlamaherdError
from tui.facts.job import Graces, Identity, JobRecord, RequestKind
from tui.jobs.client import FoundJob, JobSpec, is_over, request_stop, start_job, wait_stopped
from tui.jobs.folder import JobFolder
from tui.jobs.identity import same
from tui.jobs.ladder import scaled

QUICK = scaled(Graces(), 20)
PROC = Proc()


@dataclass(frozen=True, slots=True)
class TestJob:
    """A running job of a known shape; ``yard`` is where its processes enrol."""

    __test__ = False

    found: FoundJob
    yard: Path

    def record(self) -> JobRecord:
        return self.found.folder.read_record()

    @property
    def keeper_pid(self) -> int:
        keeper = self.record().keeper
        assert keeper is not None
        return keeper.pid

    def enrolled(self) -> dict[int, int]:
        """PID to start ticks of every process that the job ever had."""
        return {int(path.name): int(path.read_text()) for path in self.yard.iterdir() if path.name.isdigit()}

    def survivors(self) -> set[int]:
        """Those alive, by identity; and whoever else holds the log open for writing."""
        table = PROC.table()
        log = os.path.realpath(self.found.folder.log)
        enrolled = self.enrolled().items()
        known = {
            pid
            for pid, start in enrolled
            if pid in table and table[pid].start == start and table[pid].lives_on
        }
        return known | {pid for pid in table if PROC.writes(pid, log)}

    def stop(self, kind: RequestKind = "stop", seconds: float = 20.0) -> JobRecord:
        request_stop(self.found.folder, kind)
        return self.ended(seconds)

    def ended(self, seconds: float = 20.0) -> JobRecord:
        """The record once the job is over."""
        import time

        record = wait_stopped(self.found.folder, lambda _: None, time.monotonic() + seconds)
        assert is_over(record), record
        return record

    def kill_keeper(self) -> None:
        """Kill -9, and wait until its lock is free."""
        os.kill(self.keeper_pid, signal.SIGKILL)
        wait_until(lambda: not self.found.folder.is_kept(), 10, "keeper gone")


@dataclass
class Yard:
    """Where the jobs of one test live."""

    path: Path
    jobs: list[TestJob] = field(default_factory=list)

    @property
    def root(self) -> Path:
        return self.path / "state"

    def start(self, shape: str, graces: Graces = QUICK, output_dir: str | None = None) -> TestJob:
        """Start an imitation and wait until its tree stands."""
        yard = self.path / f"yard-{len(self.jobs)}"
        yard.mkdir()
        command = (sys.executable, "-I", "-S", imitation.__file__, shape, str(yard))
        job = self.run(command, yard, graces, output_dir)
        wait_until((yard / "ready").exists, 20, f"{shape} stands")
        return job

    def run(
        self,
        command: tuple[str, ...],
        yard: Path | None = None,
        graces: Graces = QUICK,
        output_dir: str | None = None,
        environ: dict[str, str] | None = None,
    ) -> TestJob:
        """Start any command."""
        spec = JobSpec(
            kind="training",
            command=command,
            cwd=str(self.path),
            environ=dict(os.environ) if environ is None else environ,
            output_dir=output_dir,
            graces=graces,
        )
        job = TestJob(start_job(spec, self.root), yard or self.path)
        self.jobs.append(job)
        return job


@contextmanager
def yard(path: Path) -> Iterator[Yard]:
    """A yard; at the end every job in it is ended through its keeper, or an adopter of it."""
    made = Yard(path)
    try:
        yield made
    finally:
        for job in made.jobs:
            with suppress(LlamaherdError):
                job.stop("force")
            _end_survivors(job)


def _end_survivors(job: TestJob) -> None:
    """What only a failed test leaves: nothing of it may outlive the test."""
    wait_until(lambda: not job.found.folder.is_kept(), 10, "keeper has left")
    for pid in job.survivors() & job.enrolled().keys():
        os.kill(pid, signal.SIGKILL)


def kept(root: Path) -> list[JobFolder]:
    """The job folders below ``root`` that have a live keeper."""
    return [folder for lock in root.rglob("lock") if (folder := JobFolder(lock.parent)).is_kept()]


def alive(identity: Identity) -> bool:
    """Whether this very process runs."""
    stat = PROC.stat(identity.pid)
    return same(identity, PROC) and stat is not None and stat.alive
