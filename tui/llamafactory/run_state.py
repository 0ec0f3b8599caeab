"""What one run has said so far, kept within bounds while its log is read."""

import copy
from collections import deque
from collections.abc import Mapping
from dataclasses import replace

from tui.facts.training import Bar, BarKind, Pause, Plan, ProgressSource, RunLog, Stage
from tui.llamafactory.bars import BarText
from tui.llamafactory.failure import RootCause, Trouble, judge
from tui.llamafactory.history import MetricHistory, StepHistory
from tui.llamafactory.metrics import eval_seconds, metric_point
from tui.llamafactory.tracebacks import Raised

_SETUP: tuple[Stage, ...] = ("start", "import", "dataset", "tokenize", "load", "prepare")
_BEFORE_LOADING = frozenset(_SETUP[:4])
_BAR_OF_STAGE: Mapping[Stage, BarKind] = {
    "dataset": "dataset",
    "tokenize": "tokenize",
    "load": "load",
    "eval": "eval",
    "final_eval": "eval",
}
_PAUSES = 256
_WARNINGS = 32
_TROUBLES = 32
_STEPS_AFTER_FAILURE = 3
"""A run that is this much further did not fail: what was printed had been caught."""


class RunState:
    """Takes what the log's reader has recognised, in the order of the log."""

    def __init__(self) -> None:
        self.stage: Stage = "start"
        self.seen: list[Stage] = ["start"]
        self.plan = Plan()
        self.completed = False
        self.root_cause: RootCause | None = None
        self.began_at: float | None = None
        self.changed_at: float | None = None
        self._evaluating = False
        self._bars: dict[BarKind, Bar] = {}
        self._steps = StepHistory()
        self._metrics = MetricHistory()
        self._evals: deque[Pause] = deque(maxlen=_PAUSES)
        self._saves: deque[Pause] = deque(maxlen=_PAUSES)
        self._train_metrics: dict[str, float] = {}
        self._warnings: list[str] = []
        self._troubles: list[Trouble] = []
        self._trouble_step: int | None = None

    def fork(self) -> "RunState":
        """The same state, to be changed without changing this one."""
        twin = copy.copy(self)
        twin.seen = list(self.seen)
        twin._bars = dict(self._bars)
        twin._steps = self._steps.copy()
        twin._metrics = self._metrics.copy()
        twin._evals, twin._saves = self._evals.copy(), self._saves.copy()
        twin._troubles = list(self._troubles)
        return twin

    # Stages

    def enter(self, stage: Stage, at: float) -> None:
        """The run is in this stage now; what happens before training only goes forward, since ranks
        do it one after another.
        """
        if stage in _SETUP and (self.stage not in _SETUP or _SETUP.index(stage) <= _SETUP.index(self.stage)):
            return
        if stage != self.stage:
            self.stage = stage
            self.changed_at = at
        if stage not in self.seen:
            self.seen.append(stage)

    def begin_training(self, at: float) -> None:
        """``Running training``: a plan follows; what an earlier attempt of this process did is void."""
        self.plan = Plan()
        self.completed = False
        self._evaluating = False
        self._bars.pop("train", None)
        self._steps = StepHistory()
        self.enter("train", at)

    def resume_from(self, step: int) -> None:
        """Training goes on from this global step."""
        self._steps.resume_from(step)

    def begin_eval(self, at: float) -> None:
        """An evaluation or prediction starts, between steps or after the last one."""
        in_loop = self._in_loop
        self._evaluating = True
        self._bars.pop("eval", None)
        if in_loop:
            self._steps.mark("eval")
        self.enter("eval" if in_loop else "final_eval", at)

    def begin_save(self, step: int | None, began: float | None, at: float) -> None:
        """``Saving model checkpoint``; ``step`` is ``None`` for the final weights."""
        if self._evaluating and self._in_loop:
            self._end_eval_without_record(self._steps.step)
        if step is not None:
            self._steps.mark("save")
            self._steps.reach(step)
            self._saves.append(Pause(step=step, began=began))
        self.enter("save", at)

    def complete_training(self, at: float) -> None:
        """``Training completed``: the final save follows."""
        self.completed = True
        self.enter("save", at)

    def gap(self) -> None:
        """A part of the log is missing here."""
        self._steps.mark("gap")

    @property
    def _in_loop(self) -> bool:
        return self.plan.total_steps is not None and not self.completed

    # Bars

    def take_bar(self, bar: BarText, at: float, *, finished: bool = True) -> None:
        """A bar; not ``finished``: more of its fragment may come, so a nested one may not look so yet."""
        kind = self._kind(bar, finished=finished)
        if kind is None:
            return
        known = self._bars.get(kind)
        if known is None or (bar.done, bar.total) != (known.done, known.total):
            self.changed_at = at
        self._bars[kind] = Bar(kind, bar.done, bar.total, bar.elapsed)
        if kind == "train":
            self._train_bar(bar, at)
        elif kind != "eval":
            self.enter(kind, at)

    def _kind(self, bar: BarText, *, finished: bool) -> BarKind | None:
        if bar.description:
            return bar.described_kind
        if bar.nested:
            return "eval"
        is_plan = bar.total is not None and bar.total == self.plan.total_steps
        if self._evaluating:
            if not self._in_loop:
                return "eval"
            # The training bar is drawn again while an evaluation's bar, always nested, is open.
            return None if not is_plan else "train" if finished else None
        return "train" if is_plan else None

    def _train_bar(self, bar: BarText, at: float) -> None:
        step_before = self._steps.step
        if self._steps.take(bar, at):
            if self._evaluating and self._in_loop:
                self._end_eval_without_record(step_before)
            if self.stage in {"eval", "save"} and self._in_loop:
                self.enter("train", at)
            self._forget_survived_trouble()
        self._metrics.place(self._steps.step, self.plan)
        if self._evals and self._evals[-1].step is None:
            self._evals[-1] = replace(self._evals[-1], step=self._steps.step)

    def _forget_survived_trouble(self) -> None:
        step = self._steps.step
        if self._trouble_step is None or step is None:
            return
        if step - self._trouble_step >= _STEPS_AFTER_FAILURE:
            self._troubles.clear()
            self.root_cause = None
            self._trouble_step = None

    # Metrics

    def take_metrics(self, values: Mapping[str, float], at: float) -> None:
        """A dictionary of numbers that the trainer printed; before the model is loaded nothing trains,
        and what looks like one is somebody's data.
        """
        if self.stage in _BEFORE_LOADING:
            return
        if "train_loss" in values:
            self._train_metrics = dict(values)
            return
        if "loss" in values and "epoch" in values:
            self._metrics.add(metric_point(values))
            self.changed_at = at
            if self._steps.step is None and self.stage == "save" and self._in_loop:
                # No bar tells that the save is over, but a loss is logged before its step's save.
                self.enter("train", at)
        elif (seconds := eval_seconds(values)) is not None:
            self._end_eval(values, seconds, at)

    def take_final_eval(self, values: Mapping[str, float], at: float) -> None:
        """The closing ``***** eval metrics *****`` block. Without bars the same figures were printed as
        a dictionary before, and the evaluation is over already.
        """
        seconds = eval_seconds(values)
        if seconds is not None and self._evaluating:
            self._end_eval(values, seconds, at)

    def _end_eval(self, values: Mapping[str, float], seconds: float, at: float) -> None:
        # Between steps the bar may be behind; it is drawn again right after the record.
        step = self._steps.step if self.completed else None
        self._evals.append(Pause(step=step, seconds=seconds))
        self._metrics.add(metric_point(values, step))
        self._evaluating = False
        self.changed_at = at
        if self.stage == "eval":
            self.enter("train", at)

    def _end_eval_without_record(self, step: int | None) -> None:
        """The records go to another stream: what the evaluation's bar showed last is its time."""
        bar = self._bars.get("eval")
        is_whole = bar is not None and bar.done == bar.total
        self._evals.append(Pause(step=step, seconds=bar.elapsed if bar is not None and is_whole else None))
        self._evaluating = False

    # Warnings and trouble

    def warn(self, message: str) -> None:
        """A warning or error record."""
        if message not in self._warnings and len(self._warnings) < _WARNINGS:
            self._warnings.append(message)

    def take_raised(self, raised: Raised) -> None:
        """An exception, or a line that reports one, in the order of the log."""
        if len(self._troubles) >= _TROUBLES:
            del self._troubles[_TROUBLES // 2]
        self._troubles.append(Trouble(raised, self.stage))
        self._trouble_step = self._steps.step or 0

    def facts(self) -> RunLog:
        """Everything, frozen."""
        failure, interrupted = judge(self._troubles, self.root_cause, self.stage)
        step = self._steps.step
        source: ProgressSource | None = "bar" if step is not None else None
        if step is None and (step := self._metrics.step_by_epoch(self.plan)) is not None:
            source = "metrics"
        return RunLog(
            stage=self.stage,
            seen=tuple(self.seen),
            bar=self._bars.get(_BAR_OF_STAGE.get(self.stage, "train")),
            plan=self.plan,
            step=step,
            resume_step=self._steps.resume_step,
            clocks=self._steps.clocks,
            bar_seconds_per_step=self._steps.bar_seconds_per_step,
            metrics=self._metrics.points,
            evals=tuple(self._evals),
            saves=tuple(self._saves),
            training_completed=self.completed,
            train_metrics=dict(self._train_metrics),
            failure=failure,
            interrupted=interrupted,
            warnings=tuple(self._warnings),
            source=source,
            began_at=self.began_at,
            changed_at=self.changed_at,
        )
