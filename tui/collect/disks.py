"""The disks that matter here, and ``/dev/shm``.

Paths that share a device are one disk: instances without a data disk have ``/root/autodl-tmp`` on the
small system disk, and ``/root/autodl-fs`` is a symlink to the network storage. Only ``/`` is asked in
this process; everything else may be a network disk and is asked by ``disk_probe.py``, which can be
left behind when it hangs.
"""

import os
import re
import select
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import IO, cast

import msgspec

from tui.collect import disk_probe
from tui.collect.disk_probe import Answer, probe
from tui.collect.proc import READ_LIMIT, Proc
from tui.facts.machine import Disk, DiskRole, SharedMemory
from tui.facts.unknown import UnknownReason

PLACES: Mapping[str, DiskRole] = {
    "/root/autodl-tmp": "data",
    "/root/autodl-fs": "shared",
    "/autodl-fs/data": "shared",
    "/root/autodl-nas": "shared",
}
"""Where AutoDL mounts its disks; a place that does not exist is not shown."""

PROBE = (sys.executable, "-I", "-S", disk_probe.__file__)

_MAX_PATHS = 32
_MAX_PATH_LENGTH = 4096
_NETWORK_TYPES = ("nfs", "cifs", "smb", "fuse", "ceph", "lustre", "9p", "gpfs", "beegfs", "virtiofs", "afs")
_OCTAL = re.compile(r"\\([0-7]{3})")
_ERROR_REASONS: Mapping[str, UnknownReason] = {"EACCES": "no_permission", "EPERM": "no_permission"}


class DiskReader:
    """Reads the disks again and again; a path that hangs in the kernel is not asked a second time
    until its helper has come back.
    """

    def __init__(
        self,
        proc: Proc,
        *,
        places: Mapping[str, DiskRole] = PLACES,
        deadline: float = 2.0,
        command: Sequence[str] = PROBE,
    ) -> None:
        self._proc = proc
        self._places = places
        self._deadline = deadline
        self._command = command
        self._hung: dict[str, subprocess.Popen[bytes]] = {}

    def read(self, paths: Iterable[str] = ()) -> tuple[Disk, ...]:
        """The system disk, the known places, and the disks of ``paths`` (absolute; they need not exist
        yet), each disk once. Takes at most the deadline and half a second.
        """
        usable = (path for path in paths if path.startswith("/") and "\0" not in path)
        short = [path for path in usable if len(path) <= _MAX_PATH_LENGTH][:_MAX_PATHS]
        wanted = list(dict.fromkeys([*self._places, *short]))
        self._hung = {path: helper for path, helper in self._hung.items() if helper.poll() is None}
        silence: dict[str, UnknownReason] = dict.fromkeys(self._hung, "timed_out")
        asked = [path for path in wanted if path not in self._hung]
        answers: dict[str, Answer | UnknownReason] = {**silence, **self._ask(asked)}
        replies = {path: answers[path] for path in wanted}
        return disks_of(probe(0, "/"), replies, self._places, mount_types(self._proc))

    def _ask(self, paths: Sequence[str]) -> dict[str, Answer | UnknownReason]:
        """The answer of each path, or why there is none."""
        try:
            helper = subprocess.Popen(
                [*self._command, str(self._deadline), *paths],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd="/",
                start_new_session=True,
            )
        except OSError:
            return dict.fromkeys(paths, "unreadable_file")
        with cast("IO[bytes]", helper.stdout) as stream:
            data, in_time = _read_lines(stream.fileno(), len(paths), self._deadline)
        silence: UnknownReason = "unreadable_file" if in_time else "timed_out"
        replies: dict[str, Answer | UnknownReason] = dict.fromkeys(paths, silence)
        for answer in _parse(data):
            if 0 <= answer.number < len(paths):
                replies[paths[answer.number]] = answer
        helper.kill()
        try:
            helper.wait(0.5)
        except subprocess.TimeoutExpired:
            self._hung.update((path, helper) for path, reply in replies.items() if reply == "timed_out")
        return replies


def read_shm(path: Path = Path("/dev/shm")) -> SharedMemory:  # noqa: S108  (the mount, not a file in it)
    """Size of ``/dev/shm``, which PyTorch's data workers share their batches through."""
    try:
        figures = os.statvfs(path)
    except OSError:
        return SharedMemory(None, None)
    return SharedMemory(figures.f_blocks * figures.f_frsize, figures.f_bavail * figures.f_frsize)


