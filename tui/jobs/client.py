"""What the front ends do with jobs: start, list, find, ask to stop, wait.

Nothing here signals a process, and nothing is kept in memory: a job is its folder, and whether it has a
keeper is told by the folder's lock. A client may die at any point.
"""

import errno
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path

from tui.facts.errors import EXIT_USAGE, LlamaherdError
from tui.facts.job import Graces, JobKind, JobRecord, RequestKind
from tui.facts.secrets import mask_arguments, mask_environment
from tui.jobs.folder import JobFolder, create_folder, new_nonce
from tui.jobs.roots import jobs_folder
from tui.jobs.strays import TOKEN_VARIABLE, token

JOB_FOLDER = "{llamaherd-job-folder}"
"""Stands for the path of the job's folder in a command's arguments and in added variables."""

START_DEADLINE = 10.0
_POLL = 0.1
_LOG_TAIL = 2000
_PACKAGE_ROOT = Path(__file__).parents[2]

_BOOT = (
    "import os, sys\n"
    "if os.fork(): os._exit(0)\n"
    "sys.path += sys.argv[1].split(os.pathsep)\n"
    "from importlib import import_module\n"
    "sys.exit(import_module(sys.argv[2]).main(sys.argv[3:]))\n"
)
"""The first process ends at once: what it leaves is nobody's child, so no caller has to reap it.

The package comes after the standard library on the path, and nothing else is on it: neither the
caller's folder nor anything that lies beside the package can stand in for a standard module.
"""


@dataclass(frozen=True, slots=True)
class JobSpec:
    """A job to start.

    ``environ`` is the complete environment to run in: it is handed to the keeper and stored nowhere.
    ``environment`` is what this program adds to it; that and ``command`` are recorded with their secrets
    masked. ``JOB_FOLDER`` in ``command`` and in values of ``environment`` becomes the folder's path.
    ``name`` becomes part of the id.
    """

    kind: JobKind
    command: tuple[str, ...]
    cwd: str
    environ: Mapping[str, str] = field(repr=False)
    environment: Mapping[str, str] = field(default_factory=dict)
    name: str = ""
    config: str | None = None
    config_text: str | None = field(default=None, repr=False)
    output_dir: str | None = None
    gpus: tuple[str, ...] = ()
    graces: Graces = field(default_factory=Graces)


@dataclass(frozen=True, slots=True)
class FoundJob:
    """A job folder and what its record says."""

    folder: JobFolder
    record: JobRecord


@dataclass(frozen=True, slots=True)
class UnreadableJob:
    """A job folder whose record cannot be used, and why."""

    path: Path
    reason: str


def start_job(spec: JobSpec, root: Path) -> FoundJob:
    """Start a job below a state root; returns once its command runs, or could not (``record.error``).

    Raises:
        LlamaherdError: ``command_empty``; ``state_not_writable``; ``keeper_failed`` (with ``path`` and
            ``reason``): then nothing was started and nothing will be.
    """
    if not spec.command:
        raise LlamaherdError("command_empty", exit_code=EXIT_USAGE)
    placed, found = _create(spec, root)
    _start_detached("tui.jobs.sampler", [str(found.folder.path)], found.folder)
    deadline = time.monotonic() + START_DEADLINE
    _start_detached("tui.jobs.keeper", [str(found.folder.path)], found.folder, _order(placed), START_DEADLINE)
    while (record := found.folder.read_record()).state == "starting":
        if time.monotonic() > deadline or not found.folder.is_kept():
            record = found.folder.read_record()
            break
        time.sleep(0.02)
    if record.state == "starting":
        # A keeper that is merely late must not start it after all.
        found.folder.request("stop")
        path = found.folder.keeper_log
        raise LlamaherdError("keeper_failed", path=str(path), reason=_tail(path))
    return FoundJob(found.folder, record)


