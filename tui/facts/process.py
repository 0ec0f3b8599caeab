"""One process in full, shown on demand."""

from dataclasses import dataclass

from tui.facts.job import MemberRole
from tui.facts.machine import ProcessInfo, ProcessKind, ProcessState

PROCESS_SCHEMA = 1
"""Schema number of the document."""


@dataclass(frozen=True, slots=True)
class DeviceUse:
    """A card that the process has open; ``index`` and ``uuid`` are ``None`` where the driver tells no
    minor numbers. ``memory`` is bytes, as its owner row says. ``mapped``: a monitor opens a card, who
    computes on it maps it.
    """

    minor: int
    mapped: bool
    index: int | None = None
    uuid: str | None = None
    memory: int | None = None


@dataclass(frozen=True, slots=True)
class TreeRow:
    """A process of the tree. ``depth``: how many of the tree stand above it."""

    pid: int
    start: int
    depth: int
    kind: ProcessKind
    rank: int | None
    state: ProcessState
    command: tuple[str, ...]
    resident: int | None
    cpu_used: float | None


@dataclass(frozen=True, slots=True)
class ProcessDetail:
    """``info`` holds its command and environment with secrets masked.

    ``visible`` are the uuids of the cards that its environment lets it use; ``None``: not to be told.
    ``wchan`` is the kernel function it waits in, or ``""``. ``tree`` is its ancestors, itself and its
    descendants. ``inherited``: it merely kept the card handles of its parent.
    """

    info: ProcessInfo
    role: MemberRole
    job: str | None
    cwd: str | None
    executable: str | None
    wchan: str
    devices: tuple[DeviceUse, ...]
    inherited: bool
    visible: tuple[str, ...] | None
    ports: tuple[int, ...]
    tree: tuple[TreeRow, ...]
    schema: int = PROCESS_SCHEMA
