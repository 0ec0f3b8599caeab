"""One account of a run out of the files that each tell a part of it."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tui.facts.training import OutputFacts, Plan, RunLog
from tui.llamafactory.console import ConsoleParser
from tui.llamafactory.state_history import completed_by, read_history
from tui.llamafactory.tail import LogTail
from tui.llamafactory.trainer_log import LogEntry, read_trainer_log, segments, with_trainer_log

STATE_FILE = "trainer_state.json"
_WHOLE = 64 << 20
"""Bytes of a log that is read to its last byte; of a larger one the ends are read."""


def read_log(path: Path) -> RunLog:
    """A console log, up to now; of a very large one the beginning and the end.

    Raises:
        OSError: it cannot be read.
    """
    parser = ConsoleParser()
    with LogTail(path) as tail:
        at = path.stat().st_mtime
        pieces = tail.start_late() if path.stat().st_size > _WHOLE else iter(tail.read, None)
        for piece in pieces:
            if not piece.data:
                break
            if piece.gap:
                parser.gap()
            parser.feed(piece.data, at)
    return parser.facts()


def read_segments(path: Path) -> tuple[tuple[LogEntry, ...], ...]:
    """The runs in one ``trainer_log.jsonl``, oldest first. Raises ``OSError``."""
    return segments(read_trainer_log(path)[0])


def joined(log: RunLog, entries: Sequence[LogEntry]) -> RunLog:
    """A console log, or what little there is of one, with the same run's ``trainer_log.jsonl``."""
    if log.plan.total_steps is None and log.step is None:
        if not log.metrics and not says_nothing(log):
            return log  # it never came to train: the lines are of a run before it
        told = of_entries(entries)
        return replace(
            told,
            failure=log.failure,
            interrupted=log.interrupted,
            warnings=log.warnings,
            told=log.told,
            began_at=log.began_at,
        )
    return with_trainer_log(log, entries)


def of_entries(entries: Sequence[LogEntry]) -> RunLog:
    """A run that only its ``trainer_log.jsonl`` tells of; the line without a loss closes its training."""
    log = with_trainer_log(RunLog(stage="train", seen=("start", "train")), entries)
    trained = [one for one in entries if one.loss is not None]
    last = entries[-1]
    if not trained and last.step == last.total and len(entries) == 1:
        # A finished run that was started again: it resumed at its last step and had none left.
        return replace(log, training_completed=True, resume_step=last.step)
    closed = bool(trained) and last.loss is None and last.eval_loss is None
    return replace(log, training_completed=closed, resume_step=_resumed_from(trained))


def _resumed_from(trained: Sequence[LogEntry]) -> int:
    """A run that starts at 0 logs its first steps late; one that goes on starts with a step that the time
    since its start cannot explain.
    """
    if len(trained) < 2 or trained[0].elapsed is None or trained[-1].elapsed is None:
        return 0
    first, last = trained[0], trained[-1]
    steps, seconds = last.step - first.step, (last.elapsed or 0.0) - (first.elapsed or 0.0)
    every = trained[1].step - first.step
    if steps <= 0 or seconds <= 0 or first.step <= every:
        return 0
    done = min(every, round((first.elapsed or 0.0) * steps / seconds))
    return first.step - max(1, done)


def with_history(log: RunLog, output: OutputFacts) -> RunLog:
    """The log with the records of the newest ``trainer_state.json``, which may be all that there is."""
    folders = [output.path, *(one.path for one in reversed(output.checkpoints) if one.complete)]
    history = next((found for one in folders[:2] if (found := read_history(Path(one) / STATE_FILE))), None)
    if history is None:
        return log
    if log.plan.total_steps is None and log.step is None:
        if not log.metrics and not says_nothing(log):
            return log
        return replace(
            log,
            stage="train",
            seen=("start", "train"),
            step=history.step,
            plan=Plan(total_steps=history.total),
            metrics=history.points,
            training_completed=output.global_step is not None,
            source="trainer_state",
        )
    # Of a file that an older or a newer run has left, nothing is taken.
    if history.total != log.plan.total_steps or history.step > (log.step or 0):
        return log
    return replace(log, metrics=completed_by(log.metrics, history))


def says_nothing(log: RunLog) -> bool:
    """Nothing that was read looks like a training."""
    known = (log.began_at, log.step, log.plan.total_steps, log.failure, log.bar)
    return all(one is None for one in known) and not log.metrics and log.seen[1:] in ((), ("import",))
