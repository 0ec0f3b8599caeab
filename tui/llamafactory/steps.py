"""How many optimizer steps a training takes, by the rules of LLaMA-Factory and its trainer.

The split is that of ``datasets``, the share of each card that of ``accelerate``. Whether the last,
incomplete group of batches is a step changed with transformers 4.52: up to 4.51.3 it was not.
"""

import math
import re
from dataclasses import dataclass, replace

from tui.facts.steps import Bound, DatasetRows, StepCount, StepReason, TokenLengths
from tui.facts.unknown import UnknownReason
from tui.llamafactory.config import TrainingConfig
from tui.llamafactory.datasets import first_unknown, total_rows

DEFAULT_BATCH, DEFAULT_EPOCHS, DEFAULT_CUTOFF = 8, 3.0, 2048
"""What the trainer, and LLaMA-Factory for the length, take where a config says nothing."""

_ROUNDS_UP_SINCE = (4, 52)
_GROUP = 1000  # rows that are packed together; LLaMA-Factory's preprocessing_batch_size
_NO_VALIDATION = 1e-6
_LARGEST = 1_000_000_000


class _RefusedError(Exception):
    """LLaMA-Factory refuses these settings."""


def rounds_up(transformers: str | None) -> bool | None:
    """Whether this version counts an incomplete group of batches as a step; ``None`` for no version."""
    found = re.match(r"(\d{1,4})\.(\d{1,4})", transformers or "")
    return (int(found[1]), int(found[2])) >= _ROUNDS_UP_SINCE if found else None


def positive(config: TrainingConfig, key: str, default: int) -> int:
    """A count above zero; anything else, which a run would refuse, is taken as the default."""
    value = config.whole(key)
    return value if value is not None and 0 < value <= _LARGEST else default


def packs(config: TrainingConfig) -> bool:
    """Whether rows are packed into samples of the full length; pre-training does by itself."""
    if config.flag("neat_packing"):
        return True
    packing = config.flag("packing")
    return config.stage == "pt" if packing is None else packing


def count_steps(
    config: TrainingConfig,
    datasets: tuple[DatasetRows, ...],
    *,
    world: int | None,
    transformers: str | None,
    lengths: TokenLengths | None = None,
) -> StepCount:
    """The steps of a training on ``world`` cards, with the working.

    Args:
        config: The training.
        datasets: Its rows, see ``datasets.count_rows``.
        world: Ranks on all machines together; ``None``: unknown.
        transformers: The version that will run.
        lengths: Measured lengths, which bound the samples of a packed data set.
    """
    batch = positive(config, "per_device_train_batch_size", DEFAULT_BATCH)
    accumulation = positive(config, "gradient_accumulation_steps", 1)
    max_steps = positive(config, "max_steps", 0) or None
    count = StepCount(
        batch=batch,
        accumulation=accumulation,
        world=world,
        epochs=_epochs(config),
        max_steps=max_steps,
        datasets=datasets,
        rounds_up=rounds_up(transformers),
        effective_batch=batch * accumulation * world if world else None,
    )
    reasons = [reason for key, reason in _KEY_REASONS if config.values.get(key)]
    if config.stage == "ppo":
        return replace(count, reasons=("stage", *reasons), unknown={"total": "not_supported"})
    try:
        samples = _samples(config, datasets, lengths)
    except _RefusedError:
        return replace(count, reasons=("settings_invalid", *reasons), unknown={"total": "not_reported"})
    count = replace(
        count,
        rows=samples.rows,
        validation=samples.validation,
        samples=samples.bound,
        unknown=samples.unknown(),
    )
    return _with_steps(count, config, [*samples.reasons, *reasons])


_KEY_REASONS: tuple[tuple[str, StepReason], ...] = (
    ("early_stopping_steps", "early_stopping"),
    ("auto_find_batch_size", "auto_batch"),
)


@dataclass(frozen=True, slots=True)
class _Samples:
    rows: int | None = None
    validation: int | None = None
    bound: Bound | None = None
    reasons: tuple[StepReason, ...] = ()
    why: UnknownReason | None = None

    def unknown(self) -> dict[str, UnknownReason]:
        return {} if self.bound is not None else {"samples": self.why or "not_yet"}


def _with_steps(count: StepCount, config: TrainingConfig, reasons: list[StepReason]) -> StepCount:
    world, samples = count.world, count.samples
    if world is None:
        reasons.append("world_unknown")
    if count.rounds_up is None and count.max_steps is None:
        reasons.append("version_unknown")
    if world and samples is not None:
        whole = config.flag("dataloader_drop_last") is True
        batches = Bound(
            _per_card(samples.low, count.batch, world, whole=whole),
            _per_card(samples.high, count.batch, world, whole=whole),
        )
        ups = (True, False) if count.rounds_up is None else (count.rounds_up,)
        per_epoch = Bound(
            min(_updates(batches.low, count.accumulation, up=up) for up in ups),
            max(_updates(batches.high, count.accumulation, up=up) for up in ups),
        )
        total = Bound(math.ceil(count.epochs * per_epoch.low), math.ceil(count.epochs * per_epoch.high))
        count = replace(count, batches=batches, per_epoch=per_epoch, total=total)
    if count.max_steps is not None:
        total = Bound(count.max_steps, count.max_steps)
        kept: list[StepReason] = [reason for reason in reasons if reason == "early_stopping"]
        return replace(count, total=total, reasons=tuple(kept))
    unknown = dict(count.unknown)
    if count.total is None:
        unknown["total"] = unknown.get("samples", "not_yet")
    return replace(count, reasons=tuple(dict.fromkeys(reasons)), unknown=unknown)


