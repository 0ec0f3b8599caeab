"""LLaMA-Factory runs and services that this program did not start, found among the processes.

A run is followed through the file that its output goes to, where it goes to one, and through its
``trainer_log.jsonl``.
"""

import os
import time
from collections.abc import Iterator, Mapping, Set
from dataclasses import replace
from pathlib import Path

from tui.collect.proc import Proc
from tui.facts.errors import LlamaherdError
from tui.facts.job import Job, Member
from tui.facts.training import Progress
from tui.facts.unknown import UnknownReason
from tui.insight.eta import progress
from tui.llamafactory.config import TrainingConfig, load_config, resolve
from tui.llamafactory.output import read_output
from tui.llamafactory.schedule import schedule
from tui.operate.deepspeed_settings import deepspeed_settings
from tui.operate.foreign_log import ForeignLog
from tui.operate.identify import Population
from tui.operate.ports import PortFinder
from tui.operate.run_facts import RunFacts

_HEADS = frozenset({"main", "wrapper", "service"})
_TICKS = os.sysconf("SC_CLK_TCK")
_BOARD_FOLDER = "LLAMABOARD_WORKDIR"
"""Where a training that the WebUI started writes, as the WebUI tells it in its environment."""


class ForeignRuns:
    """Finds them again and again; ``facts`` are of the last look, by the id of the run."""

    def __init__(self, proc: Proc, ports: PortFinder | None = None) -> None:
        self._proc = proc
        self._ports = ports or PortFinder(proc)
        self._runs: dict[tuple[int, int], _ForeignRun] = {}

    def find(self, population: Population, ours: Set[int]) -> tuple[Job, ...]:
        """The runs of ``population`` that no job of ours (``ours``: the PIDs of their members) has."""
        heads = sorted(_heads(population, ours))
        keys = {(pid, population.table[pid].start) for pid in heads}
        for key in self._runs.keys() - keys:
            self._runs.pop(key).close()
        return tuple(self._job(pid, population, frozenset(heads)) for pid in heads)

    @property
    def facts(self) -> Mapping[str, RunFacts]:
        """What is known beside what is shown."""
        return {f"{pid}:{start}": run.facts for (pid, start), run in self._runs.items()}

    def close(self) -> None:
        """Let go of every file."""
        for run in self._runs.values():
            run.close()
        self._runs = {}

    def _job(self, pid: int, population: Population, heads: Set[int]) -> Job:
        start = population.table[pid].start
        if (pid, start) not in self._runs:
            self._runs[pid, start] = _ForeignRun(pid, population, self._proc)
        members = tuple(_members(pid, population, heads))
        ports = self._ports.of(member.pid for member in members)
        return self._runs[pid, start].job(members, ports, population)


class _ForeignRun:
    """One of them: what does not change is read once."""

    def __init__(self, pid: int, population: Population, proc: Proc) -> None:
        self._pid = pid
        self._start = population.table[pid].start
        self._cwd = proc.cwd(pid)
        boot = proc.boot_time()
        self._started_at = None if boot is None else boot + self._start / _TICKS
        config = population.roles[pid].config
        self._config = self._placed(config)
        training = _load(self._config, self._cwd)
        board = population.infos[pid].environment.get(_BOARD_FOLDER)
        self._output = self._placed(board) or (training.output_dir if training is not None else None)
        self.facts = RunFacts(
            schedule=schedule(training.values) if training is not None else None,
            config=training.values if training is not None else None,
            deepspeed=deepspeed_settings(training, Path(self._cwd or "/")) if training is not None else {},
        )
        self._log = ForeignLog(proc, self._output, self._started_at)

    def close(self) -> None:
        """Let go of its log."""
        self._log.close()

    def job(self, members: tuple[Member, ...], ports: tuple[int, ...], population: Population) -> Job:
        """The run now."""
        info, role = population.infos[self._pid], population.roles[self._pid]
        unknown: dict[str, UnknownReason] = {"exit_code": "not_visible"}
        shown = self._progress(members, unknown) if role.kind == "train" else None
        return Job(
            id=f"{self._pid}:{self._start}",
            kind="training" if role.kind == "train" else "service",
            state="running",
            ending=None,
            exit_code=None,
            failure=self.facts.log.failure,
            keeper=False,
            main_pid=self._pid,
            members=members,
            config=None if self._config is None else str(self._config),
            output_dir=None if self._output is None else str(self._output),
            started_at=self._started_at,
            ended_at=None,
            gpus=(),
            peak_memory={},
            ports=ports,
            progress=shown,
            command=info.command,
            cwd=self._cwd,
            foreign=True,
            unknown=unknown,
        )

    def _progress(self, members: tuple[Member, ...], unknown: dict[str, UnknownReason]) -> Progress | None:
        try:
            log = self._log.update([member.pid for member in members])
        except OSError:
            unknown["progress"] = "unreadable_file"
            return None
        if log is None:
            if any(member.role == "pool" for member in members):
                return Progress(stage="tokenize", seen=("start", "tokenize"))
            unknown["progress"] = "not_yet" if self._output is not None else "not_reported"
            return None
        output = read_output(self._output) if self._output is not None else None
        self.facts = replace(self.facts, log=log, output=output)
        return progress(log, output, self.facts.schedule, time.monotonic(), started_at=self._started_at)

    def _placed(self, written: str | None) -> Path | None:
        if not written or "\0" in written or self._cwd is None:
            return None
        return Path(self._cwd) / written


def _heads(population: Population, ours: Set[int]) -> Iterator[int]:
    """Trainers and services, and ranks whose launcher is gone, which train on without it."""
    for pid, role in population.roles.items():
        if pid in ours or not population.table[pid].alive:
            continue
        is_service = role.role == "service" and role.kind in ("webui", "chat", "api", "vllm")
        if not role.is_llamafactory and not is_service:
            continue
        parent = population.roles.get(population.infos[pid].ppid)
        orphaned = role.role in ("agent", "rank") and (
            parent is None or parent.role not in ("wrapper", "agent")
        )
        if role.role in _HEADS or orphaned:
            yield pid


def _members(head: int, population: Population, heads: Set[int]) -> Iterator[Member]:
    """The head and its descendants, down to the next head (a training that a WebUI started)."""
    queue = [head]
    while queue:
        pid = queue.pop(0)
        stat = population.table[pid]
        if stat.alive:
            yield Member(pid, stat.start, population.roles[pid].role, stat.state, stat.comm)
        queue.extend(child for child in population.children.get(pid, ()) if child not in heads)


def _load(path: Path | None, cwd: str | None) -> TrainingConfig | None:
    if path is None or cwd is None:
        return None
    try:
        return resolve(load_config(path), Path(cwd))
    except LlamaherdError:
        return None
