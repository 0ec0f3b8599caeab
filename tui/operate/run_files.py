"""The files of one run, found from any of them and read once."""

import json
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tui.facts.errors import LlamaherdError
from tui.facts.explained import FileKind
from tui.facts.training import OutputFacts, RunLog
from tui.llamafactory.config import TrainingConfig, load_config
from tui.llamafactory.output import read_output
from tui.llamafactory.trainer_log import with_trainer_log
from tui.operate.run_logs import (
    STATE_FILE,
    joined,
    of_entries,
    read_log,
    read_segments,
    says_nothing,
    with_history,
)

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
_SNIFFED = 4096
_NO_LOGS = frozenset({".yaml", ".yml", ".json", ".py", ".safetensors", ".bin", ".pt", ".pth", ".gguf"})


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
    runs = read_segments(written) if written.exists() else ()
    found = next((path / name for name in (*_LOGS, *_other_logs(path)) if (path / name).is_file()), None)
    if found is None and not runs and not _has_results(output):
        raise LlamaherdError("explain_nothing", path=str(path), why="nothing")
    log = read_log(found) if found is not None else RunLog()
    log = joined(log, runs[-1]) if runs else log
    times = [_changed_at(one) for one in (found, written) if one is not None]
    times += [output.trainer_state_at, *(one.saved_at for one in output.checkpoints)]
    return RunFiles(
        path=path,
        source="output",
        log=with_history(log, output),
        earlier=tuple(of_entries(entries) for entries in runs[:-1]),
        output=output,
        config=_config(path),
        changed_at=max((one for one in times if one is not None), default=None),
    )


def _trainer_log(path: Path) -> RunFiles:
    runs = read_segments(path)
    if not runs:
        raise LlamaherdError("explain_nothing", path=str(path), why="nothing")
    last, *earlier = (of_entries(entries) for entries in reversed(runs))
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
    if path.suffix.lower() in _NO_LOGS or (_is_binary(path) and says_nothing(log)):
        raise LlamaherdError("explain_nothing", path=str(path), why="nothing")
    folder = path.parent if path.name in _LOGS[::2] else _output_of(log, path.parent)
    output = read_output(folder) if folder is not None else None
    if output is not None and not output.exists:
        output = None
    if folder is not None and (folder / TRAINER_LOG).is_file():
        runs = read_segments(folder / TRAINER_LOG)
        log = joined(log, runs[-1]) if runs else log
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
    runs = read_segments(written) if written is not None and written.is_file() else ()
    return RunFiles(
        path=folder,
        source="job",
        log=with_trainer_log(log, runs[-1]) if runs else log,
        earlier=(),
        output=read_output(Path(output_dir)) if output_dir else None,
        config=_config(folder) if config.is_file() else None,
        changed_at=_changed_at(log_file),
    )


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


def _is_checkpoint(path: Path) -> bool:
    return path.name.startswith("checkpoint-") and (path / STATE_FILE).exists()


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


def _changed_at(path: Path) -> float | None:
    try:
        return path.stat().st_mtime
    except OSError:
        return None
