"""Percentiles, cuts and padding of measured lengths."""

import random
from statistics import mean

import pytest

from tui.facts.steps import TokenLengths
from tui.insight.batch_lengths import padded
from tui.insight.length_summary import summarize


def test_percentiles_are_lengths_that_occur() -> None:
    summary = summarize(TokenLengths(dict.fromkeys(range(1, 101), 1), complete=True), batch=1, cutoff=2048)
    assert summary is not None
    assert summary.percentiles == {50: 50, 90: 90, 95: 95, 99: 99}
    assert (summary.longest, summary.samples) == (100, 100)


def test_one_sample_is_every_percentile() -> None:
    summary = summarize(TokenLengths({7: 1}, complete=True), batch=4, cutoff=2048)
    assert summary is not None
    assert set(summary.percentiles.values()) == {7}


def test_cuts_count_what_is_longer_than_the_limit() -> None:
    summary = summarize(TokenLengths({512: 3, 513: 2, 9000: 1}), batch=1, cutoff=600)
    assert summary is not None
    assert summary.cut == {512: 3, 600: 1, 1024: 1, 2048: 1, 4096: 1, 8192: 1, 16384: 0}
    assert not summary.complete


def test_nothing_measured_has_no_summary() -> None:
    assert summarize(TokenLengths(problem="cancelled"), batch=1, cutoff=2048) is None


@pytest.mark.parametrize("batch", [1, 4, 16])
def test_padding_is_what_random_batches_have(batch: int) -> None:
    chance = random.Random(3)
    lengths = [int(chance.lognormvariate(5, 0.7)) + 1 for _ in range(2000)]
    counts = {length: lengths.count(length) for length in set(lengths)}
    summary = summarize(TokenLengths(counts, complete=True), batch=batch, cutoff=600)
    assert summary is not None
    cut = [min(length, 600) for length in lengths]
    drawn = [[chance.choice(cut) for _ in range(batch)] for _ in range(4000)]
    filled = mean(sum(row) / batch for row in drawn)
    assert summary.padding == pytest.approx(1 - filled / mean(padded(max(row)) for row in drawn), abs=0.02)
