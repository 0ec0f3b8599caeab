"""Removes the folders of jobs that are long over. What the training wrote elsewhere is not touched."""

import os
import shutil
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tui.facts.errors import LlamaherdError
from tui.jobs.client import FoundJob, is_over, list_jobs


@dataclass(frozen=True, slots=True)
class OldFolder:
    """A folder that may go. ``size`` is bytes on the disk, ``over_since`` epoch seconds."""

    job: FoundJob
    size: int
    over_since: float


def find_old(roots: Iterable[Path], before: float) -> tuple[OldFolder, ...]:
    """The jobs that were over before ``before`` (epoch seconds), the oldest first.

    A lost job has no end on record: then its last record's time counts. What cannot be read is left.
    """
    found = (job for job in list_jobs(roots) if isinstance(job, FoundJob) and is_over(job.record))
    old = (OldFolder(job, _size(job.folder.path), _over_since(job)) for job in found)
    return tuple(folder for folder in old if folder.over_since < before)


def remove(old: OldFolder) -> bool:
    """Remove one folder; false when it is not over after all, or somebody keeps it.

    Raises:
        LlamaherdError: ``state_not_writable``.
    """
    folder = old.job.folder
    lock = folder.lock()
    if lock is None:
        return False
    try:
        if not is_over(folder.read_record()):
            return False
        # Out of the lists at once, whatever becomes of the rest.
        doomed = folder.path.with_name(f".gone-{folder.path.name}")
        folder.path.rename(doomed)
        shutil.rmtree(doomed)
    except OSError as error:
        raise LlamaherdError("state_not_writable", path=str(folder.path), reason=str(error)) from error
    finally:
        os.close(lock)
    return True


def _over_since(job: FoundJob) -> float:
    if job.record.ended_at is not None:
        return job.record.ended_at
    with suppress(OSError):
        return job.folder.record.stat().st_mtime
    return job.record.created_at


def _size(path: Path) -> int:
    size = 0
    for folder, _, names in os.walk(path):
        for name in names:
            with suppress(OSError):
                size += os.lstat(f"{folder}/{name}").st_blocks * 512
    return size
