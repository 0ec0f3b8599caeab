"""Measured token lengths in a few numbers: percentiles, what a limit cuts, what padding costs."""

from bisect import bisect_left, bisect_right
from itertools import accumulate

from tui.facts.steps import LengthSummary, TokenLengths
from tui.insight.batch_lengths import PADDED_TO, padded

_PERCENTILES = (50, 90, 95, 99)
_LEAST_LIMITS = (512, 1024, 2048, 4096)


def summarize(lengths: TokenLengths, *, batch: int, cutoff: int) -> LengthSummary | None:
    """The numbers to choose a limit by; ``None`` if nothing was measured.

    A percentile is the smallest length that at least this share of the samples does not exceed.
    """
    known = sorted(lengths.counts)
    if not known:
        return None
    reached = list(accumulate(lengths.counts[length] for length in known))
    total, longest = reached[-1], known[-1]
    limits = sorted({*_limits(longest), cutoff})
    return LengthSummary(
        samples=total,
        complete=lengths.complete,
        longest=longest,
        percentiles={share: known[bisect_left(reached, -(-share * total // 100))] for share in _PERCENTILES},
        cut={limit: total - _within(known, reached, limit) for limit in limits},
        cutoff=cutoff,
        batch=batch,
        padding=_padding(known, reached, batch, cutoff),
        padded_to=PADDED_TO,
        dropped=lengths.dropped,
    )


def _limits(longest: int) -> list[int]:
    """512, 1024 and so on, up to the first that cuts nothing."""
    limits = [*_LEAST_LIMITS]
    while limits[-1] < longest:
        limits.append(limits[-1] * 2)
    return limits


def _within(known: list[int], reached: list[int], limit: int) -> int:
    """How many samples are not longer than a limit."""
    position = bisect_right(known, limit)
    return reached[position - 1] if position else 0


def _padding(known: list[int], reached: list[int], batch: int, cutoff: int) -> float:
    """The share of padding, expected over random batches.

    A length is the longest of a batch with the chance that no sample is longer, without the chance that
    all are shorter.
    """
    total = reached[-1]
    filled = expected = before = 0.0
    counted = 0
    for length, count in zip(known, reached, strict=True):
        kept = min(length, cutoff)
        chance = (count / total) ** batch
        expected += padded(kept) * (chance - before)
        filled += kept * (count - counted) / total
        before, counted = chance, count
    return 1 - filled / expected
