"""The highest memory in use that was seen: of every card, and of every run on every card."""

from collections.abc import Iterable, Mapping

from tui.facts.machine import DriverReading, Gpu


class Peaks:
    """Bytes, since this program watches."""

    def __init__(self) -> None:
        self._cards: dict[str, int] = {}
        self._runs: dict[str, dict[str, int]] = {}

    @property
    def cards(self) -> Mapping[str, int]:
        """By card."""
        return self._cards

    def of_run(self, run: str) -> Mapping[str, int]:
        """By card; a run whose sizes the driver never gave has none."""
        return self._runs.get(run, {})

    def note_cards(self, reading: DriverReading) -> None:
        """Take in what the driver says."""
        for card in reading.gpus:
            if card.uuid and card.used is not None:
                self._cards[card.uuid] = max(card.used, self._cards.get(card.uuid, 0))

    def note_runs(self, gpus: Iterable[Gpu], alive: Iterable[str]) -> None:
        """Take in the owners; runs that are not ``alive`` are forgotten."""
        for gpu in gpus:
            sums: dict[str, int] = {}
            for owner in gpu.owners:
                if owner.job is not None and owner.memory is not None:
                    sums[owner.job] = sums.get(owner.job, 0) + owner.memory
            for run, memory in sums.items():
                peaks = self._runs.setdefault(run, {})
                peaks[gpu.uuid] = max(memory, peaks.get(gpu.uuid, 0))
        living = set(alive)
        self._runs = {run: peaks for run, peaks in self._runs.items() if run in living}
