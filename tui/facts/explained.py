"""What files alone tell of a run: the ``explain`` document."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from tui.facts.curve import Curve
from tui.facts.finding import Finding
from tui.facts.job import Ending, JobKind, JobState
from tui.facts.training import Checkpoint, Coverage, Failure, Plan, Progress, Told
from tui.facts.unknown import Unknown

EXPLAIN_SCHEMA = 1
"""Schema number of the ``explain`` document."""

FileKind = Literal["log", "trainer_log", "output", "job"]

SettingName = Literal[
    "effective_batch",
    "batch_per_device",
    "accumulation",
    "data_parallel",
    "total_steps",
    "precision",
    "finetuning",
    "gradient_checkpointing",
    "attention",
    "liger",
    "quantization",
    "sample_tokens",
    "deepspeed",
    "zero_stage",
    "offload",
]


@dataclass(frozen=True, slots=True)
class SettingFact:
    """One setting, as the log tells it and as the configuration asks for it, in one spelling.

    ``None`` is "not said there"; ``differs`` only where both speak. ``sample_tokens``: the mean tokens of a
    sample, padding included where the trainer counts it, against ``cutoff_len``.
    """

    name: SettingName
    log: str | int | bool | None
    config: str | int | bool | None
    differs: bool = False


@dataclass(frozen=True, slots=True)
class Resume:
    """What continuing in this output folder would do.

    ``taken`` is the step of the checkpoint that LLaMA-Factory takes by itself: the highest number, whole
    or not. ``usable`` is the highest that is complete. ``lost``: steps done that ``usable`` lacks.
    """

    taken: int | None
    usable: int | None
    lost: int | None


@dataclass(frozen=True, slots=True)
class ExplainedRun:
    """A job without what only a process can tell. ``id`` is the path it was read from, with ``#n`` where a
    file holds several runs, oldest first.

    ``state`` is ``None`` where the files do not tell whether it still runs. Times are epoch seconds;
    ``changed_at`` is when the newest of the files was written. ``curves`` have a bounded
    number of points.
    """

    id: str
    source: FileKind
    kind: JobKind
    state: JobState | None
    ending: Ending | None
    failure: Failure | None
    config: str | None
    output_dir: str | None
    started_at: float | None
    ended_at: float | None
    changed_at: float | None
    peak_memory: Mapping[str, int]
    progress: Progress | None
    exit_code: int | None = None
    gpus: tuple[str, ...] = ()
    plan: Plan = field(default_factory=Plan)
    told: Told = field(default_factory=Told)
    coverage: Coverage = field(default_factory=Coverage)
    checkpoints: tuple[Checkpoint, ...] = ()
    resume: Resume | None = None
    settings: tuple[SettingFact, ...] = ()
    curves: tuple[Curve, ...] = ()
    warnings: tuple[str, ...] = ()
    unknown: Unknown = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ExplainDocument:
    """``explain``: one run per path, several for a file of several runs."""

    runs: tuple[ExplainedRun, ...]
    findings: tuple[Finding, ...]
    schema: int = EXPLAIN_SCHEMA
