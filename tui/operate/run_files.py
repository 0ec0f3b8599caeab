"""The files of one run, found from any of them and read once."""

import json
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tui.facts.errors import LlamaherdError
from tui.facts.explained import FileKind, SettingName
from tui.facts.training import OutputFacts, Plan, RunLog
from tui.llamafactory.config import TrainingConfig, load_config
from tui.llamafactory.console import ConsoleParser
from tui.llamafactory.deepspeed import deepspeed_of, read_deepspeed
from tui.llamafactory.output import read_output
from tui.llamafactory.state_history import completed_by, read_history
from tui.llamafactory.tail import LogTail
from tui.llamafactory.trainer_log import LogEntry, read_trainer_log, segments, with_trainer_log

JOB_RECORD = "job.json"
TRAINER_LOG = "trainer_log.jsonl"
_JOB_LOG = "train.log"
_LOGS = ("webui_subprocess.log", _JOB_LOG, "running_log.txt")
_CONFIGS = ("training_args.yaml", "config.yaml")
_OF_OUTPUT = frozenset(
    {
        "trainer_state.json",
        "all_results.json",
        "train_results.json",
        "eval_results.json",
        "adapter_config.json",
    }
)
_WHOLE = 64 << 20
"""Bytes of a log that is read to its last byte; of a larger one the ends are read."""
_SNIFFED = 4096
_NO_LOGS = frozenset({".yaml", ".yml", ".json", ".py", ".safetensors", ".bin", ".pt", ".pth", ".gguf"})
_STATE = "trainer_state.json"


@dataclass(frozen=True, slots=True)
class RunFiles:
    """What one run left. ``earlier`` are the runs that used the same ``trainer_log.jsonl`` before it."""

    path: Path
    source: FileKind
    log: RunLog
    earlier: tuple[RunLog, ...]
    output: OutputFacts | None
    config: TrainingConfig | None
    changed_at: float | None


def read_run(path: Path) -> RunFiles:
    """Everything that belongs to the run of ``path``: a log, a ``trainer_log.jsonl``, a folder.

    Raises:
        LlamaherdError: ``explain_nothing`` with ``path`` and ``why``.
    """
    try:
        found = path.stat()
        if stat.S_ISDIR(found.st_mode):
            return _folder(path.parent if _is_checkpoint(path) else path)
        if not stat.S_ISREG(found.st_mode):
            raise LlamaherdError("explain_nothing", path=str(path), why="not_a_file")
        if path.name in _OF_OUTPUT:
            return _folder(path.parent)
        return _trainer_log(path) if _is_trainer_log(path) else _log(path)
    except FileNotFoundError as error:
        raise LlamaherdError("explain_nothing", path=str(path), why="missing") from error
    except (OSError, ValueError) as error:
        raise LlamaherdError("explain_nothing", path=str(path), why="unreadable") from error


def _folder(path: Path) -> RunFiles:
    """An output folder. Its ``trainer_log.jsonl`` is the run's own; a log in it tells more."""
    output = read_output(path)
    written = path / TRAINER_LOG
    runs = _segments(written) if written.exists() else ()
    found = next((path / name for name in (*_LOGS, *_other_logs(path)) if (path / name).is_file()), None)
    if found is None and not runs and not _has_results(output):
        raise LlamaherdError("explain_nothing", path=str(path), why="nothing")
    log = read_log(found) if found is not None else RunLog()
    log = _joined(log, runs[-1]) if runs else log
    times = [_changed_at(one) for one in (found, written) if one is not None]
    times += [output.trainer_state_at, *(one.saved_at for one in output.checkpoints)]
    return RunFiles(
        path=path,
        source="output",
        log=_with_history(log, output),
        earlier=tuple(_of_entries(entries) for entries in runs[:-1]),
        output=output,
        config=_config(path),
        changed_at=max((one for one in times if one is not None), default=None),
    )


def _with_history(log: RunLog, output: OutputFacts) -> RunLog:
    """The log with the records of the newest ``trainer_state.json``, which may be all that there is."""
    folders = [output.path, *(one.path for one in reversed(output.checkpoints) if one.complete)]
    history = next((found for one in folders[:2] if (found := read_history(Path(one) / _STATE))), None)
    if history is None:
        return log
    if log.plan.total_steps is None and log.step is None:
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


def _trainer_log(path: Path) -> RunFiles:
    runs = _segments(path)
    if not runs:
        raise LlamaherdError("explain_nothing", path=str(path), why="nothing")
    last, *earlier = (_of_entries(entries) for entries in reversed(runs))
    output = read_output(path.parent) if path.name == TRAINER_LOG else None
    return RunFiles(
        path=path,
        source="trainer_log",
        log=last,
        earlier=tuple(reversed(earlier)),
        output=output,
        config=_config(path.parent),
        changed_at=_changed_at(path),
    )


