"""How long a training step takes, from the times at which steps were seen done.

The clock of a log that is read late has a resolution of one second, so single steps are no samples:
steps are joined to blocks of several seconds, and the estimate is the mean over blocks, since what is
wanted is the time of many steps to come. Blocks that stand out eightfold are pauses (a suspended
process), not steps, and the first steps of a process are warm-up.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from tui.facts.training import RunLog, StepClock

_BLOCK_SECONDS = 5.0
_WARM_UP_STEPS = 2
_LEAST_SECONDS = 3.0
"""Below this the clock's resolution is most of the figure, and the bar's own one is better."""
_PAUSE_FACTOR = 8.0
_LEAST_STEPS = 32
_RECENT_SHARE, _NEWEST_SHARE = 0.75, 0.25
_CHANCE = 2.0
"""Standard errors."""
_MAD_TO_DEVIATION = 1.4826


@dataclass(frozen=True, slots=True)
class Speed:
    """Seconds of one step: the mean over ``steps`` steps, and the standard deviation of single ones
    (``None`` when there are too few to tell).
    """

    seconds: float
    deviation: float | None
    steps: int


@dataclass(frozen=True, slots=True)
class _Block:
    steps: int
    seconds: float

    @property
    def per_step(self) -> float:
        return self.seconds / self.steps


def step_speed(log: RunLog) -> Speed | None:
    """The speed of the steps without evaluations and saves, ``None`` while nothing can be said."""
    blocks = _blocks(log.clocks, log.resume_step + _WARM_UP_STEPS) or _blocks(log.clocks, log.resume_step)
    blocks = _current(_without_pauses(blocks))
    seconds = sum(block.seconds for block in blocks)
    steps = sum(block.steps for block in blocks)
    if seconds < _LEAST_SECONDS:
        if log.bar_seconds_per_step is not None:
            return Speed(log.bar_seconds_per_step, None, steps)
        # Less than a second is not measured by a clock of whole seconds.
        return Speed(seconds / steps, None, steps) if seconds >= 1.0 else None
    return Speed(seconds / steps, _deviation(blocks, seconds / steps), steps)


def _blocks(clocks: Sequence[StepClock], warm_until: int) -> list[_Block]:
    blocks: list[_Block] = []
    for run in _clean_runs(clocks, warm_until):
        start = run[0]
        for clock in run[1:]:
            if clock.at - start.at >= _BLOCK_SECONDS or clock is run[-1]:
                blocks.append(_Block(clock.step - start.step, clock.at - start.at))
                start = clock
    return blocks


def _clean_runs(clocks: Sequence[StepClock], warm_until: int) -> Iterator[list[StepClock]]:
    """Stretches without evaluation, save, resume or gap; a clock that went back also ends one."""
    run: list[StepClock] = []
    for clock in clocks:
        if run and (clock.marks or clock.at < run[-1].at):
            if len(run) > 1:
                yield run
            run = []
        if clock.step >= warm_until:
            run.append(clock)
    if len(run) > 1:
        yield run


def _current(blocks: list[_Block]) -> list[_Block]:
    """The steps whose speed is that of now: nearly all of them, since uneven samples make a mean of few
    inexact, but only the newest ones where these differ from the others by more than chance.
    """
    newest = _newest(blocks, _NEWEST_SHARE)
    others = blocks[: len(blocks) - len(newest)]
    spread = _deviation(newest, _per_step(newest)) if newest else None
    if not others or spread is None:
        return _newest(blocks, _RECENT_SHARE)
    error = spread * math.sqrt(1 / _steps(newest) + 1 / _steps(others))
    differ = abs(_per_step(newest) - _per_step(others)) > _CHANCE * error
    return newest if differ else _newest(blocks, _RECENT_SHARE)


def _newest(blocks: list[_Block], share: float) -> list[_Block]:
    wanted = max(_LEAST_STEPS, share * _steps(blocks))
    taken: list[_Block] = []
    for block in reversed(blocks):
        if wanted <= 0:
            break
        taken.insert(0, block)
        wanted -= block.steps
    return taken


def _steps(blocks: Sequence[_Block]) -> int:
    return sum(block.steps for block in blocks)


def _per_step(blocks: Sequence[_Block]) -> float:
    return sum(block.seconds for block in blocks) / _steps(blocks)


def _without_pauses(blocks: list[_Block]) -> list[_Block]:
    long_blocks = [block.per_step for block in blocks if block.seconds >= _BLOCK_SECONDS]
    if len(long_blocks) < 3:
        return blocks
    limit = _PAUSE_FACTOR * median(long_blocks)
    return [block for block in blocks if block.per_step <= limit or block.seconds < _BLOCK_SECONDS]


def _deviation(blocks: Sequence[_Block], mean: float) -> float | None:
    # The mean of k steps deviates by 1/sqrt(k) of what one step does.
    deviations = [
        math.sqrt(block.steps) * abs(block.per_step - mean)
        for block in blocks
        if block.seconds >= _BLOCK_SECONDS
    ]
    return _MAD_TO_DEVIATION * median(deviations) if len(deviations) >= 3 else None


def pause_intervals(log: RunLog, mark: str) -> list[tuple[StepClock, float]]:
    """The intervals with this mark: the clock that ends one, and its seconds."""
    return [(after, after.at - before.at) for before, after in pairwise(log.clocks) if mark in after.marks]
