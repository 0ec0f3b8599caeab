"""A job: a LLaMA-Factory run or service that is watched, and perhaps kept, by this program."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from tui.facts.training import Failure, Progress
from tui.facts.unknown import Unknown

JOB_SCHEMA = 1
"""Schema number of ``job.json``; a folder of another number is named and left alone."""

KEEPER_TITLE = "llamaherd-keep"
"""The process title (``/proc/PID/comm``) of every keeper."""

JobKind = Literal["training", "service"]
JobState = Literal["starting", "running", "stopping", "stuck", "ended", "lost"]
Ending = Literal["finished", "stopped", "stopped_saved", "failed", "untrained", "partial", "unknown"]
MemberRole = Literal["main", "wrapper", "agent", "rank", "data_worker", "pool", "service", "keeper", "other"]
StepName = Literal["wait_save", "cooperate", "interrupt", "terminate", "kill"]
RequestKind = Literal["stop", "force", "keep_weights", "cancel"]


@dataclass(frozen=True, slots=True)
class Identity:
    """A process, for good: PIDs are reused, and in a container the boot id is the host's, so the
    start of PID 1 (clock ticks) tells a restart of the container.
    """

    boot_id: str
    init_start: int
    pid: int
    start: int


@dataclass(frozen=True, slots=True)
class Member:
    """One process of a job. ``state`` is the letter of ``/proc/PID/stat``; ``wchan`` is filled for
    members that a stop could not end.
    """

    pid: int
    start: int
    role: MemberRole = "other"
    state: str = ""
    command: str = ""
    wchan: str = ""


@dataclass(frozen=True, slots=True)
class ExitStatus:
    """How the main process ended: an exit code, or the signal that ended it."""

    code: int | None = None
    signal: int | None = None


@dataclass(frozen=True, slots=True)
class Graces:
    """How long a stop waits at each of its steps, in seconds.

    ``interrupt`` must outlast the 30 s that torchrun gives its ranks. A cooperative save may take
    longer than ``cooperate`` while output files grow (never still for ``quiet``), up to
    ``cooperate_limit``. ``leftover``: once all that were asked are gone, what they left gets this long
    (data loaders see after 5 s that their trainer is gone). ``look``: how long the answer whether a
    checkpoint is being written may take. ``settle``: what a run leaves behind when it ends by itself.
    """

    look: float = 2.0
    wait_save: float = 120.0
    cooperate: float = 120.0
    cooperate_limit: float = 600.0
    quiet: float = 30.0
    interrupt: float = 35.0
    leftover: float = 6.0
    terminate: float = 10.0
    kill: float = 20.0
    settle: float = 1.0


@dataclass(frozen=True, slots=True)
class LadderStep:
    """One step that a stop took. ``left`` counts the members alive after it; seconds are from the
    stop request, on the keeper's monotonic clock.
    """

    name: StepName
    began: float
    ended: float | None = None
    targets: tuple[int, ...] = ()
    left: int | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class StopReport:
    """What a stop did, and what it could not end. ``unverified``: the keeper was not the parent of
    the members (it adopted the job), so their end rests on repeated scans and not on the kernel.
    ``devices_held`` are the N of ``/dev/nvidiaN`` that those in ``left`` hold. ``unsure`` counts signals
    that the kernel sent by number, since it gives no handle on a process here.
    """

    requested_at: float
    kind: RequestKind
    steps: tuple[LadderStep, ...] = ()
    left: tuple[Member, ...] = ()
    ports_open: tuple[int, ...] = ()
    devices_held: tuple[int, ...] = ()
    seconds: float | None = None
    unverified: bool = False
    unsure: int = 0


@dataclass(frozen=True, slots=True)
class JobRecord:
    """``job.json``: the facts that the keeper writes. How a run ended is derived, not stored.

    ``environment`` holds only what this program set for the command, never what was inherited.
    ``oom_kills_start``/``oom_kills_end`` are the cgroup's counter around the run. ``exit`` is of the
    main process, and ``None`` for good where no keeper was its parent. ``stop`` is there only if a stop
    was asked for before the main process ended; what it left behind when it ended by itself is
    ``swept``. ``error`` says why the command never ran: what failed, the name of the errno, on what.
    ``foreign``: somebody else started the run, and its keeper came only to stop it.
    """

    id: str
    nonce: str
    kind: JobKind
    command: tuple[str, ...]
    cwd: str
    environment: Mapping[str, str]
    config: str | None
    config_hash: str | None
    output_dir: str | None
    gpus: tuple[str, ...]
    created_at: float
    state: JobState = "starting"
    schema: int = JOB_SCHEMA
    main: Identity | None = None
    keeper: Identity | None = None
    started_at: float | None = None
    ended_at: float | None = None
    exit: ExitStatus | None = None
    error: str | None = None
    members: tuple[Member, ...] = ()
    stop: StopReport | None = None
    swept: tuple[Member, ...] = ()
    adopted: int = 0
    graces: Graces = field(default_factory=Graces)
    oom_kills_start: int | None = None
    oom_kills_end: int | None = None
    foreign: bool = False


@dataclass(frozen=True, slots=True)
class Job:
    """A job as shown: the record, and what its files and processes say now.

    ``keeper`` is true while a live keeper holds the folder's lock. A foreign run (not started by this
    program) has the id ``pid:start``; ``foreign`` says that it is one, also once a stop gave it a folder.
    """

    id: str
    kind: JobKind
    state: JobState
    ending: Ending | None
    exit_code: int | None
    failure: Failure | None
    keeper: bool
    main_pid: int | None
    members: tuple[Member, ...]
    config: str | None
    output_dir: str | None
    started_at: float | None
    ended_at: float | None
    gpus: tuple[str, ...]
    peak_memory: Mapping[str, int]
    ports: tuple[int, ...]
    progress: Progress | None
    command: tuple[str, ...] = ()
    cwd: str | None = None
    stop: StopReport | None = None
    folder: str | None = None
    foreign: bool = False
    unknown: Unknown = field(default_factory=dict)


BehindCode = Literal["shutdown", "loop", "next_run", "restarter", "program", "prompt"]


@dataclass(frozen=True, slots=True)
class Behind:
    """What goes on behind a run once it has ended: a stop ends the run, not those who started it.

    ``pid`` is the parent that does it, ``command`` what it runs (masked). ``shutdown``: the machine is
    switched off; ``loop``, ``next_run``: its script goes round, or has another run in it; ``restarter``: it
    starts anew what ends; ``program``: another program that started the run and may start the next;
    ``prompt``: a shell at a prompt, of which nothing more can be read.
    """

    code: BehindCode
    pid: int
    command: str
