"""What goes wrong with the runs that are under way, looked at again and again."""

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from tui.collect.proc import Proc
from tui.facts.finding import Finding
from tui.facts.job import Job
from tui.facts.machine import Disk, Gpu
from tui.facts.waiting import Wait
from tui.insight.disk_forecast import disk_forecast
from tui.insight.idle import held_idle, idle_findings, near_limit
from tui.insight.loss import loss_findings
from tui.insight.resume import resume_findings
from tui.insight.settings_facts import setting_facts, setting_findings
from tui.insight.stall import stall_finding, stalled_for
from tui.insight.trouble import log_findings
from tui.operate.run_facts import RunFacts

_MEMBERS = 64
_PIPE = "pipe:["


class TroubleWatch:
    """Remembers since when cards are idle, and what CPU time the processes of a stalled run had.

    ``price_per_hour`` is of the instance; ``clock`` tells monotonic seconds.
    """

    def __init__(
        self,
        proc: Proc,
        price_per_hour: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._proc = proc
        self._price = price_per_hour
        self._clock = clock
        self._idle_since: dict[str, float] = {}
        self._ticks: dict[tuple[int, int], int] = {}

    def findings(
        self,
        jobs: Iterable[Job],
        facts: Mapping[str, RunFacts],
        gpus: Sequence[Gpu],
        disks: Sequence[Disk],
    ) -> tuple[Finding, ...]:
        """Findings about every job that is not over; ``facts`` by the id of the job."""
        live = [job for job in jobs if job.state not in ("ended", "lost")]
        self._idle_since = {job.id: at for job in live if (at := self._idle_since.get(job.id)) is not None}
        return tuple(
            finding for job in live for finding in self._of(job, facts.get(job.id, RunFacts()), gpus, disks)
        )

    def _of(self, job: Job, facts: RunFacts, gpus: Sequence[Gpu], disks: Sequence[Disk]) -> Iterator[Finding]:
        free = _free(job.output_dir, disks)
        yield from self._stall(job, free, gpus)
        yield from self._idle(job, gpus)
        yield from near_limit(job, gpus)
        if job.kind != "training":
            return
        log = facts.log
        yield from loss_findings(job.id, log.metrics, job.progress.fraction if job.progress else None)
        yield from log_findings(job.id, log)
        yield from setting_findings(job.id, setting_facts(log, facts.config, facts.deepspeed))
        if facts.output is None:
            return
        if log.stage != "save":
            yield from resume_findings(job.id, facts.output.checkpoints, log.step, log.began_at)
        if free is not None:
            limit = (facts.config or {}).get("save_total_limit")
            kept = limit if isinstance(limit, int) and not isinstance(limit, bool) else None
            forecast = disk_forecast(job.id, log, facts.output, facts.schedule, free, kept)
            if forecast is not None:
                yield forecast

    def _stall(self, job: Job, free: int | None, gpus: Sequence[Gpu]) -> Iterator[Finding]:
        if stalled_for(job) is None:
            return
        used = [gpu.utilization for gpu in gpus if gpu.uuid in job.gpus]
        found = stall_finding(job, tuple(self._waits(job)), free, used)
        if found is not None:
            yield found

    def _waits(self, job: Job) -> Iterator[Wait]:
        """Reads only what never blocks: states, kernel functions and links of descriptors."""
        for member in job.members[:_MEMBERS]:
            stat = self._proc.stat(member.pid)
            if stat is None or stat.start != member.start:
                continue
            key, ticks = (member.pid, member.start), stat.user_ticks + stat.system_ticks
            before, self._ticks[key] = self._ticks.get(key), ticks
            links = (self._proc.descriptor(member.pid, name) or "" for name in ("1", "2"))
            yield Wait(
                pid=member.pid,
                role=member.role,
                state=stat.state,
                wchan=self._proc.wchan(member.pid),
                piped=any(link.startswith(_PIPE) for link in links),
                busy=None if before is None else ticks > before,
            )

    def _idle(self, job: Job, gpus: Sequence[Gpu]) -> Iterator[Finding]:
        memory = held_idle(job, gpus)
        if memory is None:
            self._idle_since.pop(job.id, None)
            return
        now = self._clock()
        since = self._idle_since.setdefault(job.id, now)
        yield from idle_findings(job, memory, now - since, self._price)


def _free(output_dir: str | None, disks: Iterable[Disk]) -> int | None:
    """Bytes free on the disk that holds a folder: the one whose path is its longest beginning."""
    if output_dir is None:
        return None
    folder = os.path.normpath(output_dir)
    holding = [
        disk for disk in disks if folder == disk.path or folder.startswith(disk.path.rstrip("/") + "/")
    ]
    best = max(holding, key=lambda disk: len(disk.path), default=None)
    return best.free if best is not None else None