def list_jobs(roots: Iterable[Path]) -> tuple[FoundJob | UnreadableJob, ...]:
    """All jobs of all roots, the oldest first; unreadable ones last."""
    found: list[FoundJob] = []
    unreadable: list[UnreadableJob] = []
    for path in _folders(roots):
        try:
            folder = JobFolder(path)
            found.append(FoundJob(folder, folder.read_record()))
        except LlamaherdError as error:
            unreadable.append(UnreadableJob(path, str(error.values["reason"])))
    found.sort(key=lambda job: job.record.created_at)
    return (*found, *unreadable)


def find_job(roots: Iterable[Path], prefix: str) -> FoundJob:
    """The job whose id is, or alone begins with, ``prefix``.

    Raises:
        LlamaherdError: ``job_unknown``, ``job_ambiguous`` (with ``matches``), ``job_unreadable``.
    """
    paths = [path for path in _folders(roots) if prefix and path.name.startswith(prefix)]
    paths = [path for path in paths if path.name == prefix] or paths
    if not paths:
        raise LlamaherdError("job_unknown", exit_code=EXIT_USAGE, job=prefix)
    if len(paths) > 1:
        matches = ", ".join(path.name for path in paths[:5])
        raise LlamaherdError("job_ambiguous", exit_code=EXIT_USAGE, job=prefix, matches=matches)
    folder = JobFolder(paths[0])
    return FoundJob(folder, folder.read_record())


def is_over(record: JobRecord) -> bool:
    """Whether nothing of this job can run any more, as far as its record says."""
    return record.state in ("ended", "lost")


def needs_keeper(folder: JobFolder, record: JobRecord) -> bool:
    """Whether the keeper of a job that is not over is gone; one that is just starting gets its time."""
    is_fresh = record.state == "starting" and time.time() < record.created_at + 2 * START_DEADLINE
    return not (is_over(record) or is_fresh or folder.is_kept())


def ensure_keeper(folder: JobFolder) -> JobRecord:
    """See that a job that is not over has a keeper: if its own died, another adopts it.

    Raises:
        LlamaherdError: ``job_unreadable``; ``keeper_failed``.
    """
    record = folder.read_record()
    if not needs_keeper(folder, record):
        return record
    # Somebody else may adopt it at the same moment: the lock lets one of the two in.
    _start_detached("tui.jobs.keeper", ["--adopt", str(folder.path)], folder, b"", START_DEADLINE)
    record = folder.read_record()
    if not is_over(record) and not folder.is_kept():
        raise LlamaherdError("keeper_failed", path=str(folder.keeper_log), reason=_tail(folder.keeper_log))
    return record


def request_stop(folder: JobFolder, kind: RequestKind) -> bool:
    """Ask for a stop, and see that somebody is there to do it; false when it was asked for before.

    Raises:
        LlamaherdError: ``job_ended``; ``state_not_writable``; as ``ensure_keeper``.
    """
    record = folder.read_record()
    if is_over(record):
        raise LlamaherdError("job_ended", job=record.id)
    try:
        is_new = folder.request(kind)
    except OSError as error:
        raise LlamaherdError("state_not_writable", path=str(folder.path), reason=str(error)) from error
    ensure_keeper(folder)
    return is_new


def wait_stopped(
    folder: JobFolder, on_change: Callable[[JobRecord], None], deadline: float | None = None
) -> JobRecord:
    """Wait until the job is over or its stop is stuck; a keeper that dies meanwhile is replaced.

    Args:
        folder: the job.
        on_change: called with every new record, from this thread.
        deadline: monotonic seconds at which to return what there is; ``None``: none.
    """
    before: JobRecord | None = None
    while True:
        record = ensure_keeper(folder)
        if record != before:
            on_change(record)
            before = record
        if is_over(record) or record.state == "stuck":
            return record
        if deadline is not None and time.monotonic() >= deadline:
            return record
        time.sleep(_POLL)


