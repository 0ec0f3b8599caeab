"""The log of a run that somebody else started: wherever its output goes, and what it writes itself."""

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tui.collect.proc import Proc
from tui.facts.training import RunLog
from tui.llamafactory.follow import LogFollower
from tui.llamafactory.trainer_log import LogEntry, TrainerLogFollower, with_trainer_log

_STREAMS = ("2", "1")
"""Bars and most records go to standard error."""
_OF_WEBUI = ("webui_subprocess.log", "running_log.txt")
_WRITTEN = "trainer_log.jsonl"
_CLOCK_SLACK = 2.0
_ASKED = 8


class ForeignLog:
    """Follows one run. ``started_at`` (epoch seconds): what is older in its files is of another run."""

    def __init__(self, proc: Proc, output: Path | None, started_at: float | None) -> None:
        self._proc = proc
        self._output = output
        self._started_at = started_at
        self._console: LogFollower | None = None
        self._written = TrainerLogFollower(output / _WRITTEN, started_at) if output else None

    def close(self) -> None:
        """Let go of the console log."""
        if self._console is not None:
            self._console.close()

    def update(self, pids: Sequence[int]) -> RunLog | None:
        """What the run has said so far, ``None`` while that is nothing. ``pids``: its processes, the first
        to look at first. Raises ``OSError`` when a file cannot be read.
        """
        if self._console is None and (path := self._find(pids)) is not None:
            self._console = LogFollower(path)
        log = self._console.update(time.monotonic(), time.time()) if self._console is not None else None
        if log is not None and self._is_older(log):
            log = None
        entries = self._written.update() if self._written is not None else ()
        if not entries:
            return log
        merged = with_trainer_log(log, entries) if log is not None else _from_entries(entries)
        return replace(merged, changed_at=max(merged.changed_at or 0.0, self._written_at()))

    def _written_at(self) -> float:
        """When the last line was written, on the monotonic clock."""
        if self._output is None:
            return 0.0
        return time.monotonic() - max(0.0, time.time() - (self._output / _WRITTEN).stat().st_mtime)

    def _find(self, pids: Sequence[int]) -> Path | None:
        for pid in pids[:_ASKED]:
            for stream in _STREAMS:
                link = self._proc.descriptor(pid, stream)
                if link is not None and link.startswith("/") and Path(link).is_file():
                    return Path(link)
        if self._output is None:
            return None
        return next((path for name in _OF_WEBUI if self._is_new(path := self._output / name)), None)

    def _is_new(self, path: Path) -> bool:
        try:
            changed_at = path.stat().st_mtime
        except OSError:
            return False
        return path.is_file() and (self._started_at is None or changed_at >= self._started_at)

    def _is_older(self, log: RunLog) -> bool:
        """A file that is appended to tells of the run before until this one has said its first word."""
        if log.stage == "start" or self._started_at is None:
            return log.stage == "start"
        return log.began_at is not None and log.began_at < self._started_at - _CLOCK_SLACK


def _from_entries(entries: Sequence[LogEntry]) -> RunLog:
    """Without a console the lines tell the steps; one without a loss closes the training."""
    last = entries[-1]
    closed = last.loss is None and last.eval_loss is None
    log = with_trainer_log(RunLog(), entries)
    return replace(
        log,
        stage="save" if closed else "train",
        seen=("start", "train"),
        training_completed=closed,
    )
