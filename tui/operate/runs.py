"""One job as shown: its record, what its log and output folder say, and what is derived from them."""

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from tui.collect.proc import Proc, ProcessStat, descendants
from tui.facts.errors import LlamaherdError
from tui.facts.job import Job, JobRecord, Member, MemberRole
from tui.facts.machine import DATA_WORKER_TITLE
from tui.facts.secrets import mask_arguments
from tui.facts.training import OutputFacts, Progress, RunLog
from tui.facts.unknown import UnknownReason
from tui.insight.ending import ending
from tui.insight.eta import progress
from tui.jobs.client import FoundJob, is_over
from tui.jobs.folder import JobFolder
from tui.jobs.samples import read_peaks
from tui.llamafactory.config import TrainingConfig, load_config
from tui.llamafactory.follow import LogFollower
from tui.llamafactory.output import read_output
from tui.llamafactory.schedule import schedule
from tui.llamafactory.trainer_log import TrainerLogFollower, with_trainer_log
from tui.operate.deepspeed_settings import deepspeed_settings
from tui.operate.ports import PortFinder
from tui.operate.run_facts import RunFacts

_Table = Mapping[int, ProcessStat]


class RunReader:
    """Follows one job folder; each look reads only what is new.

    A job that is over is read once more after its end and then remembered. ``facts`` are of the last look.
    """

    def __init__(self, folder: JobFolder, record: JobRecord, ports: PortFinder) -> None:
        self._folder = folder
        self._ports = ports
        self.job_id = record.id
        self._log = LogFollower(folder.log)
        self._output = Path(record.output_dir) if record.output_dir else None
        self._trainer_log = (
            TrainerLogFollower(self._output / "trainer_log.jsonl", since=record.created_at)
            if self._output is not None and record.kind == "training"
            else None
        )
        config = _config(folder)
        self.facts = RunFacts(
            # A pasted command without a config file: the log alone tells what comes.
            schedule=schedule(config.values) if config is not None else None,
            config=config.values if config is not None else None,
            deepspeed=deepspeed_settings(config, Path(record.cwd)) if config is not None else {},
        )
        self._final: tuple[JobRecord, Job] | None = None

    def close(self) -> None:
        """Let go of the log file."""
        self._log.close()

    def read(self, record: JobRecord, table: _Table) -> Job:
        """The job now. ``table`` is one look at all processes."""
        if self._final is not None and self._final[0] == record:
            return self._final[1]
        unknown: dict[str, UnknownReason] = {}
        log = self._read_log(unknown)
        output = read_output(self._output) if self._output is not None else None
        self.facts = replace(self.facts, log=log, output=output)
        job = self._job(record, log, output, table, unknown)
        if is_over(record):
            self._final = (record, job)
            self.close()
        return job

    def _read_log(self, unknown: dict[str, UnknownReason]) -> RunLog:
        try:
            log = self._log.update(time.monotonic(), time.time())
        except OSError:
            unknown["progress"] = "unreadable_file"
            return RunLog()
        if self._trainer_log is not None:
            log = with_trainer_log(log, self._trainer_log.update())
        return log

    def _job(
        self,
        record: JobRecord,
        log: RunLog,
        output: OutputFacts | None,
        table: _Table,
        unknown: dict[str, UnknownReason],
    ) -> Job:
        over = is_over(record)
        members = () if over else living_members(record, table)
        how, failure = ending(record, log, output) if over else (None, log.failure)
        code = record.exit.code if record.exit else None
        if over and record.exit is None:
            unknown["exit_code"] = "not_visible"
        return Job(
            id=record.id,
            kind=record.kind,
            state=record.state,
            ending=how,
            exit_code=code,
            failure=failure,
            keeper=not over and self._folder.is_kept(),
            main_pid=record.main.pid if record.main and not over else None,
            members=members,
            config=record.config,
            output_dir=record.output_dir,
            started_at=record.started_at,
            ended_at=record.ended_at,
            gpus=record.gpus,
            peak_memory=_peaks(self._folder, record),
            ports=() if over else self._ports.of(member.pid for member in members),
            progress=self._progress(record, log, output, over=over),
            command=mask_arguments(record.command),
            cwd=record.cwd,
            stop=record.stop,
            folder=str(self._folder.path),
            foreign=record.foreign,
            unknown=unknown,
        )

    def _progress(
        self, record: JobRecord, log: RunLog, output: OutputFacts | None, *, over: bool
    ) -> Progress | None:
        if record.kind != "training":
            return None
        return progress(
            log, output, self.facts.schedule, time.monotonic(), ended=over, started_at=record.started_at
        )


class RunReaders:
    """A reader per job folder, kept from one snapshot to the next."""

    def __init__(self, proc: Proc, ports: PortFinder | None = None) -> None:
        self._ports = ports or PortFinder(proc)
        self._readers: dict[Path, RunReader] = {}

    def read(self, found: FoundJob, table: _Table) -> Job:
        """The job now."""
        path = found.folder.path
        if path not in self._readers:
            self._readers[path] = RunReader(found.folder, found.record, self._ports)
        return self._readers[path].read(found.record, table)

    @property
    def facts(self) -> Mapping[str, RunFacts]:
        """What is known beside what is shown, by the id of the job."""
        return {reader.job_id: reader.facts for reader in self._readers.values()}

    def keep(self, paths: set[Path]) -> None:
        """Forget the folders that are gone."""
        for path in self._readers.keys() - paths:
            self._readers.pop(path).close()

    def close(self) -> None:
        """Let go of every file."""
        self.keep(set())


def read_job(found: FoundJob, proc: Proc | None = None) -> Job:
    """One job, once."""
    proc = proc or Proc()
    reader = RunReader(found.folder, found.record, PortFinder(proc))
    try:
        return reader.read(found.record, proc.table())
    finally:
        reader.close()


def living_members(record: JobRecord, table: _Table) -> tuple[Member, ...]:
    """The members of a job now: those on record that are still the same processes, and all that descends
    from the keeper, whose record of them is up to a second old.
    """
    known = {(member.pid, member.start): member for member in record.members}
    keeper = record.keeper and table.get(record.keeper.pid)
    is_kept = keeper is not None and record.keeper is not None and keeper.start == record.keeper.start
    below = descendants(record.keeper.pid, table) if is_kept and record.keeper is not None else []
    pids = dict.fromkeys([*(pid for pid, _start in known), *below])
    found = (table[pid] for pid in pids if pid in table and table[pid].alive)
    return tuple(
        replace(known[stat.pid, stat.start], state=stat.state)
        if (stat.pid, stat.start) in known
        else Member(stat.pid, stat.start, _role_at_sight(stat), stat.state, stat.comm)
        for stat in found
        if (stat.pid, stat.start) in known or stat.pid in below
    )


def _peaks(folder: JobFolder, record: JobRecord) -> dict[str, int]:
    """The peaks of the cards that were chosen for the job, of all cards where none were."""
    peaks = read_peaks(folder.path)
    return {uuid: peak for uuid, peak in peaks.items() if not record.gpus or uuid in record.gpus}


def _role_at_sight(stat: ProcessStat) -> MemberRole:
    return "data_worker" if stat.comm == DATA_WORKER_TITLE else "other"


def _config(folder: JobFolder) -> TrainingConfig | None:
    try:
        return load_config(folder.config)
    except LlamaherdError:
        return None