def _log(path: Path) -> RunFiles:
    log = read_log(path)
    if path.suffix.lower() in _NO_LOGS or (_is_binary(path) and _says_nothing(log)):
        raise LlamaherdError("explain_nothing", path=str(path), why="nothing")
    folder = path.parent if path.name in _LOGS[::2] else _output_of(log, path.parent)
    output = read_output(folder) if folder is not None else None
    if output is not None and not output.exists:
        output = None
    if folder is not None and (folder / TRAINER_LOG).is_file():
        runs = _segments(folder / TRAINER_LOG)
        log = _joined(log, runs[-1]) if runs else log
    return RunFiles(
        path=path,
        source="log",
        log=log,
        earlier=(),
        output=output,
        config=_config(path.parent) or (_config(folder) if folder is not None else None),
        changed_at=_changed_at(path),
    )


def files_of_job(folder: Path, output_dir: str | None) -> RunFiles:
    """The files of a job folder, with the output folder that its record names."""
    log_file, config = folder / _JOB_LOG, folder / _CONFIGS[-1]
    try:
        log = read_log(log_file)
    except OSError:
        log = RunLog()
    written = Path(output_dir) / TRAINER_LOG if output_dir else None
    runs = _segments(written) if written is not None and written.is_file() else ()
    return RunFiles(
        path=folder,
        source="job",
        log=with_trainer_log(log, runs[-1]) if runs else log,
        earlier=(),
        output=read_output(Path(output_dir)) if output_dir else None,
        config=_config(folder) if config.is_file() else None,
        changed_at=_changed_at(log_file),
    )


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


def _joined(log: RunLog, entries: Sequence[LogEntry]) -> RunLog:
    if log.plan.total_steps is None and log.step is None:
        told = _of_entries(entries)
        return replace(
            told,
            failure=log.failure,
            interrupted=log.interrupted,
            warnings=log.warnings,
            told=log.told,
            began_at=log.began_at,
        )
    return with_trainer_log(log, entries)


def _of_entries(entries: Sequence[LogEntry]) -> RunLog:
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


def _segments(path: Path) -> tuple[tuple[LogEntry, ...], ...]:
    return segments(read_trainer_log(path)[0])


def _is_trainer_log(path: Path) -> bool:
    if path.name == TRAINER_LOG:
        return True
    with path.open("rb") as file:
        first = file.read(_SNIFFED).lstrip().partition(b"\n")[0]
    if not first.startswith(b"{"):
        return False
    try:
        line = json.loads(first)
    except (ValueError, RecursionError):
        return path.suffix == ".jsonl" and b'"current_steps"' in first
    return isinstance(line, dict) and "current_steps" in line


def _is_binary(path: Path) -> bool:
    with path.open("rb") as file:
        return b"\0" in file.read(_SNIFFED)


def _says_nothing(log: RunLog) -> bool:
    known = (log.began_at, log.step, log.plan.total_steps, log.failure, log.bar)
    return all(one is None for one in known) and not log.metrics and log.seen[1:] in ((), ("import",))


def _is_checkpoint(path: Path) -> bool:
    return path.name.startswith("checkpoint-") and (path / _STATE).exists()


def _output_of(log: RunLog, folder: Path) -> Path | None:
    """The output folder that the log names, as seen from the log's folder."""
    named = log.told.output_dir
    if not named or "\0" in named:
        return None
    found = folder / named
    return found if found.is_dir() else None


def _other_logs(folder: Path) -> Iterator[str]:
    with os.scandir(folder) as entries:
        names = [entry.name for entry, _ in zip(entries, range(1000), strict=False)]
    yield from sorted(name for name in names if name.endswith(".log"))


def _has_results(output: OutputFacts) -> bool:
    return bool(output.checkpoints) or output.global_step is not None or output.weights_at is not None


def _config(folder: Path) -> TrainingConfig | None:
    for name in _CONFIGS:
        if (folder / name).is_file():
            try:
                config = load_config(folder / name)
            except LlamaherdError:
                continue
            if "output_dir" in config.values or "stage" in config.values:
                return config
    return None


def deepspeed_settings(config: TrainingConfig, cwd: Path | None) -> Mapping[SettingName, str | int | None]:
    """What the DeepSpeed file of a run asks for, read as it is now."""
    written = config.values.get("deepspeed")
    if isinstance(written, Mapping):
        found = deepspeed_of({str(key): value for key, value in written.items()})
    elif isinstance(written, str) and written and "\0" not in written:
        found = read_deepspeed((cwd or config.path.parent) / written)
        if found.problem is not None:
            return {"deepspeed": written}
    else:
        return {}
    offloaded = [
        name for name, on in (("optimizer", found.offload_optimizer), ("param", found.offload_param)) if on
    ]
    return {
        "deepspeed": found.path,
        "zero_stage": found.stage,
        "offload": "+".join(offloaded) or None,
        **_fixed(found.fixed),
    }


def _fixed(fixed: Mapping[str, int]) -> Mapping[SettingName, int]:
    names: tuple[tuple[SettingName, str], ...] = (
        ("batch_per_device", "train_micro_batch_size_per_gpu"),
        ("accumulation", "gradient_accumulation_steps"),
        ("effective_batch", "train_batch_size"),
    )
    return {name: fixed[key] for name, key in names if key in fixed}


def _changed_at(path: Path) -> float | None:
    try:
        return path.stat().st_mtime
    except OSError:
        return None
