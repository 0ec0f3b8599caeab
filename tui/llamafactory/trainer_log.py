"""LLaMA-Factory's own progress file, ``trainer_log.jsonl``.

Runs that share an output folder append to one file, so it is cut where the step or the elapsed time goes
back. Its ``remaining_time`` and ``throughput`` are wrong after a resume and are not used.
"""

import json
import os
import stat
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tui.facts.training import MetricPoint, Pause, RunLog, StepClock, StepMark
from tui.llamafactory.clocktext import duration
from tui.llamafactory.history import thinned

_READ_LIMIT = 8 << 20
_LINE_LIMIT = 1 << 16
_ENTRIES = 1 << 14
_CLOCKS = 1024


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One line. ``elapsed`` is whole seconds since this run's training began."""

    step: int
    total: int | None = None
    elapsed: float | None = None
    epoch: float | None = None
    loss: float | None = None
    eval_loss: float | None = None
    learning_rate: float | None = None
    total_tokens: int | None = None


def read_trainer_log(path: Path, offset: int = 0) -> tuple[tuple[LogEntry, ...], int]:
    """The whole lines from ``offset`` on, and the offset to go on from.

    A torn last line is left for the next call; of a very long rest only the end is read. An offset
    behind the file's end means that it was replaced: it is read from its beginning, and the caller
    sees the offset go back. Raises ``OSError`` when the file cannot be read.
    """
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    with os.fdopen(handle, "rb") as file:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            return (), offset
        start = offset if offset <= found.st_size else 0
        cut = found.st_size - start > _READ_LIMIT
        if cut:
            start = found.st_size - _READ_LIMIT
        file.seek(start)
        data = file.read(_READ_LIMIT)
    whole, newline, torn = data.rpartition(b"\n")
    if not newline:
        return (), start + (len(torn) if len(torn) > _LINE_LIMIT else 0)
    lines = whole.split(b"\n")
    entries = (_entry(line) for line in lines[1 if cut else 0 :])
    return tuple(entry for entry in entries if entry is not None), start + len(whole) + 1


def _entry(line: bytes) -> LogEntry | None:
    if len(line) > _LINE_LIMIT:
        return None
    try:
        values = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(values, dict) or not _is_count(values.get("current_steps")):
        return None
    elapsed, total = values.get("elapsed_time"), values.get("total_steps")
    tokens = values.get("total_tokens")
    return LogEntry(
        step=values["current_steps"],
        total=total if _is_count(total) else None,
        elapsed=duration(elapsed) if isinstance(elapsed, str) else None,
        epoch=_number(values.get("epoch")),
        loss=_number(values.get("loss")),
        eval_loss=_number(values.get("eval_loss")),
        learning_rate=_number(values.get("lr")),
        total_tokens=tokens if _is_count(tokens) else None,
    )


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 53


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def segments(entries: Iterable[LogEntry]) -> tuple[tuple[LogEntry, ...], ...]:
    """The runs in one file, oldest first."""
    runs: list[list[LogEntry]] = []
    for entry in entries:
        if not runs or _goes_back(runs[-1][-1], entry):
            runs.append([])
        runs[-1].append(entry)
    return tuple(tuple(run) for run in runs)


def _goes_back(before: LogEntry, after: LogEntry) -> bool:
    if after.step < before.step:
        return True
    if after.step == before.step and before.loss is not None and after.loss is not None:
        return True
    return before.elapsed is not None and after.elapsed is not None and after.elapsed < before.elapsed


class TrainerLogFollower:
    """The newest run's lines of a ``trainer_log.jsonl``, as the file grows.

    ``since`` (epoch seconds) is when the run of interest began: a file that was not written after it
    holds earlier runs only.
    """

    def __init__(self, path: Path, since: float | None = None) -> None:
        self._path = path
        self._since = since
        self._offset = 0
        self._entries: deque[LogEntry] = deque(maxlen=_ENTRIES)

    def update(self) -> tuple[LogEntry, ...]:
        """What the newest run has written so far. Raises ``OSError`` when the file cannot be read."""
        try:
            changed_at = self._path.stat().st_mtime
        except FileNotFoundError:
            self._offset = 0
            self._entries.clear()
            return ()
        if self._since is not None and changed_at < self._since:
            return ()
        entries, offset = read_trainer_log(self._path, self._offset)
        if offset < self._offset:
            self._entries.clear()
        self._offset = offset
        runs = segments([*self._entries, *entries])
        self._entries = deque(runs[-1] if runs else (), maxlen=_ENTRIES)
        return tuple(self._entries)


def with_trainer_log(log: RunLog, entries: Sequence[LogEntry]) -> RunLog:
    """What the console said, completed by what the same run wrote to its ``trainer_log.jsonl``.

    The console's own steps are finer; where it has no bars the lines take their place. Lines of another
    run or of an evaluation alone, which count other steps, change nothing.
    """
    total = log.plan.total_steps
    if not entries or (total is not None and entries[-1].total != total):
        return log
    newest = entries[-1]
    merged = replace(
        log,
        plan=replace(log.plan, total_steps=newest.total),
        metrics=thinned(_merged_points(log.metrics, entries)),
    )
    if log.source == "bar" and log.step is not None and log.step >= newest.step:
        return merged
    clocks, evals = _clocks(entries)
    return replace(
        merged,
        step=newest.step,
        clocks=log.clocks or clocks[-_CLOCKS:],
        evals=log.evals if any(one.seconds is not None for one in log.evals) else evals,
        source="trainer_log",
    )


def _merged_points(console: Sequence[MetricPoint], entries: Sequence[LogEntry]) -> list[MetricPoint]:
    known = {(point.step, point.loss is None): point for point in console if point.step is not None}
    for entry in entries:
        if entry.loss is None and entry.eval_loss is None:
            continue
        written = MetricPoint(
            step=entry.step,
            loss=entry.loss,
            eval_loss=entry.eval_loss,
            learning_rate=entry.learning_rate,
            epoch=entry.epoch,
            tokens_seen=entry.total_tokens,
        )
        key = (entry.step, entry.loss is None)
        printed = known.get(key, written)
        known[key] = printed if printed.tokens_seen else replace(printed, tokens_seen=entry.total_tokens)
    return [known[key] for key in sorted(known)]


def _clocks(entries: Sequence[LogEntry]) -> tuple[tuple[StepClock, ...], tuple[Pause, ...]]:
    clocks: list[StepClock] = []
    evals: list[Pause] = []
    marks: tuple[StepMark, ...] = ()
    for entry in entries:
        if entry.elapsed is None:
            continue
        if entry.eval_loss is not None:
            logged = clocks[-1] if clocks and clocks[-1].step == entry.step else None
            evals.append(Pause(entry.step, entry.elapsed - logged.at if logged else None))
            marks = ("eval",)
        elif not clocks or entry.step > clocks[-1].step:
            clocks.append(StepClock(entry.step, entry.elapsed, marks))
            marks = ()
    return tuple(clocks), tuple(evals)