def disks_of(
    system: Answer,
    replies: Mapping[str, Answer | UnknownReason],
    places: Mapping[str, DiskRole],
    types: Mapping[str, str],
) -> tuple[Disk, ...]:
    """Each disk once, ``/`` first, then in the order of ``replies``.

    A place that does not answer is shown only where something is mounted, so that no disk is invented.
    """
    disks = {system.device: _disk("/", "system", system)}
    silent: dict[str, Disk] = {}
    for path, reply in replies.items():
        reason = _failure(reply)
        if reason is not None:
            if path in types or path not in places:
                silent[path] = _silent_disk(path, places.get(path, "shared"), reason)
        elif isinstance(reply, Answer) and reply.device not in disks and (reply.exists or path not in places):
            mount = mount_of(reply.real, types)
            kind: DiskRole = "shared" if types.get(mount, "").startswith(_NETWORK_TYPES) else "data"
            shown = path if path in places or mount == "/" else mount
            disks[reply.device] = _disk(shown, places.get(path, kind), reply)
    covering = [*(disk.path for disk in disks.values() if disk.path != "/"), *silent]
    alone = (disk for path, disk in silent.items() if not any(_below(path, other) for other in covering))
    return (*disks.values(), *alone)


def mount_types(proc: Proc) -> dict[str, str]:
    """Mount point to file system type; read as text, which no hanging server can delay."""
    found: dict[str, str] = {}
    try:
        with Path(proc.root, "self", "mountinfo").open("rb") as file:
            lines = file.read(4 * READ_LIMIT).decode("utf-8", "replace").splitlines()
    except OSError:
        return found
    for line in lines:
        left, separator, right = line.partition(" - ")
        fields = left.split(" ")
        if separator and len(fields) > 4:
            point = _OCTAL.sub(lambda match: chr(int(match[1], 8)), fields[4])
            found[point] = right.split(" ")[0]
    return found


def mount_of(path: str, types: Mapping[str, str]) -> str:
    """The mount point that a path without symlinks lies on."""
    parents = (str(parent) for parent in (PurePosixPath(path), *PurePosixPath(path).parents))
    return next((parent for parent in parents if parent in types), "/")


def _failure(reply: Answer | UnknownReason) -> UnknownReason | None:
    if not isinstance(reply, Answer):
        return reply
    return _ERROR_REASONS.get(reply.error, "unreadable_file") if reply.error else None


def _disk(path: str, role: DiskRole, answer: Answer) -> Disk:
    """Some pseudo file systems say 0 of 0, which is no measurement."""
    reason = _failure(answer)
    if reason is not None:
        return _silent_disk(path, role, reason)
    unknown: dict[str, UnknownReason] = {}
    if not answer.total:
        unknown.update(total="not_supported", free="not_supported")
    if not answer.inodes:
        unknown["inodes_free"] = "not_supported"
    return Disk(
        path,
        answer.total or None,
        answer.free if answer.total else None,
        answer.inodes_free if answer.inodes else None,
        role,
        unknown,
    )


def _silent_disk(path: str, role: DiskRole, reason: UnknownReason) -> Disk:
    return Disk(path, None, None, None, role, dict.fromkeys(("total", "free", "inodes_free"), reason))


def _below(path: str, folder: str) -> bool:
    return path.startswith(folder.rstrip("/") + "/")


def _read_lines(stream: int, count: int, seconds: float) -> tuple[bytes, bool]:
    """What comes through a pipe until ``count`` lines or its end, and whether that was in time."""
    deadline = time.monotonic() + seconds
    poller = select.poll()
    poller.register(stream, select.POLLIN)
    data = b""
    while data.count(b"\n") < count:
        left = deadline - time.monotonic()
        if left <= 0 or not poller.poll(left * 1000):
            return data, False
        chunk = os.read(stream, 1 << 16)
        if not chunk:
            break
        data += chunk
    return data, True


def _parse(data: bytes) -> Iterator[Answer]:
    for line in data.splitlines():
        # A helper that was cut off leaves a torn last line.
        with suppress(msgspec.MsgspecError):
            yield msgspec.json.decode(line, type=Answer)
