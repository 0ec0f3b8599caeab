"""What a failure was, from what the log says of it: kind, stage, rank, the allocation that failed.

The stage comes from the functions of the traceback, outermost first, and a later function may only
refine what an earlier one said: a ``forward`` inside ``backward`` is the recomputation of activation
checkpointing, so the failure is the backward pass's.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from tui.facts.secrets import mask_text
from tui.facts.training import Allocation, Failure, FailureKind, Stage
from tui.llamafactory.tracebacks import Raised

_MESSAGE_LIMIT = 500

_WRAPPERS = frozenset({"CalledProcessError", "ChildFailedError", "SystemExit", "RemoteTraceback"})
"""They only repeat that a process below failed."""
_STOPS = frozenset({"KeyboardInterrupt", "SignalException"})

_Point = Stage | Literal["workflow"]

_FUNCTIONS: Mapping[str, _Point] = {
    **dict.fromkeys(("run_sft", "run_pt", "run_dpo", "run_kto", "run_rm", "run_ppo"), "workflow"),
    "get_dataset": "dataset",
    "_get_preprocessed_dataset": "tokenize",
    **dict.fromkeys(("load_model", "create_ref_model", "create_reward_model"), "load"),
    **dict.fromkeys(("train", "ppo_train", "_inner_training_loop", "_run_epoch"), "train"),
    **dict.fromkeys(
        (
            "__init__",
            "prepare",
            "_prepare_for_training",
            "_wrap_model",
            "create_optimizer_and_scheduler",
            "_load_from_checkpoint",
            "_load_optimizer_and_scheduler",
        ),
        "prepare",
    ),
    **dict.fromkeys(("training_step", "compute_loss"), "forward"),
    **dict.fromkeys(
        ("ForCausalLMLoss", "fixed_cross_entropy", "cross_entropy", "LigerForCausalLMLoss"), "loss"
    ),
    "backward": "backward",
    **dict.fromkeys(("step", "clip_grad_norm_"), "optimizer"),
    **dict.fromkeys(("_evaluate", "evaluation_loop", "evaluate", "predict"), "eval"),
    **dict.fromkeys(("_save_checkpoint", "save_model"), "save"),
}
_REFINES: Mapping[_Point | None, frozenset[_Point]] = {
    None: frozenset({"workflow", "dataset", "load", "train"}),
    "workflow": frozenset({"dataset", "load", "prepare", "train", "eval", "save"}),
    "dataset": frozenset({"tokenize"}),
    "train": frozenset({"prepare", "forward", "backward", "optimizer", "eval", "save"}),
    "forward": frozenset({"loss", "backward"}),
    "loss": frozenset({"backward"}),
    "backward": frozenset({"optimizer"}),  # DeepSpeed's engine steps inside backward
}

_CONFIG_FUNCTIONS = frozenset(
    {
        "read_args",
        "get_train_args",
        "get_infer_args",
        "get_ray_args",
        "check_dependencies",
        "get_dataset_list",
        "_load_single_dataset",
        "get_template_and_fix_tokenizer",
        "load_tokenizer",
        "load_config",
    }
)
_MISTAKES = frozenset(
    {
        "ValueError",
        "OSError",
        "FileNotFoundError",
        "ImportError",
        "ModuleNotFoundError",
        "KeyError",
        "TypeError",
        "AttributeError",
        "NotImplementedError",
        "ScannerError",
        "ParserError",
        "HFValidationError",
        "PackageNotFoundError",
        "EnvironmentError",
    }
)

# First match wins; NCCL also says "out of memory" when a CUDA allocation inside it fails.
_KINDS: tuple[tuple[FailureKind, re.Pattern[str]], ...] = (
    (
        "cuda_oom",
        re.compile(
            r"\b(?:CUDA|HIP|NPU) out of memory|CUDA error: out of memory|OutOfMemoryError"
            r"|CUBLAS_STATUS_ALLOC_FAILED|CUDNN_STATUS_ALLOC_FAILED|NCCL.{0,200}out of memory"
        ),
    ),
    (
        "disk",
        re.compile(r"Errno 28\b|No space left on device|Errno 122\b|PytorchStreamWriter failed writing"),
    ),
    (
        "host_oom",
        re.compile(
            r"^MemoryError|DefaultCPUAllocator|Cannot allocate memory|Bus error|shared memory \(shm\)"
        ),
    ),
    (
        "killed",
        re.compile(
            r"killed by signal: Killed|DataLoader worker .{0,80}exited unexpectedly|has abruptly died"
        ),
    ),
    (
        "port",
        re.compile(r"EADDRINUSE|(?:Errno|errno:) 98\b|[Aa]ddress already in use|Cannot find empty port"),
    ),
    (
        "nccl",
        re.compile(r"NCCL|\bDist(?:Backend|Network|Store)?Error|gloo|ProcessGroup|Connection closed by peer"),
    ),
)

_ALLOCATION = re.compile(r"[Tt]ried to allocate (\d{1,12}(?:\.\d{1,6})?) (bytes|[KMGT]iB)")
_UNITS = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}


@dataclass(frozen=True, slots=True)
class RootCause:
    """What torchrun says of the rank that failed first. A negative ``exit_code`` is a signal."""

    rank: int
    exit_code: int


@dataclass(frozen=True, slots=True)
class Trouble:
    """One thing that may have ended the run, at the stage the run was in."""

    raised: Raised
    stage: Stage

    @property
    def is_stop(self) -> bool:
        """A signal that somebody sent."""
        return self.raised.short_name in _STOPS


def is_wrapper(raised: Raised) -> bool:
    """Whether the exception only repeats that a process below failed."""
    return raised.short_name in _WRAPPERS


def judge(
    troubles: Sequence[Trouble], root_cause: RootCause | None, stage: Stage
) -> tuple[Failure | None, bool]:
    """The failure of a run, and whether a signal ended it on purpose instead.

    The order in the log decides: after a stop, ranks fail because their peers are gone.
    """
    if troubles and troubles[0].is_stop:
        return None, True
    failures = [trouble for trouble in troubles if not trouble.is_stop]
    if root_cause is not None and root_cause.exit_code < 0:
        if root_cause.exit_code in {-2, -15} and not failures:
            return None, True
        return _of_signal(root_cause, failures, stage), False
    if root_cause is not None:
        of_root = [one for one in failures if one.raised.rank in {None, root_cause.rank}]
        failures = of_root or failures
    if not failures:
        return None, False
    found = _decisive(failures)
    if found.rank is None and root_cause is not None:
        return Failure(found.kind, found.stage, root_cause.rank, found.message, found.allocation), False
    return found, False


def _decisive(failures: Sequence[Trouble]) -> Failure:
    # Per rank the last exception is the one that ended it; an earlier one of a clearer kind is its cause.
    # A broken connection is what the other ranks see of the failure, so it counts least.
    judged = [failure_of(one.raised, one.stage) for one in failures]
    last_of_rank = {failure.rank: failure for failure in judged}
    best = min(last_of_rank.values(), key=lambda one: one.kind == "nccl")
    if best.kind == "other":
        clearer = (one for one in reversed(judged) if one.rank == best.rank and one.kind != "other")
        return next(clearer, best)
    return best


def _of_signal(root: RootCause, failures: Iterable[Trouble], stage: Stage) -> Failure:
    # SIGABRT is how the NCCL watchdog ends its process.
    own = [failure_of(one.raised, one.stage) for one in failures if one.raised.rank in {None, root.rank}]
    if own and root.exit_code != -9:
        last = own[-1]
        return Failure(last.kind, last.stage, root.rank, last.message, last.allocation)
    return Failure("killed", stage, root.rank, f"exitcode: {root.exit_code}")


def failure_of(raised: Raised, stage: Stage) -> Failure:
    """An exception as a failure; ``stage`` is where the run was if the functions do not tell."""
    text = f"{raised.name}: {raised.message}" if raised.message else raised.name
    kind = _kind(raised, text, stage)
    allocation = _allocation(text) if kind in {"cuda_oom", "host_oom"} else None
    message = mask_text(text)[:_MESSAGE_LIMIT].strip()
    return Failure(kind, stage_of(raised.functions) or stage, raised.rank, message, allocation)


def _kind(raised: Raised, text: str, stage: Stage) -> FailureKind:
    for kind, pattern in _KINDS:
        if pattern.search(text):
            return kind
    if raised.short_name in _MISTAKES and (
        stage in {"start", "import"} or not _CONFIG_FUNCTIONS.isdisjoint(raised.functions)
    ):
        return "config"
    return "other"


def _allocation(text: str) -> Allocation | None:
    match = _ALLOCATION.search(text)
    return Allocation(round(float(match[1]) * _UNITS[match[2]])) if match else None


def stage_of(functions: Iterable[str]) -> Stage | None:
    """The stage that the functions of a traceback prove, or ``None``."""
    point: _Point | None = None
    in_loop = False
    for function in functions:
        found = _FUNCTIONS.get(function)
        if found is not None and found in _REFINES.get(point, ()):
            point = found
            in_loop = in_loop or point == "train"
    if point == "workflow":
        return None
    return "final_eval" if point == "eval" and not in_loop else point
