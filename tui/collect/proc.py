"""The reader of ``/proc``: standard library only, because the job keeper lives on it.

Every reader returns ``None`` (or an empty collection) when the process is gone or may not be read;
nothing here raises for a vanished process. ``root`` makes all of it testable on a folder of fixtures.

``stat``, ``status`` and ``fd`` never block. ``environ``, ``cmdline`` and ``maps`` take the memory lock
of the process and can hang on a process stuck in the driver: read them once, at first sight, and
never on the way to a stop.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

READ_LIMIT = 1 << 20
"""Bytes read at most of one file: a command line or environment may be made huge on purpose."""

_CHUNK = 1 << 16
_ONE_LINE = "stat"
"""The file that is read most; the kernel gives its one line at once."""

_SOCKET_LINK = re.compile(r"socket:\[(\d+)\]")
_TCP_LISTEN = "0A"


@dataclass(frozen=True, slots=True)
class ProcessStat:
    """``/proc/PID/stat``. ``start`` and CPU times are clock ticks; ``resident`` is bytes.

    ``threads`` counts living ones: a zombie with more than one is a leader whose threads live on.
    """

    pid: int
    comm: str
    state: str
    ppid: int
    pgid: int
    session: int
    tty: int
    user_ticks: int
    system_ticks: int
    start: int
    resident: int
    threads: int = 1

    @property
    def alive(self) -> bool:
        """A zombie (or a task being removed) holds no memory and no device: it counts as gone."""
        return self.state not in ("Z", "X", "x")

    @property
    def lives_on(self) -> bool:
        """Alive, or a dead leader whose threads are not: they may hang in a driver with all it holds."""
        return self.alive or self.threads > 1


@dataclass(frozen=True, slots=True)
class ProcessStatus:
    """``/proc/PID/status``: owner and signal masks (bit N-1 is signal N)."""

    uid: int
    ignored: int
    caught: int

    def ignores(self, signal_number: int) -> bool:
        """Whether the process ignores this signal."""
        return bool(self.ignored >> (signal_number - 1) & 1)

    def catches(self, signal_number: int) -> bool:
        """Whether the process has a handler for this signal."""
        return bool(self.caught >> (signal_number - 1) & 1)


@dataclass(frozen=True, slots=True)
class Listener:
    """A listening TCP socket: its port, whether it is reachable from outside, its inode."""

    port: int
    loopback: bool
    inode: int


class Proc:
    """One view of a ``/proc`` tree."""

    def __init__(self, root: str | Path = "/proc") -> None:
        self.root = str(root)
        self._page = os.sysconf("SC_PAGE_SIZE")

    def pids(self) -> list[int]:
        """All process ids of this namespace."""
        try:
            return [int(name) for name in os.listdir(self.root) if name.isdigit()]
        except OSError:
            return []

    def stat(self, pid: int) -> ProcessStat | None:
        """The process as the kernel sees it now."""
        data = self._read(pid, "stat", 4096)
        return None if data is None else parse_stat(data, self._page)

    def table(self) -> dict[int, ProcessStat]:
        """All processes at once; about 7 ms for 500."""
        found = ((pid, self.stat(pid)) for pid in self.pids())
        return {pid: stat for pid, stat in found if stat is not None}

    def children(self, pid: int) -> list[int]:
        """The children of the main thread of a process, orphans that came to it included.

        Empty where the kernel is built without ``/proc/PID/task/TID/children``.
        """
        data = self._read(pid, f"task/{pid}/children", READ_LIMIT)
        return [int(word) for word in (data or b"").split()]

    def status(self, pid: int) -> ProcessStatus | None:
        """Owner and signal masks."""
        data = self._read(pid, "status", 16384)
        if data is None:
            return None
        fields = dict(line.partition(b":")[::2] for line in data.splitlines())
        try:
            return ProcessStatus(
                uid=int(fields[b"Uid"].split()[0]),
                ignored=int(fields[b"SigIgn"], 16),
                caught=int(fields[b"SigCgt"], 16),
            )
        except (KeyError, ValueError, IndexError):
            return None

    def command(self, pid: int) -> tuple[str, ...] | None:
        """The arguments; empty for a kernel thread or a zombie. May block, see the module."""
        data = self._read(pid, "cmdline", READ_LIMIT)
        if data is None:
            return None
        parts = data.removesuffix(b"\0").split(b"\0") if data else []
        return tuple(part.decode("utf-8", "replace") for part in parts)

    def environment(self, pid: int) -> dict[str, str] | None:
        """The environment at exec. May block, see the module."""
        data = self._read(pid, "environ", READ_LIMIT)
        if data is None:
            return None
        pairs = (entry.partition(b"=") for entry in data.split(b"\0") if b"=" in entry)
        return {key.decode("utf-8", "replace"): value.decode("utf-8", "replace") for key, _, value in pairs}

    def has_environment_entry(self, pid: int, entry: bytes) -> bool:
        """Whether ``KEY=value`` is in the environment, compared as bytes. May block, see the module."""
        data = self._read(pid, "environ", READ_LIMIT)
        return data is not None and entry in data.split(b"\0")

    def cwd(self, pid: int) -> str | None:
        """The working directory."""
        return self._link(pid, "cwd")

    def executable(self, pid: int) -> str | None:
        """The program file."""
        return self._link(pid, "exe")

    def wchan(self, pid: int) -> str:
        """The kernel function that a sleeping process waits in, or ``""``."""
        data = self._read(pid, "wchan", 256)
        return "" if data is None or data == b"0" else data.decode("ascii", "replace")

    def threads(self, pid: int) -> list[int]:
        """The threads; each can be asked like a process for its descriptors and maps."""
        try:
            return [int(name) for name in os.listdir(f"{self.root}/{pid}/task") if name.isdigit()]
        except OSError:
            return []

    def descriptors(self, pid: int) -> list[str]:
        """The open file descriptors, as names in ``/proc/PID/fd``."""
        try:
            return os.listdir(f"{self.root}/{pid}/fd")
        except OSError:
            return []

    def descriptor(self, pid: int, name: str) -> str | None:
        """What a file descriptor leads to: a path, ``socket:[inode]``, ``pipe:[inode]``."""
        return self._link(pid, f"fd/{name}")

    def open_files(self, pid: int) -> Iterator[str]:
        """What the open file descriptors lead to."""
        for name in self.descriptors(pid):
            target = self.descriptor(pid, name)
            if target is not None:
                yield target

    def writes(self, pid: int, path: str) -> bool:
        """Whether the process has the file of this real path open for writing; reading it is no sign."""
        names = (name for name in self.descriptors(pid) if self.descriptor(pid, name) == path)
        return any(self._open_for_writing(pid, name) for name in names)

    def device_minors(self, pid: int, prefix: str = "/dev/nvidia") -> frozenset[int]:
        """The N of every open ``/dev/nvidiaN``; the control and uvm devices do not count."""
        return minors(self.open_files(pid), prefix)

    def mapped_minors(self, pid: int, prefix: str = "/dev/nvidia") -> frozenset[int]:
        """The N of every mapped ``/dev/nvidiaN``, which a CUDA context has. May block."""
        data = self._read(pid, "maps", 8 * READ_LIMIT)
        if data is None:
            return frozenset()
        wanted = prefix.encode()
        paths = (line.rsplit(b" ", 1)[-1] for line in data.splitlines() if wanted in line)
        return minors((path.decode("utf-8", "replace") for path in paths), prefix)

    def listeners(self) -> tuple[Listener, ...]:
        """Listening TCP sockets of this network namespace."""
        found: list[Listener] = []
        for name in ("tcp", "tcp6"):
            try:
                with open(f"{self.root}/net/{name}", "rb") as file:
                    lines = file.read(4 * READ_LIMIT).decode("ascii", "replace").splitlines()[1:]
            except OSError:
                continue
            found.extend(filter(None, map(_parse_listener, lines)))
        return tuple(found)

    def ports(self, pids: Iterable[int]) -> dict[int, int]:
        """Listening port to the process (of ``pids``) that holds it."""
        by_inode = {listener.inode: listener.port for listener in self.listeners()}
        if not by_inode:
            return {}
        found: dict[int, int] = {}
        for pid in pids:
            for target in self.open_files(pid):
                match = _SOCKET_LINK.fullmatch(target)
                if match and int(match[1]) in by_inode:
                    found.setdefault(by_inode[int(match[1])], pid)
        return found

    def boot_id(self) -> str:
        """The kernel's boot id; in a container it is the host's."""
        try:
            with open(f"{self.root}/sys/kernel/random/boot_id", encoding="ascii") as file:
                return file.read(64).strip()
        except OSError:
            return ""

    def init_start(self) -> int:
        """Start ticks of PID 1: tells one life of a container from the next."""
        init = self.stat(1)
        return 0 if init is None else init.start

    def boot_time(self) -> float | None:
        """Epoch seconds of boot, for turning start ticks into a time of day (never an identity)."""
        try:
            with open(f"{self.root}/stat", "rb") as file:
                match = re.search(rb"^btime (\d+)$", file.read(READ_LIMIT), re.MULTILINE)
        except OSError:
            return None
        return float(match[1]) if match else None

    def _read(self, pid: int, name: str, limit: int) -> bytes | None:
        # A process may vanish at any moment; ESRCH comes from read as well as from open. Plain calls:
        # file objects would double the cost of a table of processes.
        try:
            descriptor = os.open(f"{self.root}/{pid}/{name}", os.O_RDONLY | os.O_CLOEXEC)
            try:
                data = os.read(descriptor, min(limit, _CHUNK))
                if name == _ONE_LINE:
                    return data
                chunks = [data]
                size = len(data)
                while size < limit and chunks[-1]:
                    chunks.append(os.read(descriptor, min(limit - size, _CHUNK)))
                    size += len(chunks[-1])
                return b"".join(chunks)
            finally:
                os.close(descriptor)
        except OSError:
            return None

    def _open_for_writing(self, pid: int, descriptor: str) -> bool:
        match = re.search(rb"^flags:\s*([0-7]+)$", self._read(pid, f"fdinfo/{descriptor}", 4096) or b"", re.M)
        return match is not None and int(match[1], 8) & os.O_ACCMODE != os.O_RDONLY

    def _link(self, pid: int, name: str) -> str | None:
        try:
            return os.readlink(f"{self.root}/{pid}/{name}")
        except OSError:
            return None


def parse_stat(data: bytes, page: int) -> ProcessStat | None:
    """One ``/proc/PID/stat`` line. The name in brackets may hold anything, brackets too."""
    opening, closing = data.find(b"("), data.rfind(b")")
    rest = data[closing + 1 :].split(None, 22)  # what is behind is not needed
    try:
        return ProcessStat(
            pid=int(data[:opening]),
            comm=data[opening + 1 : closing].decode("utf-8", "replace"),
            state=rest[0].decode("ascii", "replace"),
            ppid=int(rest[1]),
            pgid=int(rest[2]),
            session=int(rest[3]),
            tty=int(rest[4]),
            user_ticks=int(rest[11]),
            system_ticks=int(rest[12]),
            start=int(rest[19]),
            resident=int(rest[21]) * page,
            threads=int(rest[17]),
        )
    except (ValueError, IndexError):
        return None


def minors(paths: Iterable[str], prefix: str) -> frozenset[int]:
    """The device minors among file paths, for names of the form ``<prefix>N``."""
    names = (path[len(prefix) :] for path in paths if path.startswith(prefix))
    return frozenset(int(name) for name in names if name.isascii() and name.isdigit() and len(name) < 6)


def descendants(root: int, table: Mapping[int, ProcessStat]) -> list[int]:
    """All living and dead descendants of ``root`` (not itself), parents before their children."""
    children: dict[int, list[int]] = {}
    for stat in table.values():
        children.setdefault(stat.ppid, []).append(stat.pid)
    found: list[int] = []
    seen = {root}
    queue = [root]
    while queue:
        for child in children.get(queue.pop(), ()):
            if child not in seen:
                seen.add(child)
                found.append(child)
                queue.append(child)
    return found


def ancestors(pid: int, stat_of: Callable[[int], ProcessStat | None]) -> list[int]:
    """The chain of parents of ``pid``, nearest first, up to PID 1."""
    found: list[int] = []
    current = stat_of(pid)
    while current is not None and current.ppid > 0 and current.ppid not in found:
        found.append(current.ppid)
        current = stat_of(current.ppid)
    return found


def _parse_listener(line: str) -> Listener | None:
    fields = line.split()
    if len(fields) < 10 or fields[3] != _TCP_LISTEN:
        return None
    try:
        address, _, port = fields[1].rpartition(":")
        # Little-endian hexadecimal; 127.0.0.0/8 ends in 7F, ::1 in 01000000 after zeros.
        loopback = address.endswith("7F") if len(address) == 8 else address == "0" * 24 + "01000000"
        return Listener(int(port, 16), loopback, int(fields[9]))
    except ValueError:
        return None
