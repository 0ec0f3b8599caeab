"""Stops a run that this program did not start: it gets a job folder, and a keeper that comes to end it.

So a foreign stop is what any other is: it walks the same ladder, outlives the terminal that asked for
it, can be forced by asking again, is looked after by one keeper only, and leaves its record.
"""

import time
from dataclasses import dataclass, field, replace
from pathlib import Path

from tui.facts.errors import LlamaherdError
from tui.facts.job import Graces, Identity, JobKind, JobRecord, Member, RequestKind
from tui.jobs.client import FoundJob, ensure_keeper
from tui.jobs.folder import create_folder, new_nonce
from tui.jobs.roots import jobs_folder


@dataclass(frozen=True, slots=True)
class ForeignRun:
    """What a keeper has to know of it. ``members`` are all its processes, with their roles; ``main`` is
    one of them. ``name`` becomes part of the job's id; ``started_at`` is epoch seconds.
    """

    kind: JobKind
    name: str
    main: Identity
    members: tuple[Member, ...]
    command: tuple[str, ...] = ()
    cwd: str = "/"
    config: str | None = None
    output_dir: str | None = None
    started_at: float | None = None
    gpus: tuple[str, ...] = ()
    graces: Graces = field(default_factory=Graces)


def stop_foreign(run: ForeignRun, kind: RequestKind, root: Path) -> FoundJob:
    """Have it stopped; the folder below ``root`` that tells how far the stop is.

    Raises:
        LlamaherdError: ``state_not_writable``; ``keeper_failed``: then nobody was signalled.
    """
    created_at, nonce = time.time(), new_nonce()
    folder = create_folder(jobs_folder(root), run.name, created_at, nonce)
    record = JobRecord(
        id=folder.path.name,
        nonce=nonce,
        kind=run.kind,
        command=run.command,
        cwd=run.cwd,
        environment={},
        config=run.config,
        config_hash=None,
        output_dir=run.output_dir,
        gpus=run.gpus,
        created_at=created_at,
        state="running",
        main=run.main,
        started_at=run.started_at,
        members=run.members,
        graces=run.graces,
        foreign=True,
    )
    try:
        folder.write_record(record)
        folder.request(kind)
    except OSError as error:
        raise LlamaherdError("state_not_writable", path=str(folder.path), reason=str(error)) from error
    try:
        return FoundJob(folder, ensure_keeper(folder))
    except LlamaherdError:
        # Nobody came: nobody may come later and do it after all.
        folder.write_record(replace(record, state="lost", members=()))
        raise
