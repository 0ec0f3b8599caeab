"""What trainings really took, beside what was estimated for them: one small file in the state folder.

After a training its highest memory in use, which the sampler wrote, is compared with the estimate for its
config. The measured figure is the card's: what others had on it at that moment is in it.
"""

import os
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from tui.facts.errors import LlamaherdError
from tui.facts.job import JobRecord
from tui.facts.machine import Gpu
from tui.facts.memory import ByteRange, Calibration
from tui.insight.memory import estimate
from tui.jobs.client import FoundJob, is_over, list_jobs
from tui.jobs.folder import JobFolder
from tui.jobs.samples import read_peaks
from tui.llamafactory.config import TrainingConfig, load_config, resolve
from tui.llamafactory.environment import Environment, find_environment
from tui.llamafactory.setup import training_setup
from tui.operate.estimate import find_model, world_size

NAME = "calibration.json"
_VERSIONS = ("torch", "transformers", "llamafactory")
_KEPT = 500
_FILE_LIMIT = 4 << 20
_AT_ONCE = 3  # an estimate takes up to a second


def read_calibrations(roots: Iterable[Path]) -> tuple[Calibration, ...]:
    """All entries of all state folders; what cannot be read is left out."""
    found: dict[str, Calibration] = {}
    for root in roots:
        for entry in _read(root / NAME):
            found.setdefault(entry.job, entry)
    return tuple(found.values())


def remember(root: Path, entries: Sequence[Calibration]) -> None:
    """Add entries to the file of a state folder, the newest replacing the oldest.

    A folder that cannot be written keeps what it has: nothing but the comparison is lost.
    """
    if not entries:
        return
    kept = {entry.job: entry for entry in (*_read(root / NAME), *entries)}
    newest = sorted(kept.values(), key=lambda entry: entry.measured_at)[-_KEPT:]
    try:
        with tempfile.NamedTemporaryFile(dir=root, prefix=f".{NAME}.", delete=False) as file:
            file.write(msgspec.json.encode(newest))
            file.flush()
            os.fsync(file.fileno())
        Path(file.name).replace(root / NAME)
    except OSError:
        return


def learn(roots: Sequence[Path], cards: Sequence[Gpu], environ: Mapping[str, str]) -> tuple[Calibration, ...]:
    """All calibrations, after comparing trainings that have ended since; a few at a time.

    Args:
        roots: The state folders; new entries go into the first.
        cards: The cards of this machine, whose names the entries carry.
        environ: Where a model named by its hub is looked for.
    """
    known = read_calibrations(roots)
    seen = {entry.job for entry in known}
    names = {gpu.uuid: gpu.name for gpu in cards}
    fresh: list[Calibration] = []
    for job in reversed(list_jobs(roots)):
        if len(fresh) >= _AT_ONCE:
            break
        if isinstance(job, FoundJob) and job.record.id not in seen and is_over(job.record):
            entry = compare(job.record, job.folder, names, environ)
            fresh += [entry] if entry is not None else []
    if roots:
        remember(roots[0], fresh)
    return (*known, *fresh)


def compare(
    record: JobRecord, folder: JobFolder, names: Mapping[str, str], environ: Mapping[str, str]
) -> Calibration | None:
    """An ended training's peak beside its estimate; ``None`` where one of them is not known."""
    peaks = {uuid: peak for uuid, peak in read_peaks(folder.path).items() if uuid in names}
    if record.kind != "training" or not peaks or not record.command:
        return None
    try:
        config = resolve(load_config(folder.config), Path(record.cwd))
    except LlamaherdError:
        return None
    environment = _environment_of(record)
    uuid = max(peaks, key=lambda uuid: peaks[uuid])
    used = {**environ, **record.environment}
    model = find_model(config, used)
    if model is None or environment is None:
        return None
    world = world_size(len(record.gpus) or len(peaks), used)
    setup = training_setup(
        config, model, world=world, torchrun=(world or 1) > 1, versions=environment.versions
    )
    result = estimate(model, setup)
    if result.needed is None or result.reserved is None:
        return None
    return Calibration(
        job=record.id,
        model=model.name,
        card=names[uuid],
        versions={name: environment.versions.get(name) for name in _VERSIONS},
        method=_method(config),
        tokens=result.tokens,
        needed=result.needed,
        reserved=result.reserved,
        measured=peaks[uuid],
        measured_at=record.ended_at or record.created_at,
    )


def _method(config: TrainingConfig) -> str:
    bits = config.whole("quantization_bit")
    method = config.text("finetuning_type") or "lora"
    return f"{method}, {bits} bit" if bits else method[:40]


def _environment_of(record: JobRecord) -> Environment | None:
    try:
        return find_environment(
            explicit=Path(record.command[0]),
            settings=None,
            environ={},
            cwd=Path(record.cwd),
            own_prefix=Path(sys.prefix),
            roots=(),
        )
    except LlamaherdError:
        return None


def _read(path: Path) -> tuple[Calibration, ...]:
    try:
        with path.open("rb") as file:
            data = file.read(_FILE_LIMIT + 1)
        entries = msgspec.json.decode(data, type=tuple[Calibration, ...])
    except (OSError, msgspec.DecodeError):
        return ()
    return tuple(entry for entry in entries if _possible(entry.needed) and _possible(entry.reserved))


def _possible(size: ByteRange) -> bool:
    return 0 <= size.low <= size.high
