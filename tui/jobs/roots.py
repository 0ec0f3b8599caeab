"""Where job folders lie."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from tui.facts.errors import LlamaherdError

_DATA_DISK = Path("/root/autodl-tmp")
"""The rented instance's local data disk, which outlives a reset of the system disk."""


def jobs_folder(root: Path) -> Path:
    """Where the job folders of a state root lie."""
    return root / "jobs"


def state_roots(environ: Mapping[str, str]) -> tuple[Path, ...]:
    """Where job folders may lie, the first for new ones; those that exist are read."""
    home = environ.get("HOME") or "/root"
    state = environ.get("XDG_STATE_HOME") or ""
    roots = [Path(state if state.startswith("/") else f"{home}/.local/state", "llamaherd")]
    if _is_own_disk(_DATA_DISK):
        roots.insert(0, _DATA_DISK / ".llamaherd")
    if environ.get("LLAMAHERD_HOME"):
        roots.insert(0, Path(environ["LLAMAHERD_HOME"]).absolute())
    return tuple(dict.fromkeys(roots))


def writing_root(roots: Iterable[Path]) -> Path:
    """The first root that can be written, made if need be.

    Raises:
        LlamaherdError: ``state_not_writable`` with the first ``path`` and its ``reason``.
    """
    first: tuple[Path, OSError] | None = None
    for root in roots:
        try:
            jobs_folder(root).mkdir(mode=0o700, parents=True, exist_ok=True)
            probe = jobs_folder(root) / f".probe-{os.getpid()}"
            probe.mkdir(mode=0o700)
            probe.rmdir()
        except OSError as error:
            first = first or (root, error)
        else:
            return root
    path, reason = first if first is not None else (Path(), "no state folder")
    raise LlamaherdError("state_not_writable", path=str(path), reason=str(reason))


def _is_own_disk(path: Path) -> bool:
    try:
        return path.stat().st_dev != Path("/").stat().st_dev
    except OSError:
        return False
