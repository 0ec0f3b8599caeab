"""All sources into one snapshot."""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tui.collect.cgroup import CgroupReading, read_cgroup
from tui.collect.disk_source import DiskSource
from tui.collect.disks import DiskReader, read_shm
from tui.collect.gpu_worker import GpuSource
from tui.collect.holders import HolderScanner
from tui.collect.host import Traces, assemble, read_traces
from tui.collect.proc import Proc
from tui.collect.processes import ProcessReader
from tui.facts.finding import Finding
from tui.facts.job import Job
from tui.facts.machine import Disk, Driver, DriverReading, Gpu, Holder, Host, ProcessInfo
from tui.facts.process import ProcessDetail
from tui.facts.snapshot import Snapshot
from tui.insight.device_findings import device_findings
from tui.insight.job_findings import job_findings
from tui.insight.machine_findings import machine_findings
from tui.insight.owners import join, pairs_of
from tui.insight.peaks import Peaks
from tui.insight.visible_devices import is_chosen, visible_cards
from tui.jobs.client import FoundJob, UnreadableJob, ensure_keeper, is_over, list_jobs, needs_keeper
from tui.operate.foreign import ForeignRuns
from tui.operate.identify import Identifier, Population
from tui.operate.ports import PortFinder
from tui.operate.process_detail import process_detail
from tui.operate.run_facts import RunFacts
from tui.operate.runs import RunReaders
from tui.operate.trouble import TroubleWatch

GPU_PATIENCE = 6.0
"""Seconds that a single look waits for the driver: it may load firmware first."""

_DISK_PATIENCE = 2.6
"""Seconds that a first look waits for the disks: a network disk may take its whole deadline."""


class Observer:
    """Takes snapshots. What can hang (the driver, network disks) is read beside it, so that it costs a
    snapshot freshness only.

    ``device_prefix`` is the name of the cards' device files without their number; ``price_per_hour`` is of
    the instance.
    """

    def __init__(
        self,
        roots: Sequence[Path],
        *,
        proc: Proc | None = None,
        gpus: GpuSource | None = None,
        device_prefix: str = "/dev/nvidia",
        price_per_hour: float | None = None,
    ) -> None:
        self._roots = tuple(roots)
        self._proc = proc or Proc()
        self._gpus = gpus or GpuSource()
        self._disks = DiskSource(DiskReader(self._proc))
        self._holders = HolderScanner(self._proc, device_prefix)
        self._identifier = Identifier(ProcessReader(self._proc))
        ports = PortFinder(self._proc)
        self._runs = RunReaders(self._proc, ports)
        self._foreign = ForeignRuns(self._proc, ports)
        self._trouble = TroubleWatch(self._proc, price_per_hour)
        self._traces: Traces | None = None
        self._cgroup: CgroupReading | None = None
        self._first_kills: int | None = None
        self._peaks = Peaks()
        self._pairs: Mapping[int, tuple[int, int]] = {}
        self._population = Population({}, {}, {}, {})
        self._held: tuple[Holder, ...] = ()
        self._number = 0

    def start(self) -> None:
        """Let driver and disks be asked, in the background, and begin to count CPU time."""
        self._gpus.start()
        self._disks.watch(_outputs(list_jobs(self._roots)))
        self._disks.start()
        self._cgroup = read_cgroup(self._proc)
        self._first_kills = self._cgroup.oom_kills

    def close(self) -> None:
        """End the helper and let go of every file."""
        self._gpus.close()
        self._disks.close()
        self._runs.close()
        self._foreign.close()

    def __enter__(self) -> "Observer":
        self.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def detail(self, pid: int, snapshot: Snapshot, start: int | None = None) -> ProcessDetail:
        """One process in full, as the last look saw it; ``snapshot`` is what that look gave.

        Raises:
            LlamaherdError: ``pid_missing``: there is none, or with ``start`` not that very one.
        """
        return process_detail(pid, snapshot, self._population, self._held, self._proc, start)

    @property
    def run_facts(self) -> Mapping[str, RunFacts]:
        """What the last look knew of each run beside what it showed: its log, its files, its config."""
        return {**self._runs.facts, **self._foreign.facts}

    def snapshot(self, gpu_patience: float = 0.0) -> Snapshot:
        """Everything as it is now; ``gpu_patience`` is how long to wait for a first driver reading."""
        reading = self._gpus.first(gpu_patience) if gpu_patience else self._gpus.latest()
        disk_age, disks = self._disks.latest(_DISK_PATIENCE if gpu_patience else 0.0)
        # After the driver's answer: whoever it lists and still lives is in the table.
        table = self._proc.table()
        population = self._population = self._identifier.identify(table)
        holders = self._held = self._holders.find(table)
        found = list_jobs(self._roots)
        readable = [item for item in found if isinstance(item, FoundJob)]
        jobs = tuple(self._runs.read(item, table) for item in reversed(readable))
        self._runs.keep({item.folder.path for item in readable})
        self._disks.watch(_outputs(found))
        foreign = self._foreign.find(population, {member.pid for job in jobs for member in job.members})
        driver, gpus = self._join(reading, holders, population, (*foreign, *jobs))
        on_cards = _Cards(holders, gpus, population.infos)
        jobs = tuple(on_cards.placed(job) for job in jobs)
        foreign = tuple(
            replace(on_cards.placed(job), peak_memory=self._peaks.of_run(job.id)) for job in foreign
        )
        host = self._host(disks, reading)
        self._number += 1
        return Snapshot(
            number=self._number,
            taken_at=time.time(),
            driver=driver,
            gpus=gpus,
            host=host,
            jobs=jobs,
            foreign=foreign,
            findings=(
                *machine_findings(driver, gpus, host, (*jobs, *foreign), self._kills_before(host)),
                *device_findings(gpus, (*jobs, *foreign), population.infos),
                *job_findings(jobs),
                *self._trouble.findings((*jobs, *foreign), self.run_facts, gpus, disks),
                *_unreadable(item for item in found if isinstance(item, UnreadableJob)),
            ),
            ages={name: age for name, age in (("gpus", reading.age), ("disks", disk_age)) if age is not None},
        )

    def _join(
        self,
        reading: DriverReading,
        holders: Sequence[Holder],
        population: Population,
        jobs: Sequence[Job],
    ) -> tuple[Driver, tuple[Gpu, ...]]:
        self._peaks.note_cards(reading)
        job_of_pid = {member.pid: job.id for job in jobs for member in job.members}
        driver, gpus = join(
            reading,
            holders,
            population.infos,
            job_of_pid,
            self._peaks.cards,
            self._holders.ended,
            self._pairs,
        )
        self._pairs = pairs_of(gpus)
        self._peaks.note_runs(gpus, (job.id for job in jobs))
        return driver, gpus

    def _host(self, disks: tuple[Disk, ...], reading: DriverReading) -> Host:
        before, self._cgroup = self._cgroup, read_cgroup(self._proc)
        if self._traces is None:
            self._traces = read_traces(self._proc)
        return assemble(self._cgroup, before, disks, read_shm(), self._traces, reading)

    def _kills_before(self, host: Host) -> int | None:
        """The baseline of what was killed, once something was killed while this watched."""
        if host.oom_kills is None or self._first_kills is None or host.oom_kills <= self._first_kills:
            return None
        return self._first_kills