def _order(spec: JobSpec) -> bytes:
    """What the keeper is to run and in which environment, secrets and all: it is stored nowhere.

    The command is one line of JSON, which any argument survives; then ``KEY=value``, separated by NUL.
    """
    environ = {**spec.environ, **spec.environment}
    entries = (os.fsencode(f"{name}={value}") for name, value in environ.items())
    return json.dumps(spec.command).encode("ascii") + b"\n" + b"\0".join(entries)


def _create(spec: JobSpec, root: Path) -> tuple[JobSpec, FoundJob]:
    """A folder with its record, and the job as it is to run there."""
    created_at, nonce = time.time(), new_nonce()
    stem = spec.name or Path(spec.config or spec.command[0]).stem
    folder = create_folder(jobs_folder(root), stem, created_at, nonce)
    where = str(folder.path)
    job_id = folder.path.name
    environment = {name: value.replace(JOB_FOLDER, where) for name, value in spec.environment.items()}
    spec = replace(
        spec,
        command=tuple(word.replace(JOB_FOLDER, where) for word in spec.command),
        environment=environment | {TOKEN_VARIABLE: token(job_id, nonce)},
    )
    text = None if spec.config_text is None else spec.config_text.encode("utf-8", "surrogateescape")
    record = JobRecord(
        id=job_id,
        nonce=nonce,
        kind=spec.kind,
        command=mask_arguments(spec.command),
        cwd=spec.cwd,
        environment=mask_environment(spec.environment),
        config=spec.config,
        config_hash=None if text is None else hashlib.sha256(text).hexdigest(),
        output_dir=spec.output_dir,
        gpus=spec.gpus,
        created_at=created_at,
        graces=spec.graces,
    )
    try:
        if text is not None:
            descriptor = os.open(folder.config, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(text)
        folder.write_record(record)
        if not folder.has_reserve():
            # Without it a later state could not be written, and the job would be watched in vain.
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    except OSError as error:
        shutil.rmtree(folder.path, ignore_errors=True)
        raise LlamaherdError("state_not_writable", path=where, reason=str(error)) from error
    return spec, FoundJob(folder, record)


def _start_detached(
    module: str, arguments: list[str], folder: JobFolder, order: bytes | None = None, seconds: float = 0.0
) -> None:
    """Run ``module.main(arguments)`` as nobody's child, in a session of its own, away from the terminal.

    With ``order`` it is written to the program's standard input, and the call waits until the program
    closes its standard output, ``seconds`` at most.
    """
    paths = os.pathsep.join(map(str, _import_paths()))
    command = [sys.executable, "-I", "-S", "-c", _BOOT, paths, module, *arguments]
    pipe = subprocess.DEVNULL if order is None else subprocess.PIPE
    own = {name: value for name, value in os.environ.items() if name != TOKEN_VARIABLE}
    try:
        with folder.keeper_log.open("ab") as log:
            process = subprocess.Popen(
                command, stdin=pipe, stdout=pipe, stderr=log, cwd="/", env=own, start_new_session=True
            )
    except OSError as error:
        raise LlamaherdError("keeper_failed", path=str(folder.keeper_log), reason=str(error)) from error
    with suppress(subprocess.TimeoutExpired):
        process.communicate(order, timeout=seconds or None)
        return
    for stream in filter(None, (process.stdin, process.stdout)):
        with suppress(OSError):
            stream.close()
    process.wait()


def _import_paths() -> list[Path]:
    """Where the package is, and for the sampler where NVML's binding is."""
    binding = find_spec("pynvml")
    beside = [] if binding is None or binding.origin is None else [Path(binding.origin).parent]
    return list(dict.fromkeys([_PACKAGE_ROOT, *beside]))


def _folders(roots: Iterable[Path]) -> list[Path]:
    found: list[Path] = []
    for root in roots:
        with suppress(OSError):
            paths = (path for path in jobs_folder(root).iterdir() if not path.name.startswith("."))
            found.extend(path for path in paths if path.is_dir())
    return sorted(found)


def _tail(path: Path) -> str:
    try:
        return path.read_bytes()[-_LOG_TAIL:].decode("utf-8", "replace").strip()
    except OSError:
        return ""
