"""Steps, memory and token lengths of a training that is understood but not started."""

import os
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from tui.facts.estimate import Estimate
from tui.facts.machine import Gpu
from tui.facts.memory import Calibration, MemoryEstimate
from tui.facts.steps import LengthProgress, StepCount, TokenLengths
from tui.facts.unknown import UnknownReason
from tui.facts.weights import ModelFacts
from tui.insight.length_summary import summarize
from tui.insight.memory import estimate, fit_checks
from tui.llamafactory.config import TrainingConfig
from tui.llamafactory.datasets import count_rows
from tui.llamafactory.environment import Environment, runtime_environ
from tui.llamafactory.hub_cache import find_hub_model, is_hub_name
from tui.llamafactory.lengths import MOST_ROWS, MOST_SECONDS, LengthProbe
from tui.llamafactory.setup import training_setup
from tui.llamafactory.steps import DEFAULT_CUTOFF, count_steps, positive
from tui.llamafactory.weights import read_model


def estimate_training(
    config: TrainingConfig,
    environment: Environment | None,
    environ: Mapping[str, str],
    *,
    processes: int | None,
    torchrun: bool | None,
    cards: Sequence[Gpu] = (),
    lengths: TokenLengths | None = None,
    measured: Sequence[Calibration] = (),
) -> Estimate:
    """Everything at once.

    Args:
        config: The training, resolved in its folder.
        environment: Where it will run; without one, versions are unknown.
        environ: The variables of the job.
        processes: How many ranks train on this machine.
        torchrun: Whether they are started by torchrun.
        cards: The cards it will use, as seen now.
        lengths: Measured lengths.
        measured: Calibrations to pick from.
    """
    model = find_model(config, environ)
    steps = step_count(config, environment, environ, processes=processes, lengths=lengths)
    total, free = _smallest(gpu.memory.total for gpu in cards), _smallest(gpu.memory.free for gpu in cards)
    memory = memory_estimate(
        config,
        environment,
        environ,
        processes=processes,
        torchrun=torchrun,
        model=model,
        lengths=lengths,
        card_bytes=total,
    )
    card = cards[0].name if cards else None
    name = model.name if model is not None else _written_name(config)
    return Estimate(
        steps=steps,
        memory=memory,
        checks=()
        if model is None
        else fit_checks(model, memory, disk_free=_disk_free(model), card_free=free),
        lengths=lengths,
        summary=None if lengths is None else summarize(lengths, batch=steps.batch, cutoff=_cutoff(config)),
        measured=tuple(entry for entry in measured if entry.model == name and entry.card in {card, None}),
        model=name,
        parameters=model.parameters or None if model is not None else None,
        file_bytes=model.file_bytes if model is not None else None,
        missing=model.missing if model is not None else (),
        truncated=model.truncated if model is not None else (),
        card=card,
        card_total=total,
        card_free=free,
    )


def step_count(
    config: TrainingConfig,
    environment: Environment | None,
    environ: Mapping[str, str],
    *,
    processes: int | None,
    lengths: TokenLengths | None = None,
) -> StepCount:
    """How many steps, see ``count_steps``; rows are counted within a few seconds."""
    versions = environment.versions if environment is not None else {}
    return count_steps(
        config,
        count_rows(config),
        world=world_size(processes, environ),
        transformers=versions.get("transformers"),
        lengths=lengths,
    )


def memory_estimate(
    config: TrainingConfig,
    environment: Environment | None,
    environ: Mapping[str, str],
    *,
    processes: int | None,
    torchrun: bool | None,
    model: ModelFacts | None = None,
    lengths: TokenLengths | None = None,
    card_bytes: int | None = None,
) -> MemoryEstimate:
    """How much memory; unknown with its reason where the model is not on this machine."""
    model = model or find_model(config, environ)
    if model is None:
        unknown: dict[str, UnknownReason] = {"needed": "missing_file", "reserved": "missing_file"}
        return MemoryEstimate(reasons=("model_absent",), unknown=unknown)
    setup = training_setup(
        config,
        model,
        world=world_size(processes, environ),
        torchrun=torchrun,
        versions=environment.versions if environment is not None else None,
    )
    return estimate(model, setup, lengths=lengths, card_bytes=card_bytes)


def measure_lengths(
    config: TrainingConfig,
    environment: Environment,
    environ: Mapping[str, str],
    on_progress: Callable[[LengthProgress], None] | None = None,
    *,
    seconds: float = MOST_SECONDS,
    most_rows: int = MOST_ROWS,
) -> TokenLengths:
    """Measure token lengths in the training environment; an interrupt ends the probe, too."""
    model = find_model(config, environ)
    with LengthProbe(
        environment,
        config,
        runtime_environ(environment, environ, Path(sys.prefix)),
        model=None if model is None else Path(model.path),
        seconds=seconds,
        most_rows=most_rows,
    ) as probe:
        return probe.run(on_progress)


def find_model(config: TrainingConfig, environ: Mapping[str, str]) -> ModelFacts | None:
    """The model that a config names, if it lies on this machine: in a folder, or in its hub's cache."""
    written = config.text("model_name_or_path")
    if not written or "\0" in written:
        return None
    path = Path(os.path.expanduser(written))  # noqa: PTH111  # an unknown user's ~ stays as it is
    folder = path if config.cwd is None else config.cwd / path
    if folder.is_dir():
        return read_model(folder, _written_name(config))
    if not is_hub_name(written):
        return None
    cache = config.text("cache_dir")
    found = find_hub_model(
        written,
        environ,
        None if cache is None else (config.cwd or Path()) / cache,
        config.text("model_revision") or "main",
    )
    return None if found.snapshot is None else read_model(Path(found.snapshot), _written_name(config))


def world_size(processes: int | None, environ: Mapping[str, str]) -> int | None:
    """Ranks on all machines together; every machine is taken to have as many as this one."""
    nodes = environ.get("NNODES", "1")
    if processes is None or not (nodes.isascii() and nodes.isdigit() and 0 < len(nodes) < 5):
        return None
    return processes * int(nodes) or None


def _written_name(config: TrainingConfig) -> str | None:
    written = config.text("model_name_or_path")
    return written.rstrip("/").rpartition("/")[2][:200] or None if written else None


def _cutoff(config: TrainingConfig) -> int:
    return positive(config, "cutoff_len", DEFAULT_CUTOFF)


def _disk_free(model: ModelFacts) -> int | None:
    try:
        return shutil.disk_usage(model.path).free
    except OSError:
        return None


def _smallest(sizes: Iterable[int | None]) -> int | None:
    """The smallest of several sizes; unknown if any is."""
    known = list(sizes)
    return min(size for size in known if size is not None) if known and None not in known else None
