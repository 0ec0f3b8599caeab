"""The folder of one job: its layout, and who may write what.

``job.json`` is written by the holder of the lock alone (by the creator before there is one); requests
by anybody; ``config.yaml`` once. ``train.log`` belongs to the job's processes.
"""

import errno
import fcntl
import json
import os
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from tui.facts.errors import LlamaherdError
from tui.facts.job import JobRecord, RequestKind
from tui.jobs.codec import MalformedError, record_from_json, record_to_json

RECORD_LIMIT = 4 << 20
"""Bytes of ``job.json`` read at most."""

RESERVE = 64 << 10
"""Bytes kept aside so that the last state of a job can be written to a full disk."""

REQUEST_KINDS: frozenset[RequestKind] = frozenset(get_args(RequestKind))
_FULL = (errno.ENOSPC, errno.EDQUOT)
_STEM = re.compile(r"[^A-Za-z0-9_.-]+")


@dataclass(frozen=True, slots=True)
class JobFolder:
    """Paths below one job folder and what may be done with them."""

    path: Path

    @property
    def record(self) -> Path:
        """``job.json``: the facts."""
        return self.path / "job.json"

    @property
    def config(self) -> Path:
        """The configuration as it was resolved at the start."""
        return self.path / "config.yaml"

    @property
    def log(self) -> Path:
        """What the job printed."""
        return self.path / "train.log"

    @property
    def events(self) -> Path:
        """One JSON object a line: what the keeper saw and did, in order."""
        return self.path / "events.jsonl"

    @property
    def keeper_log(self) -> Path:
        """What the keeper or the sampler died of, if one did."""
        return self.path / "keeper.log"

    @property
    def _requests(self) -> Path:
        return self.path / "requests"

    @property
    def _reserve(self) -> Path:
        return self.path / "reserve"

    def read_record(self) -> JobRecord:
        """The newest whole record.

        Raises:
            LlamaherdError: ``job_unreadable`` with ``path`` and ``reason``.
        """
        try:
            with self.record.open("rb") as file:
                data = file.read(RECORD_LIMIT + 1)
            if len(data) > RECORD_LIMIT:
                raise MalformedError(f"larger than {RECORD_LIMIT} bytes")
            return record_from_json(data)
        except (OSError, MalformedError) as error:
            raise LlamaherdError("job_unreadable", path=str(self.path), reason=str(error)) from error

    def write_record(self, record: JobRecord) -> None:
        """Replace the record: after this returns, it survives a power cut; a reader never sees half.

        On a full disk the reserve is given up for it.

        Raises:
            OSError: nothing was changed.
        """
        data = record_to_json(record)
        try:
            self._replace(data)
        except OSError as error:
            if error.errno not in _FULL:
                raise
            self._reserve.unlink(missing_ok=True)
            self._replace(data)
        self._keep_reserve()

    def append_events(self, events: Iterable[Mapping[str, object]]) -> None:
        """Add lines to the events; all of them or, with an error, none.

        Raises:
            OSError: nothing was added.
        """
        lines = "".join(json.dumps(event, separators=(",", ":")) + "\n" for event in events).encode("ascii")
        if not lines:
            return
        descriptor = os.open(self.events, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            before = os.fstat(descriptor).st_size
            if os.write(descriptor, lines) < len(lines):
                os.ftruncate(descriptor, before)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.events))
        finally:
            os.close(descriptor)

    def request(self, kind: RequestKind) -> bool:
        """Ask the keeper for something; false when somebody has asked before."""
        try:
            os.close(os.open(self._requests / kind, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        except FileExistsError:
            return False
        return True

    def requests(self) -> frozenset[RequestKind]:
        """What is asked for."""
        try:
            names = {path.name for path in self._requests.iterdir()}
        except OSError:
            return frozenset()
        return frozenset(kind for kind in REQUEST_KINDS if kind in names)

    def withdraw(self, kinds: Iterable[RequestKind]) -> None:
        """Take requests back."""
        for kind in kinds:
            (self._requests / kind).unlink(missing_ok=True)

    def lock(self, patience: float = 0.0) -> int | None:
        """Become the keeper: the descriptor whose life is the lock's, or ``None`` if there is a keeper.

        ``patience`` outlasts those who only look, for an instant, whether the lock is free.
        """
        descriptor = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        deadline = time.monotonic() + patience
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    os.close(descriptor)
                    return None
                time.sleep(0.02)
            else:
                return descriptor

    def is_kept(self) -> bool:
        """Whether a keeper is alive. No PID is asked: a lock cannot be inherited or reused by chance."""
        try:
            descriptor = os.open(self.path / "lock", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        else:
            return False
        finally:
            os.close(descriptor)

    def has_reserve(self) -> bool:
        """Whether room for the last state is set aside."""
        return self._reserve.exists()

    def release_reserve(self) -> None:
        """The last state is written: nothing needs the reserve any more."""
        self._reserve.unlink(missing_ok=True)

    def _replace(self, data: bytes) -> None:
        temporary = self.path / "job.json.tmp"
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            written = 0
            while written < len(data):
                written += os.write(descriptor, data[written:])
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        temporary.rename(self.record)
        folder = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def _keep_reserve(self) -> None:
        if self._reserve.exists():
            return
        try:
            descriptor = os.open(self._reserve, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError:
            return
        try:
            os.posix_fallocate(descriptor, 0, RESERVE)
        except OSError:
            self._reserve.unlink(missing_ok=True)
        finally:
            os.close(descriptor)


def create_folder(parent: Path, stem: str, created_at: float, nonce: str) -> JobFolder:
    """A new folder in ``parent``, named by time, configuration and a piece of the nonce.

    Raises:
        LlamaherdError: ``state_not_writable`` with ``path`` and ``reason``.
    """
    clock = time.strftime("%Y%m%d-%H%M%S", time.localtime(created_at))
    words = _STEM.sub("-", stem).strip("-.")[:24] or "job"
    folder = parent / f"{clock}-{words}-{nonce[:4]}"
    try:
        parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.mkdir(mode=0o700)
        (folder / "requests").mkdir(mode=0o700)
    except OSError as error:
        raise LlamaherdError("state_not_writable", path=str(folder), reason=str(error)) from error
    return JobFolder(folder)


def new_nonce() -> str:
    """What tells this job's processes from every other's, in their environment."""
    return os.urandom(8).hex()
