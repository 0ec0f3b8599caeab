"""What lies in an output folder: checkpoints, final weights, results, and how recent they are.

The Trainer writes ``trainer_state.json`` last of a checkpoint, so a valid one proves that the checkpoint
is complete, whatever its layout (LoRA, full, DeepSpeed, FSDP); a just-in-time checkpoint also carries a
sentinel file until it is complete. A sharded layout shows more (``checkpoint.py``). Nothing here follows
the contents of a file of any other kind.
"""

import errno
import json
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from tui.facts.training import Checkpoint, OutputFacts
from tui.facts.unknown import UnknownReason
from tui.llamafactory.checkpoint import checkpoint_contents

_ENTRIES = 20_000
_CHECKPOINTS = 2_000
_STATE_LIMIT = 64 << 20
"""Bytes of a ``trainer_state.json``: it holds the whole log history of the run."""

_CHECKPOINT = re.compile(r"checkpoint-(\d{1,12})")
_WEIGHTS = re.compile(
    r"adapter_model\.(?:safetensors|bin)|(?:model|pytorch_model)[\w.-]{0,80}\.(?:safetensors|bin)"
)
_STATE = "trainer_state.json"


@dataclass(frozen=True, slots=True)
class _State:
    global_step: int
    max_steps: int | None


def read_output(path: Path) -> OutputFacts:
    """Look at an output folder. Never raises for what is in it: what cannot be read is unknown."""
    try:
        with os.scandir(path) as entries:
            names = {entry.name for entry, _ in zip(entries, range(_ENTRIES), strict=False)}
    except OSError as error:
        return OutputFacts(str(path), exists=False, unknown={"checkpoints": _reason(error)})
    state = _read_state(path / _STATE)
    facts = OutputFacts(
        path=str(path),
        exists=True,
        checkpoints=tuple(_checkpoints(path, names)),
        all_results_at=_changed_at(path / "all_results.json"),
        eval_results_at=_changed_at(path / "eval_results.json"),
        trainer_state_at=_changed_at(path / _STATE),
        weights_at=max(filter(None, (_changed_at(path / n) for n in names if _is_weights(n))), default=None),
        trainer_log_at=_changed_at(path / "trainer_log.jsonl"),
    )
    if isinstance(state, _State):
        return replace(facts, global_step=state.global_step, max_steps=state.max_steps)
    return replace(facts, unknown={"global_step": state, "max_steps": state})


def _checkpoints(path: Path, names: set[str]) -> Iterator[Checkpoint]:
    found = sorted((int(match[1]), name) for name in names if (match := _CHECKPOINT.fullmatch(name)))
    for step, name in found[-_CHECKPOINTS:]:
        folder = path / name
        state = _read_state(folder / _STATE)
        saved_at = _changed_at(folder / _STATE)
        contents = checkpoint_contents(folder, saved_at)
        complete = isinstance(state, _State) and contents.whole
        yield Checkpoint(str(folder), step, complete, saved_at, contents.size)


def _is_weights(name: str) -> bool:
    return _WEIGHTS.fullmatch(name) is not None


def _changed_at(path: Path) -> float | None:
    found = _regular_file(path)
    return found.st_mtime if isinstance(found, os.stat_result) else None


def _regular_file(path: Path) -> os.stat_result | UnknownReason:
    try:
        found = path.stat()
    except OSError as error:
        return _reason(error)
    return found if stat.S_ISREG(found.st_mode) else "unreadable_file"


def _read_state(path: Path) -> _State | UnknownReason:
    found = _regular_file(path)
    if not isinstance(found, os.stat_result):
        return found
    return _state_of(str(path), found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


@lru_cache(maxsize=512)
def _state_of(path: str, device: int, inode: int, size: int, changed: int) -> _State | UnknownReason:
    """One version of a file is parsed once: they are large, and looked at every second."""
    if not 0 < size <= _STATE_LIMIT:
        return "unreadable_file"
    try:
        with Path(path).open("rb") as file:
            state = json.loads(file.read(_STATE_LIMIT))
        step, total = state["global_step"], state.get("max_steps")
    except OSError as error:
        return _reason(error)
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return "unreadable_file"
    if not isinstance(step, int) or not isinstance(total, int | None):
        return "unreadable_file"
    return _State(step, total)


def _reason(error: OSError) -> UnknownReason:
    if error.errno in {errno.ENOENT, errno.ENOTDIR}:
        return "missing_file"
    return "no_permission" if error.errno in {errno.EACCES, errno.EPERM} else "unreadable_file"
