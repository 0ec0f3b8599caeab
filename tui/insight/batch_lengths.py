"""How long the batches of a training are, in padded tokens, as far as it is known before it runs."""

from bisect import bisect_left
from dataclasses import dataclass
from itertools import accumulate

from tui.facts.memory import MemoryReason
from tui.facts.setup import TrainingSetup
from tui.facts.steps import TokenLengths

PADDED_TO = 8
"""LLaMA-Factory pads every batch to a multiple of this."""

_SHOWN_BATCHES = 48
_LARGE_BATCH = 256  # beyond it the longest of a batch is as good as the longest of all
_GOLDEN = 0.618_033_988_749_895  # its multiples fill the unit interval evenly, and are the same every time


@dataclass(frozen=True, slots=True)
class BatchLengths:
    """``low`` and ``high`` bound the longest sample, padded. ``varied`` are the lengths of many batches in
    the order of a shuffled data set, the longest last; a single one where all are equal.
    """

    low: int
    high: int
    varied: tuple[int, ...]
    reasons: tuple[MemoryReason, ...] = ()


def padded(length: float) -> int:
    """A length as a batch has it."""
    return max(PADDED_TO, -(-int(length) // PADDED_TO) * PADDED_TO)


def batch_lengths(setup: TrainingSetup, lengths: TokenLengths | None) -> BatchLengths:
    """The lengths of batches: measured, else between half the limit and the limit.

    The limit is only what is kept at most: samples may all be shorter. Without a measurement they are
    taken to be spread evenly up to the longest.
    """
    limit = padded(setup.cutoff)
    if setup.packing:
        return BatchLengths(limit, limit, (limit,))
    if lengths is None or not lengths.samples:
        spread = tuple(
            padded(max(_places(number, setup.batch)) * setup.cutoff) for number in range(_SHOWN_BATCHES)
        )
        return BatchLengths(
            padded(setup.cutoff / 2), limit, (*spread, limit), ("lengths_unknown", "lengths_vary")
        )
    known = sorted(lengths.counts)
    longest = padded(min(known[-1], setup.cutoff))
    reached = list(accumulate(lengths.counts[length] for length in known))
    spread = tuple(
        padded(min(setup.cutoff, known[bisect_left(reached, max(places) * reached[-1])]))
        for places in (_places(number, setup.batch) for number in range(_SHOWN_BATCHES))
    )
    most = longest if lengths.complete else limit
    reasons: tuple[MemoryReason, ...] = ("lengths_vary",) if len(set(spread)) > 1 else ()
    if not lengths.complete:
        reasons = ("lengths_unknown", *reasons)
    return BatchLengths(longest, most, (*spread, most), reasons)


def _places(batch: int, samples: int) -> list[float]:
    """Places in the sorted data set, 0 to 1, of the samples of a batch."""
    samples = min(samples, _LARGE_BATCH)
    first = batch * samples + 1
    return [(number * _GOLDEN) % 1 for number in range(first, first + samples)]
