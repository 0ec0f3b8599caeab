"""What a training run says of itself: stage, progress, checkpoints, failure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from tui.facts.unknown import Unknown

Stage = Literal[
    "start",
    "import",
    "dataset",
    "tokenize",
    "load",
    "prepare",
    "train",
    "forward",
    "loss",
    "backward",
    "optimizer",
    "eval",
    "save",
    "final_eval",
    "ended",
]
STAGES: tuple[Stage, ...] = get_args(Stage)

ProgressSource = Literal["bar", "trainer_log", "metrics", "trainer_state"]

FailureKind = Literal["cuda_oom", "host_oom", "killed", "nccl", "config", "disk", "port", "other"]


@dataclass(frozen=True, slots=True)
class Bar:
    """One tqdm bar: ``done`` of ``total`` (``None`` when the log gives no total).

    ``kind`` tells a training bar from the tokeniser's, the weight loader's and the evaluation's.
    """

    kind: Literal["train", "eval", "tokenize", "load", "dataset"]
    done: int
    total: int | None


@dataclass(frozen=True, slots=True)
class MetricPoint:
    """One metric record at a step. ``loss`` may be nan or inf, exactly as logged."""

    step: int | None
    loss: float | None = None
    eval_loss: float | None = None
    learning_rate: float | None = None
    grad_norm: float | None = None
    epoch: float | None = None
    eval_runtime: float | None = None


@dataclass(frozen=True, slots=True)
class Allocation:
    """The allocation that failed. ``explanation`` is a code for the words layer, or ``None``."""

    bytes: int
    explanation: str | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a run failed. ``message`` is one cleaned line of the log (at most 500 characters)."""

    kind: FailureKind
    stage: Stage | None
    rank: int | None
    message: str
    allocation: Allocation | None = None


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One ``checkpoint-N`` folder. Complete means a valid ``trainer_state.json``, written last."""

    path: str
    step: int
    complete: bool
    saved_at: float | None


@dataclass(frozen=True, slots=True)
class Plan:
    """The ``***** Running training *****`` block: the authority for all step arithmetic."""

    examples: int | None = None
    epochs: int | None = None
    batch_per_device: int | None = None
    effective_batch: int | None = None
    accumulation: int | None = None
    total_steps: int | None = None
    trainable_parameters: int | None = None


@dataclass(frozen=True, slots=True)
class EtaWorking:
    """The sum behind an ETA: ``steps x seconds + evals x seconds + saves x seconds + tail``."""

    steps_left: int
    seconds_per_step: float
    evals_left: int = 0
    seconds_per_eval: float | None = None
    saves_left: int = 0
    seconds_per_save: float | None = None
    tail: float = 0.0
    at_least: bool = False


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is. ``eta``, ``eta_low``, ``eta_high`` are seconds to the end of the process;
    ``age`` is seconds since the source last changed; ``seen`` lists the stages met so far.
    """

    stage: Stage | None = None
    step: int | None = None
    total: int | None = None
    fraction: float | None = None
    eta: float | None = None
    eta_low: float | None = None
    eta_high: float | None = None
    eta_working: EtaWorking | None = None
    seconds_per_step: float | None = None
    samples_per_second: float | None = None
    tokens_per_second: float | None = None
    effective_batch: int | None = None
    epoch: float | None = None
    loss: float | None = None
    eval_loss: float | None = None
    last_checkpoint: int | None = None
    seen: tuple[Stage, ...] = ()
    source: ProgressSource | None = None
    age: float | None = None
    bar: Bar | None = None
    unknown: Unknown = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StepClock:
    """When a step was first seen done, on one monotonic clock; the raw material of speed and ETA.

    ``marker``: what happened since the step before (an evaluation, a save or a resume jump makes the
    interval useless as a step time).
    """

    step: int
    at: float
    marker: Literal["none", "eval", "save", "resume"] = "none"


@dataclass(frozen=True, slots=True)
class RunLog:
    """Everything a console log (and ``trainer_log.jsonl``) has told so far.

    ``resume_step`` is the global step this process started from. ``error_line`` is the last
    exception line, ``traceback_functions`` its frames from the outermost to the innermost.
    ``training_completed`` is the trainer's own word, printed before the final save.
    """

    stage: Stage = "start"
    seen: tuple[Stage, ...] = ("start",)
    bar: Bar | None = None
    plan: Plan = field(default_factory=Plan)
    step: int | None = None
    resume_step: int = 0
    clocks: tuple[StepClock, ...] = ()
    metrics: tuple[MetricPoint, ...] = ()
    eval_seconds: tuple[float, ...] = ()
    save_seconds: tuple[float, ...] = ()
    training_completed: bool = False
    train_metrics: Mapping[str, float] = field(default_factory=dict)
    failure: Failure | None = None
    warnings: tuple[str, ...] = ()
    source: ProgressSource | None = None


@dataclass(frozen=True, slots=True)
class OutputFacts:
    """What lies in an output folder. Times are epoch seconds, ``None`` when the file is missing.

    ``global_step``/``max_steps`` come from the final ``trainer_state.json``.
    """

    path: str
    exists: bool
    checkpoints: tuple[Checkpoint, ...] = ()
    global_step: int | None = None
    max_steps: int | None = None
    all_results_at: float | None = None
    eval_results_at: float | None = None
    trainer_state_at: float | None = None
    weights_at: float | None = None
    trainer_log_at: float | None = None
    unknown: Unknown = field(default_factory=dict)
