"""What a checkpoint folder holds beside its state: how much, and whether something is missing.

DeepSpeed writes its shards to ``global_stepN`` and names that folder in ``latest`` afterwards; FSDP writes a
``.metadata`` file into ``pytorch_model_fsdp_0`` and ``optimizer_0`` when every rank has written its part. A
disk that is full leaves empty weight files. transformers marks an unfinished just-in-time checkpoint.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

_FILES = 5_000
_DEPTH = 2
_SENTINEL = "checkpoint-is-incomplete.txt"
_LATEST = "latest"
_DEEPSPEED = re.compile(r"global_step\d{1,12}")
_FSDP = re.compile(r"(?:pytorch_model_fsdp|optimizer)_\d{1,4}")
_METADATA = ".metadata"
_WEIGHTS = re.compile(r".{1,200}\.(?:safetensors|bin|pt|pth|distcp)")


@dataclass(frozen=True, slots=True)
class CheckpointContents:
    """``whole``: nothing that its layout asks for is missing; its state file is not looked at here.

    ``size`` in bytes, ``None`` when the folder cannot be read or holds too many files.
    """

    whole: bool
    size: int | None


def checkpoint_contents(folder: Path, saved_at: float | None) -> CheckpointContents:
    """Look into a checkpoint; once its state file is there (``saved_at``) and all is whole, one look is
    enough. Other ranks may write their parts a little later than that file.
    """
    known = _remembered(str(folder), saved_at) if saved_at is not None else None
    return known if known is not None and known.whole else _contents(str(folder))


@lru_cache(maxsize=512)
def _remembered(folder: str, saved_at: float) -> CheckpointContents:
    return _contents(folder)


def _contents(folder: str) -> CheckpointContents:
    sizes: dict[str, int] = {}
    try:
        for name, size in _files(folder, _DEPTH):
            sizes[name] = size
            if len(sizes) > _FILES:
                return CheckpointContents(whole=True, size=None)
    except OSError:
        return CheckpointContents(whole=False, size=None)
    return CheckpointContents(_is_whole(Path(folder), sizes), sum(sizes.values()))


def _files(folder: str, depth: int) -> Iterator[tuple[str, int]]:
    """Path below ``folder`` and size of every regular file, links not followed."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                if depth:
                    yield from (
                        (f"{entry.name}/{name}", size) for name, size in _files(entry.path, depth - 1)
                    )
            elif entry.is_file(follow_symlinks=False):
                yield entry.name, entry.stat(follow_symlinks=False).st_size


def _is_whole(folder: Path, sizes: dict[str, int]) -> bool:
    if _SENTINEL in sizes or any(not size and _WEIGHTS.fullmatch(name) for name, size in sizes.items()):
        return False
    folders = {name.partition("/")[0] for name in sizes if "/" in name}
    if any(_DEEPSPEED.fullmatch(name) for name in folders) and _latest(folder) not in folders:
        return False
    return all(f"{name}/{_METADATA}" in sizes for name in folders if _FSDP.fullmatch(name))


def _latest(folder: Path) -> str | None:
    try:
        with (folder / _LATEST).open("rb") as file:
            return file.read(100).decode(errors="replace").strip()
    except OSError:
        return None