def _per_card(samples: int, batch: int, world: int, *, whole: bool) -> int:
    """Batches of one card: the last batch, and the last round of batches, may be incomplete."""
    if whole:
        return samples // batch // world
    return math.ceil(math.ceil(samples / batch) / world)


def _updates(batches: int, accumulation: int, *, up: bool) -> int:
    whole, rest = divmod(batches, accumulation)
    return max(1, whole + (1 if up and rest else 0))


def _epochs(config: TrainingConfig) -> float:
    epochs = config.number("num_train_epochs")
    return epochs if epochs is not None and 0 < epochs <= _LARGEST else DEFAULT_EPOCHS


def _samples(
    config: TrainingConfig, datasets: tuple[DatasetRows, ...], lengths: TokenLengths | None
) -> _Samples:
    if config.flag("streaming"):
        return _Samples(reasons=("streaming",), why="not_supported")
    if config.values.get("tokenized_path"):
        return _Samples(reasons=("rows_unknown",), why="not_reported")
    why = first_unknown(datasets)
    rows = _merged_rows(config, datasets)
    if rows is None:
        interleaved = why is None and bool(datasets)
        return _Samples(
            reasons=("interleaved" if interleaved else "rows_unknown",), why=why or "not_reported"
        )
    validation = _validation(config, rows)
    left = rows - validation
    if left < 1:
        raise _RefusedError
    bound, reasons = _after_dropping(datasets, rows, validation)
    if packs(config):
        bound_packed = _packed(config, bound, lengths)
        reasons = (*reasons, "packing")
        return _Samples(rows, validation, bound_packed, reasons, None if bound_packed else "not_yet")
    return _Samples(rows, validation, bound, reasons)


def _merged_rows(config: TrainingConfig, datasets: tuple[DatasetRows, ...]) -> int | None:
    strategy = config.text("mix_strategy") or "concat"
    counts = [dataset.rows for dataset in datasets if dataset.rows is not None]
    if len(counts) < len(datasets) or not counts:
        return None
    if len(counts) == 1 or strategy in {"concat", "interleave_once"}:
        return total_rows(datasets)
    if config.values.get("interleave_probs") is not None:
        return None
    return len(counts) * (min(counts) if strategy == "interleave_under" else max(counts))


def _validation(config: TrainingConfig, rows: int) -> int:
    size = config.number("val_size") or 0.0
    if not size <= _LARGEST:
        raise _RefusedError
    if size <= _NO_VALIDATION:
        return 0
    if config.values.get("eval_dataset") is not None or size == 1:
        raise _RefusedError
    return int(size) if size > 1 else math.ceil(size * rows)


def _after_dropping(
    datasets: tuple[DatasetRows, ...], rows: int, validation: int
) -> tuple[Bound, tuple[StepReason, ...]]:
    left = rows - validation
    if any(dataset.usable is None for dataset in datasets):
        return Bound(left, left), ("rows_not_checked",)
    dropped = sum((dataset.rows or 0) - (dataset.usable or 0) for dataset in datasets)
    if not dropped:
        return Bound(left, left), ()
    if not validation and rows == total_rows(datasets):
        return Bound(left - dropped, left - dropped), ()
    return Bound(max(0, left - dropped), left - max(0, dropped - validation)), ("rows_dropped",)


def _packed(config: TrainingConfig, rows: Bound, lengths: TokenLengths | None) -> Bound | None:
    """Samples after packing, between full ones only and half full ones.

    Without lengths nothing is known of pre-training, where long texts become several samples; elsewhere
    a row never becomes more than one.
    """
    splits = config.stage == "pt"
    asked = config.flag("packing") or config.flag("neat_packing")
    room = max(1, positive(config, "cutoff_len", DEFAULT_CUTOFF) - (1 if asked else 0))
    if lengths is None or not lengths.complete:
        return None if splits else Bound(1, rows.high)
    cut = [length if splits else min(length, room) for length in _lengths(lengths)]
    shortest, longest = sum(cut[: rows.low]), sum(cut[-rows.high :])
    groups = math.ceil(rows.high / _GROUP) * positive(config, "preprocessing_num_workers", 1)
    if splits:
        return Bound(max(0, shortest // room - groups), longest // room)
    return Bound(max(1, math.ceil(shortest / room)), min(rows.high, 2 * math.ceil(longest / room) + groups))


def _lengths(lengths: TokenLengths) -> list[int]:
    return [length for length, count in sorted(lengths.counts.items()) for _ in range(count)]
