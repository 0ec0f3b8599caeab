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


BarKind = Literal["train", "eval", "tokenize", "load", "dataset"]


@dataclass(frozen=True, slots=True)
class Bar:
    """One tqdm bar: ``done`` of ``total`` (``None`` when the log gives no total).

    ``kind`` tells a training bar from the tokeniser's, the weight loader's and the evaluation's.
    ``elapsed`` is seconds since the bar began, whole ones, as tqdm prints them.
    """

    kind: BarKind
    done: int
    total: int | None
    elapsed: float | None = None


@dataclass(frozen=True, slots=True)
class MetricPoint:
    """One metric record. ``loss`` may be nan or inf, exactly as logged; ``step`` is ``None`` when the log
    does not tell it. ``tokens_seen`` counts input tokens since step 0 of the whole training.
    """

    step: int | None
    loss: float | None = None
    eval_loss: float | None = None
    learning_rate: float | None = None
    grad_norm: float | None = None
    epoch: float | None = None
    eval_runtime: float | None = None
    tokens_seen: int | None = None


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
    """One ``checkpoint-N`` folder. Complete means a valid ``trainer_state.json``, written last, and nothing
    of a sharded layout missing. ``size`` is in bytes, ``None`` where it could not be counted.
    """

    path: str
    step: int
    complete: bool
    saved_at: float | None
    size: int | None = None


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
    steps_per_epoch: int | None = None


@dataclass(frozen=True, slots=True)
class Schedule:
    """When a run evaluates and saves, as its configuration says.

    ``eval_steps`` and ``save_steps``: every so many steps; below 1, that share of all steps; ``None``:
    not by steps. ``final_eval`` and ``final_predict`` come after the last step. ``max_steps`` ends the run
    before its ``epochs`` do, ``None`` where they end it. ``counts_padding``: tokens are counted with it.
    """

    eval_steps: float | None = None
    save_steps: float | None = None
    eval_epochs: bool = False
    save_epochs: bool = False
    final_eval: bool = False
    final_predict: bool = False
    epochs: float | None = None
    max_steps: int | None = None
    counts_padding: bool = True


@dataclass(frozen=True, slots=True)
class EtaWorking:
    """The sum behind an ETA: ``steps x seconds + evals x seconds + saves x seconds + current + tail``.

    All in seconds. ``current`` is what is left of the evaluation or save under way, or, negative, what
    the running step has already spent. ``tail`` comes after the last step: the final save, evaluation and
    the exit of the process.
    ``at_least``: an evaluation is still to come and none has been timed yet, or a prediction follows.
    """

    steps_left: int
    seconds_per_step: float
    evals_left: int = 0
    seconds_per_eval: float | None = None
    saves_left: int = 0
    seconds_per_save: float | None = None
    tail: float = 0.0
    at_least: bool = False
    current: float = 0.0


@dataclass(frozen=True, slots=True)
class Coverage:
    """What a run has gone through, so that it will not fail there for the first time later.

    ``longest_batch``: the share of an epoch whose batches were seen, which is the chance that the longest
    was among them. ``first_eval`` and ``first_save``: the step at which it comes, ``None`` when it is
    over, never comes, or nothing tells.
    """

    load: bool = False
    first_batch: bool = False
    longest_batch: float | None = None
    first_update: bool = False
    evaluation: bool = False
    save: bool = False
    first_eval: int | None = None
    first_save: int | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is. ``eta``, ``eta_low``, ``eta_high`` are seconds to the end of the process;
    ``age`` is seconds since the source last changed, ``sign_interval`` the seconds that usually pass
    between two changes while it trains; ``seen`` lists the stages met so far. ``tokens_padded``: the tokens
    per second count padding. ``full_total``: the steps of the whole plan, where this run ends before it (a
    trial); ``full_seconds``: what these would take, without evaluations and saves.
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
    sign_interval: float | None = None
    tokens_padded: bool | None = None
    full_total: int | None = None
    full_seconds: float | None = None
    coverage: Coverage | None = None
    unknown: Unknown = field(default_factory=dict)


StepMark = Literal["eval", "save", "resume", "gap"]


@dataclass(frozen=True, slots=True)
class StepClock:
    """When a step was first seen done; the raw material of speed and ETA.

    ``at`` is seconds on the run's own training clock, which starts with the training bar: the bar
    itself says it to the second, and the arrival time of a followed log refines it within that second.
    So a log read late and a log followed live tell the same speed.
    ``marks``: what happened since the clock before, which makes the interval useless as step time
    (``gap``: a part of the log is missing).
    """

    step: int
    at: float
    marks: tuple[StepMark, ...] = ()


@dataclass(frozen=True, slots=True)
class Pause:
    """One evaluation or save between steps. ``seconds`` is how long it took where the log says so;
    ``began`` is epoch seconds, read from the log's own clock text in this machine's zone.
    """

    step: int | None
    seconds: float | None = None
    began: float | None = None


Attention = Literal["fa2", "fa3", "sdpa", "eager"]

NotedEvent = Literal["allocation_retry", "fp16_overflow", "dropped_sample", "over_long_sample"]


@dataclass(frozen=True, slots=True)
class Told:
    """What a log tells of the settings that are really used; ``None`` where it does not.

    ``compute_dtype`` is ``bfloat16``, ``float16`` or ``float32``; ``quantization`` is in bits. ``zero_stage``
    is known only where the log says it. ``output_dir`` is as the trainer wrote it, relative to its folder.
    ``tracker`` is the address or folder that a tracker printed. ``events`` counts lines of a kind.
    """

    world_size: int | None = None
    compute_dtype: str | None = None
    finetuning: str | None = None
    gradient_checkpointing: bool | None = None
    attention: Attention | None = None
    liger: bool | None = None
    quantization: int | None = None
    zero_stage: int | None = None
    output_dir: str | None = None
    tracker: str | None = None
    events: Mapping[NotedEvent, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunLog:
    """Everything a console log (and ``trainer_log.jsonl``) has told so far.

    ``step`` is the global step; ``resume_step`` the one this process started from.
    ``bar_seconds_per_step`` is tqdm's own smoothed figure. ``clocks``, ``metrics``, ``evals``,
    ``saves`` and ``warnings`` are bounded: old entries are dropped or thinned out.
    ``training_completed`` is the trainer's own word, printed before the final save.
    ``interrupted``: the log ends in a signal that somebody sent, which is no failure.
    ``began_at`` is epoch seconds of the first clock text in the log; ``changed_at`` is when the newest
    progress arrived, on the clock that the reader of the log gave.
    """

    stage: Stage = "start"
    seen: tuple[Stage, ...] = ("start",)
    bar: Bar | None = None
    plan: Plan = field(default_factory=Plan)
    step: int | None = None
    resume_step: int = 0
    clocks: tuple[StepClock, ...] = ()
    bar_seconds_per_step: float | None = None
    metrics: tuple[MetricPoint, ...] = ()
    evals: tuple[Pause, ...] = ()
    saves: tuple[Pause, ...] = ()
    training_completed: bool = False
    train_metrics: Mapping[str, float] = field(default_factory=dict)
    failure: Failure | None = None
    interrupted: bool = False
    warnings: tuple[str, ...] = ()
    source: ProgressSource | None = None
    began_at: float | None = None
    changed_at: float | None = None
    told: Told = field(default_factory=Told)


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
