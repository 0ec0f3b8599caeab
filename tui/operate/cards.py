"""The cards that a person chose by number, as the driver knows them."""

from collections.abc import Sequence

from tui.collect.gpu_worker import GpuSource
from tui.facts.errors import EXIT_USAGE, LlamaherdError

_PATIENCE = 3.0
_SILENT = ("timed_out", "crashed")


def uuids_of(numbers: Sequence[int], source: GpuSource | None = None) -> tuple[str, ...]:
    """The UUIDs of the cards with these numbers; nothing where the driver does not answer now.

    Raises:
        LlamaherdError: ``gpu_unknown`` (exit 2) for a number that no card has.
    """
    with source or GpuSource() as gpus:
        reading = gpus.first(_PATIENCE)
    if not reading.gpus and reading.driver.error is not None and reading.driver.error.code in _SILENT:
        return ()
    by_number = {gpu.index: gpu.uuid for gpu in reading.gpus}
    missing = [str(number) for number in numbers if number not in by_number]
    if missing:
        raise LlamaherdError("gpu_unknown", exit_code=EXIT_USAGE, gpu=", ".join(missing))
    return tuple(by_number[number] for number in numbers)
