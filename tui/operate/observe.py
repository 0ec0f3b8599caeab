"""All sources into one snapshot."""

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from tui.collect.cgroup import CgroupReading, read_cgroup
from tui.collect.disks import DiskReader, read_shm
from tui.collect.gpu_worker import GpuSource
from tui.collect.holders import HolderScanner
from tui.collect.host import assemble, read_traces
from tui.collect.proc import Proc
from tui.collect.processes import ProcessReader
from tui.facts.finding import Finding
from tui.facts.job import Job
from tui.facts.machine import Disk, DriverReading, Gpu, Holder, Host
from tui.facts.snapshot import Snapshot
from tui.insight.job_findings import job_findings
from tui.insight.machine_findings import machine_findings
from tui.insight.owners import join
from tui.jobs.client import FoundJob, UnreadableJob, ensure_keeper, is_over, list_jobs
from tui.operate.foreign import ForeignRuns
from tui.operate.identify import identify
from tui.operate.runs import RunReaders

GPU_PATIENCE = 6.0
"""Seconds that a single look waits for the driver: it may load firmware first."""

_DISK_PERIOD = 10.0


class Observer:
    """Takes snapshots. The driver is read by a helper process, so that it cannot hold up a snapshot."""

    def __init__(
        self, roots: Sequence[Path], *, proc: Proc | None = None, gpus: GpuSource | None = None
    ) -> None:
        self._roots = tuple(roots)
        self._proc = proc or Proc()
        self._gpus = gpus or GpuSource()
        self._holders = HolderScanner(self._proc)
        self._processes = ProcessReader(self._proc)
        self._runs = RunReaders(self._proc)
        self._foreign = ForeignRuns(self._proc)
        self._disks = DiskReader(self._proc)
        self._disks_read: tuple[float, tuple[Disk, ...]] | None = None
        self._cgroup: CgroupReading | None = None
        self._peaks: dict[str, int] = {}
        self._number = 0

    def start(self) -> None:
        """Let the driver be asked, in the background, and begin to count CPU time."""
        self._gpus.start()
        self._cgroup = read_cgroup(self._proc)

    def close(self) -> None:
        """End the helper and let go of every file."""
        self._gpus.close()
        self._runs.close()

    def __enter__(self) -> "Observer":
        self.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def snapshot(self, gpu_patience: float = 0.0) -> Snapshot:
        """Everything as it is now; ``gpu_patience`` is how long to wait for a first driver reading."""
        table = self._proc.table()
        found = list_jobs(self._roots)
        readable = [item for item in found if isinstance(item, FoundJob)]
        jobs = tuple(self._runs.read(item, table) for item in reversed(readable))
        self._runs.keep({item.folder.path for item in readable})
        population = identify(self._processes, table)
        disks = self._read_disks(jobs)
        reading = self._gpus.first(gpu_patience) if gpu_patience else self._gpus.latest()
        # After the driver's answer: a process that it lists may have ended since.
        holders = self._holders.find(self._proc.table())
        self._note_peaks(reading)
        foreign = self._foreign.find(population, {member.pid for job in jobs for member in job.members})
        job_of_pid = {member.pid: job.id for job in (*foreign, *jobs) for member in job.members}
        driver, gpus = join(reading, holders, population.infos, job_of_pid, self._peaks, self._holders.ended)
        host = self._host(disks, reading)
        jobs = tuple(_on_cards(job, holders, gpus) for job in jobs)
        unreadable = tuple(item for item in found if isinstance(item, UnreadableJob))
        self._number += 1
        return Snapshot(
            number=self._number,
            taken_at=time.time(),
            driver=driver,
            gpus=gpus,
            host=host,
            jobs=jobs,
            foreign=tuple(_on_cards(job, holders, gpus) for job in foreign),
            findings=(
                *machine_findings(driver, gpus, host, jobs),
                *job_findings(jobs),
                *_unreadable(unreadable),
            ),
            ages={} if reading.age is None else {"gpus": reading.age},
        )

    def _read_disks(self, jobs: Iterable[Job]) -> tuple[Disk, ...]:
        now = time.monotonic()
        if self._disks_read is None or now - self._disks_read[0] >= _DISK_PERIOD:
            outputs = [job.output_dir for job in jobs if job.output_dir and job.state != "ended"]
            self._disks_read = (now, self._disks.read(outputs))
        return self._disks_read[1]

    def _note_peaks(self, reading: DriverReading) -> None:
        for gpu in reading.gpus:
            if gpu.used is not None:
                self._peaks[gpu.uuid] = max(gpu.used, self._peaks.get(gpu.uuid, 0))

    def _host(self, disks: tuple[Disk, ...], reading: DriverReading) -> Host:
        before, self._cgroup = self._cgroup, read_cgroup(self._proc)
        return assemble(self._cgroup, before, disks, read_shm(), read_traces(self._proc), reading)


def adopt_orphans(roots: Sequence[Path]) -> tuple[str, ...]:
    """Give every job whose keeper died a new one; the ids of those that were adopted."""
    adopted = []
    for found in list_jobs(roots):
        if isinstance(found, FoundJob) and not is_over(found.record) and not found.folder.is_kept():
            ensure_keeper(found.folder)
            adopted.append(found.record.id)
    return tuple(adopted)


def _on_cards(job: Job, holders: Iterable[Holder], gpus: Iterable[Gpu]) -> Job:
    """The job with the cards that its processes hold, where that can be seen."""
    pids = {member.pid for member in job.members}
    minors = {minor for holder in holders if holder.pid in pids for minor in holder.minors}
    held = tuple(gpu.uuid for gpu in gpus if gpu.minor in minors)
    listed = tuple(gpu.uuid for gpu in gpus if any(owner.job == job.id for owner in gpu.owners))
    return replace(job, gpus=listed or held or job.gpus)


def _unreadable(items: Iterable[UnreadableJob]) -> tuple[Finding, ...]:
    return tuple(
        Finding("job_unreadable", "warning", str(item.path), {"reason": item.reason}) for item in items
    )
