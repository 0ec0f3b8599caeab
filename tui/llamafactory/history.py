"""Bounded histories of a run: when steps were done, and what the trainer measured."""

import copy
import math
from collections import deque
from collections.abc import Sequence
from dataclasses import replace

from tui.facts.training import MetricPoint, Plan, StepClock, StepMark
from tui.llamafactory.bars import BarText, seconds_per_step

_CLOCKS = 1024
_POINTS = 4096
_EXACT_EPOCH = 100


class StepHistory:
    """The training bar's steps on the run's own clock.

    The bar's elapsed time starts the clock and is known to the second. The arrival time of the bytes,
    when they are followed live, places a step within that second: the earliest arrival seen, less its
    elapsed time, is the best guess of when the bar began.
    """

    def __init__(self) -> None:
        self.step: int | None = None
        self.resume_step = 0
        self._clocks: deque[StepClock] = deque(maxlen=_CLOCKS)
        self._marks: tuple[StepMark, ...] = ()
        self._origin = math.inf
        self._rate = b""

    @property
    def bar_seconds_per_step(self) -> float | None:
        """The bar's own smoothed figure, worthless after the jump of a resume."""
        return seconds_per_step(self._rate) if not self.resume_step else None

    @property
    def clocks(self) -> tuple[StepClock, ...]:
        """The newest steps, oldest first."""
        return tuple(self._clocks)

    def copy(self) -> "StepHistory":
        """The same history, to be changed without changing this one."""
        twin = copy.copy(self)
        twin._clocks = self._clocks.copy()
        return twin

    def resume_from(self, step: int) -> None:
        """The trainer goes on from ``step``; its bar still starts at 0 and jumps."""
        self.resume_step = step
        self.mark("resume")

    def mark(self, mark: StepMark) -> None:
        """Something happened before the next step."""
        if mark not in self._marks:
            self._marks = (*self._marks, mark)

    def reach(self, step: int) -> None:
        """The log names a step as done; the bar, which is drawn seldom, may not have shown it yet."""
        if self.step is not None:
            self.step = max(self.step, step)

    def take(self, bar: BarText, at: float) -> bool:
        """A training bar; true when it shows a step that was not seen done before."""
        step = max(bar.done, self.resume_step)
        if bar.elapsed is not None:
            self._origin = min(self._origin, at - bar.elapsed)
        self._rate = bar.rate
        if self.step is not None and step <= self.step:
            return False
        is_first = self.step is None
        self.step = step
        if bar.elapsed is not None:
            within = min(at - self._origin, bar.elapsed + 1.0)
            self._clocks.append(StepClock(step, max(within, bar.elapsed), self._taken_marks(is_first, bar)))
        return True

    def _taken_marks(self, is_first: bool, bar: BarText) -> tuple[StepMark, ...]:
        # The mark of a resume belongs to the jump, which comes after the first bar at 0.
        if is_first and bar.done == 0:
            return ()
        marks, self._marks = self._marks, ()
        return marks


class MetricHistory:
    """The trainer's records. Those that arrive before the bar shows their step wait for it: the trainer
    writes a record and draws its bar again right after it.
    """

    def __init__(self) -> None:
        self._points: list[MetricPoint] = []
        self._waiting = 0

    @property
    def points(self) -> tuple[MetricPoint, ...]:
        """All points kept, in the order of the log."""
        return tuple(self._points)

    def step_by_epoch(self, plan: Plan) -> int | None:
        """The step of the newest record where no bar tells it: its epoch is printed to a hundredth, which
        is exact enough where an epoch has few steps.
        """
        epoch = next((point.epoch for point in reversed(self._points) if point.epoch is not None), None)
        if epoch is None or not plan.examples or not plan.effective_batch or not plan.total_steps:
            return None
        per_epoch = plan.steps_per_epoch or math.ceil(plan.examples / plan.effective_batch)
        if per_epoch > _EXACT_EPOCH or not 0 <= epoch < 1e6:
            return None
        return min(plan.total_steps, round(epoch * per_epoch))

    def copy(self) -> "MetricHistory":
        """The same history, to be changed without changing this one."""
        twin = copy.copy(self)
        twin._points = list(self._points)
        return twin

    def add(self, point: MetricPoint) -> None:
        """One more record; the short form that LLaMA-Factory prints for its WebUI is the same record."""
        if self._waiting and _same_record(self._points[-1], point):
            self._points[-1] = _joined(self._points[-1], point)
            return
        self._points.append(point)
        self._waiting += point.step is None
        if len(self._points) > _POINTS:
            self._points = list(thinned(self._points))

    def place(self, step: int | None, plan: Plan) -> None:
        """The bar shows ``step``: the record that came just before belongs to it.

        Several at once come from a buffered stream, long after their steps: they stay without one.
        """
        if not self._waiting:
            return
        waiting = range(len(self._points) - self._waiting, len(self._points))
        self._waiting = 0
        losses = sum(self._points[index].loss is not None for index in waiting)
        for index in waiting:
            point = self._points[index]
            if step is not None and losses <= 1 and _is_plausible(point, step, plan):
                self._points[index] = replace(point, step=step)


def thinned(points: Sequence[MetricPoint]) -> tuple[MetricPoint, ...]:
    """At most ``_POINTS`` points: the older half loses every other one, an evaluation or a loss that is
    no number only if there are too many of these too.
    """
    kept = tuple(points)
    while len(kept) > _POINTS:
        half = len(kept) // 2
        old = [
            point
            for index, point in enumerate(kept[:half])
            if index % 2 == 0 or point.eval_loss is not None or not math.isfinite(point.loss or 0.0)
        ]
        kept = (*(old if len(old) <= half * 3 // 4 else old[::2]), *kept[half:])
    return kept


def _same_record(known: MetricPoint, new: MetricPoint) -> bool:
    if known.step is not None or known.loss is None or new.loss is None:
        return False
    if known.epoch is not None and new.epoch is not None and abs(known.epoch - new.epoch) > 0.011:
        return False
    if not math.isfinite(known.loss) or not math.isfinite(new.loss):
        return str(known.loss) == str(new.loss)
    return abs(known.loss - new.loss) <= 1e-3 * abs(new.loss) + 1e-4


def _joined(short: MetricPoint, full: MetricPoint) -> MetricPoint:
    return replace(
        full,
        learning_rate=short.learning_rate if full.learning_rate is None else full.learning_rate,
        grad_norm=short.grad_norm if full.grad_norm is None else full.grad_norm,
        tokens_seen=short.tokens_seen if full.tokens_seen is None else full.tokens_seen,
    )


def _is_plausible(point: MetricPoint, step: int, plan: Plan) -> bool:
    if point.epoch is None or not plan.examples or not plan.effective_batch:
        return True
    steps_per_epoch = max(plan.examples / plan.effective_batch, 1.0)
    return abs(step / steps_per_epoch - point.epoch) <= max(0.02, 2 / steps_per_epoch, 0.03 * point.epoch)