def adopt_orphans(roots: Sequence[Path]) -> tuple[str, ...]:
    """Give every job whose keeper died a new one; the ids of those that were adopted."""
    adopted = []
    for found in list_jobs(roots):
        if not isinstance(found, FoundJob) or is_over(found.record):
            continue
        # The folder is read again: the job may have ended since, and its keeper with it.
        if needs_keeper(found.folder, found.folder.read_record()):
            ensure_keeper(found.folder)
            adopted.append(found.record.id)
    return tuple(adopted)


@dataclass(frozen=True, slots=True)
class _Cards:
    """Which cards the processes of a run use, where that can be seen."""

    holders: Sequence[Holder]
    gpus: Sequence[Gpu]
    infos: Mapping[int, ProcessInfo]

    def placed(self, job: Job) -> Job:
        """The job with its cards: owned, else held, else as recorded, else chosen by its environment."""
        pids = {member.pid for member in job.members}
        minors = {minor for holder in self.holders if holder.pid in pids for minor in holder.minors}
        held = tuple(gpu.uuid for gpu in self.gpus if gpu.minor in minors)
        owned = tuple(gpu.uuid for gpu in self.gpus if any(owner.job == job.id for owner in gpu.owners))
        cards = owned or held or job.gpus or self._chosen(job)
        return job if cards == job.gpus else replace(job, gpus=cards)

    def _chosen(self, job: Job) -> tuple[str, ...]:
        info = self.infos.get(job.main_pid) if job.main_pid is not None else None
        if info is None or not is_chosen(info.environment):
            return ()
        return visible_cards(info.environment, self.gpus) or ()


def _outputs(found: Iterable[FoundJob | UnreadableJob]) -> tuple[str, ...]:
    """Where the runs that are not over write."""
    records = [item.record for item in found if isinstance(item, FoundJob)]
    return tuple(record.output_dir for record in records if record.output_dir and not is_over(record))


def _unreadable(items: Iterable[UnreadableJob]) -> tuple[Finding, ...]:
    return tuple(
        Finding("job_unreadable", "warning", str(item.path), {"reason": item.reason}) for item in items
    )
