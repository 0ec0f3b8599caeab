"""The JSON documents of the command line (``status`` is the snapshot itself)."""

import sys
from dataclasses import dataclass

from tui.facts.explained import ExplainDocument
from tui.facts.finding import Finding
from tui.facts.job import Behind, Job, LadderStep, Member
from tui.facts.memory import Calibration, FitCheck, MemoryEstimate
from tui.facts.process import ProcessDetail
from tui.facts.snapshot import STATUS_SCHEMA, Snapshot
from tui.facts.steps import LengthProblem, LengthSummary, StepCount
from tui.facts.stray import StrayGroup


@dataclass(frozen=True, slots=True)
class JobDocument:
    """``start`` and ``stop``: the job, the steps that a stop took, and what is left of it; ``behind``: what
    goes on in place of a run that was not started here.
    """

    job: Job
    steps: tuple[LadderStep, ...] = ()
    left: tuple[Member, ...] = ()
    behind: tuple[Behind, ...] = ()
    schema: int = STATUS_SCHEMA


@dataclass(frozen=True, slots=True)
class UnreadableFolder:
    """A job folder that cannot be read, and the code of the reason."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class JobsDocument:
    """``jobs``: newest first."""

    jobs: tuple[Job, ...]
    unreadable: tuple[UnreadableFolder, ...] = ()
    schema: int = STATUS_SCHEMA


@dataclass(frozen=True, slots=True)
class SweepDocument:
    """``sweep``: the strays that were found, and for each group that was swept the job that did it."""

    groups: tuple[StrayGroup, ...]
    swept: tuple[Job, ...] = ()
    schema: int = STATUS_SCHEMA


@dataclass(frozen=True, slots=True)
class PrunedFolder:
    """A job folder that was removed, and its bytes on the disk."""

    job: str
    path: str
    size: int


@dataclass(frozen=True, slots=True)
class PruneDocument:
    """``jobs --prune``: what was removed."""

    removed: tuple[PrunedFolder, ...]
    schema: int = STATUS_SCHEMA


@dataclass(frozen=True, slots=True)
class PlanDocument:
    """``start --dry-run``: what would run, where, with which additions to the environment.

    ``torchrun``: whether it trains in several processes under an agent; null when unknown.
    """

    command: tuple[str, ...]
    cwd: str
    environment: dict[str, str]
    config: str | None
    output_dir: str | None
    torchrun: bool | None
    schema: int = STATUS_SCHEMA


@dataclass(frozen=True, slots=True)
class CheckDocument:
    """``check``: what was found (a finding that ``blocks`` refuses a start), and what would run.

    ``environment`` are the variables that this program adds and those of the shell that steer
    LLaMA-Factory; ``processes`` is how many will train on this machine, null when unknown. ``fits``,
    ``measured`` and ``lengths`` are those of an ``Estimate``; ``lengths`` is there with ``--lengths``, and
    ``length_problem`` says why it is not, or not complete.
    """

    findings: tuple[Finding, ...]
    steps: StepCount | None
    memory: MemoryEstimate | None
    command: tuple[str, ...]
    cwd: str
    config: str | None
    output_dir: str | None
    environment: dict[str, str]
    torchrun: bool | None
    processes: int | None
    fits: tuple[FitCheck, ...] = ()
    measured: tuple[Calibration, ...] = ()
    lengths: LengthSummary | None = None
    length_problem: LengthProblem | None = None
    schema: int = STATUS_SCHEMA


@dataclass(frozen=True, slots=True)
class LineDocument:
    """``logs``: one finished line, harmless and without its secrets."""

    line: str
    schema: int = STATUS_SCHEMA


@dataclass(frozen=True, slots=True)
class ErrorBody:
    """A stable code, the sentence, and what to do."""

    code: str
    message: str
    hint: str


@dataclass(frozen=True, slots=True)
class ErrorDocument:
    """What ``--json`` prints instead of the document when the command fails."""

    error: ErrorBody
    schema: int = STATUS_SCHEMA


def emit(
    document: JobDocument
    | JobsDocument
    | SweepDocument
    | PruneDocument
    | PlanDocument
    | CheckDocument
    | ExplainDocument
    | LineDocument
    | ErrorDocument
    | ProcessDetail
    | Snapshot,
) -> None:
    """Print a document on one line of standard output."""
    import msgspec

    sys.stdout.buffer.write(msgspec.json.encode(document) + b"\n")
    sys.stdout.buffer.flush()
