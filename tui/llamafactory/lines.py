"""The lines of a console log: which of them say something about the run, and what.

The texts are those of LLaMA-Factory 0.9.4 to 0.9.6, transformers 4.45 to 5.x and torch 2.x.
"""

import re
from dataclasses import replace

from tui.facts.secrets import mask_text
from tui.facts.training import Stage
from tui.llamafactory.clocktext import clock
from tui.llamafactory.failure import RootCause, is_wrapper
from tui.llamafactory.metrics import block_value, metric_values
from tui.llamafactory.records import Record, split_records
from tui.llamafactory.run_state import RunState
from tui.llamafactory.told import ToldReader
from tui.llamafactory.tracebacks import Raised, TracebackReader, rank_prefix

_STAGE_STARTS: tuple[tuple[str, Stage], ...] = (
    ("Loading dataset ", "dataset"),
    ("KV cache is ", "load"),
    ("loading weights file ", "load"),
    ("trainable params: ", "prepare"),
)
_PLAN = re.compile(r"([A-Z][^=]{1,100}?) = ([\d,]{1,20})")
_PLAN_FIELDS = (
    ("Num examples", "examples"),
    ("Num Epochs", "epochs"),
    ("Num update steps per epoch", "steps_per_epoch"),
    ("Instantaneous batch size per device", "batch_per_device"),
    ("Total train batch size", "effective_batch"),
    ("Gradient Accumulation steps", "accumulation"),
    ("Total optimization steps", "total_steps"),
    ("Total training steps", "total_steps"),
    ("Number of trainable parameters", "trainable_parameters"),
)
_PROCESS_RANK = re.compile(r"Process rank: (\d{1,5}),")
_RESUMED = re.compile(
    r"(?:Continuing training from|Resuming training from checkpoint with epoch \d{1,9} and) "
    r"global step ([\d,]{1,15})"
)
_SAVING = re.compile(r"Saving model checkpoint to (.{0,4096})")
_CHECKPOINT = re.compile(r"(?:^|[/\\])checkpoint-(\d{1,12})[/\\]?$")
_WARNING_LIMIT = 300

_ROOT_CAUSE = "Root Cause (first observed failure):"
_ROOT_RANK = re.compile(r" {1,8}rank {1,8}: (\d{1,6}) ")
_ROOT_EXIT = re.compile(r" {1,8}exitcode {1,8}: (-?\d{1,6}) ")
_RANK_FAILED = re.compile(r"failed \(exitcode: (-?\d{1,6})\) local_rank: (\d{1,6}) ")
_DEATH_SIGNAL = re.compile(r"torch/distributed/elastic/.{1,200}\] (Received \d{1,3} death signal)")
_WATCHDOG = re.compile(
    r"ProcessGroupNCCL\.cpp.{0,80}?Rank (\d{1,6})\] "
    r"(Watchdog caught collective operation timeout.{0,400}|Heartbeat monitor timed out.{0,200})"
)
_SERVER_PORT = re.compile(r"ERROR: {1,8}\[Errno 98\] (.{1,300})")


class LineReader:
    """Reads whole lines (without bars and control sequences) and tells the run's state."""

    def __init__(self) -> None:
        self._start_over()

    def _start_over(self) -> None:
        self.run = RunState()
        self.told = ToldReader()
        self._tracebacks = TracebackReader()
        self._ranks: set[int] = set()
        self._planning = False
        self._continued = False
        self._final_eval: dict[str, float] | None = None
        self._root_rank: int | None = None
        self._in_root_cause = False

    def gap(self) -> None:
        """The lines that follow are not the next ones of the log."""
        self._tracebacks = TracebackReader()
        self._planning = self._continued = self._in_root_cause = False
        self._final_eval = None
        self.run.gap()

    def preview(self) -> RunState:
        """The state with what is pending here, apart from the state that goes on."""
        twin = self.run.fork()
        if self._final_eval is not None:
            twin.take_final_eval(self._final_eval, twin.changed_at or 0.0)
        return twin

    def line(self, text: str, at: float) -> None:
        """One line, or one piece of a line that a bar cut off."""
        if not text.strip():
            return
        self.run.enter("import", at)
        belongs, raised = self._tracebacks.line(text)
        if raised is not None and not is_wrapper(raised):
            self.run.take_raised(raised)
        if belongs:
            return
        before, records = split_records(text)
        if before.strip():
            self._bare(before, at)
        for record in records:
            self._record(record, at)

    # Records of the loggers

    def _record(self, record: Record, at: float) -> None:
        self._end_block(at)
        message = record.message.strip()
        self._continued = not message
        self.told.message(message)
        if record.level in {"WARNING", "ERROR", "CRITICAL"}:
            self.run.warn(mask_text(message)[:_WARNING_LIMIT])
        elif message:
            self._message(message, record, at)
        if self.run.began_at is None:
            self.run.began_at = clock(record.head)

    def _message(self, message: str, record: Record, at: float) -> None:
        if self._planning and self._plan_line(message):
            return
        if message.startswith("***** Running training"):
            self.run.begin_training(at)
            self._planning = True
        elif message.startswith("Initializing ") and "distributed tasks" in message:
            self._new_run(bool(self._ranks), at)
        elif message.startswith("Process rank: "):
            self._process_rank(message, at)
        elif message.startswith("Saving model checkpoint to "):
            self._saving(message, record, at)
        elif message.startswith("{'"):
            self.run.take_metrics(metric_values(message), at)
        elif (resumed := _RESUMED.match(message)) is not None:
            self.run.resume_from(_integer(resumed[1]))
        elif self._marker(message, at):
            pass
        else:
            stage = next((stage for start, stage in _STAGE_STARTS if message.startswith(start)), None)
            if stage is not None:
                self.run.enter(stage, at)

    def _marker(self, message: str, at: float) -> bool:
        """Markers that may also stand in the line after their record's head."""
        if message.startswith(("***** Running Evaluation", "***** Running Prediction")):
            self._planning = False
            self.run.begin_eval(at)
        elif message.startswith("Training completed."):
            self.run.complete_training(at)
        else:
            return False
        return True

    def _plan_line(self, message: str) -> bool:
        match = _PLAN.fullmatch(message)
        if match is None:
            self._planning = False
            return False
        field = next((field for start, field in _PLAN_FIELDS if match[1].startswith(start)), None)
        if field is not None:
            self.run.plan = replace(self.run.plan, **{field: _integer(match[2])})
        return True

    def _process_rank(self, message: str, at: float) -> None:
        match = _PROCESS_RANK.match(message)
        if match is None:
            return
        rank = int(match[1])
        self._new_run(rank in self._ranks, at)
        self._ranks.add(rank)

    def _new_run(self, announced_before: bool, at: float) -> None:
        """A rank that announces itself again belongs to the next run in the same log."""
        if announced_before:
            self._start_over()
        self.run.enter("import", at)

    def _saving(self, message: str, record: Record, at: float) -> None:
        match = _SAVING.match(message)
        checkpoint = _CHECKPOINT.search(match[1]) if match else None
        self.run.begin_save(int(checkpoint[1]) if checkpoint else None, clock(record.head), at)

    # Lines that no logger wrote

    def _bare(self, text: str, at: float) -> None:
        _, text = rank_prefix(text)
        if self._continued and self._marker(text.strip(), at):
            self._continued = False
        elif text.startswith("***** eval metrics *****"):
            self._final_eval = {}
        elif self._final_eval is not None and (value := block_value(text.rstrip())) is not None:
            if value[1] is not None:
                self._final_eval[value[0]] = value[1]
        elif text.lstrip().startswith("{'"):
            self._end_block(at)
            self.run.take_metrics(metric_values(text), at)
        else:
            self._end_block(at)
            self.told.line(text)
            self._trouble(text)

    def _end_block(self, at: float) -> None:
        if self._final_eval is not None:
            self.run.take_final_eval(self._final_eval, at)
            self._final_eval = None

    def _trouble(self, text: str) -> None:
        if _ROOT_CAUSE in text:
            self._in_root_cause, self._root_rank = True, None
        elif self._in_root_cause and (rank := _ROOT_RANK.match(text)) is not None:
            self._root_rank = int(rank[1])
        elif self._in_root_cause and (code := _ROOT_EXIT.match(text)) is not None:
            self._in_root_cause = False
            if self._root_rank is not None:
                self.run.root_cause = RootCause(self._root_rank, int(code[1]))
        elif (failed := _RANK_FAILED.search(text)) is not None:
            if self.run.root_cause is None:
                self.run.root_cause = RootCause(int(failed[2]), int(failed[1]))
        elif (signal := _DEATH_SIGNAL.search(text)) is not None:
            self.run.take_raised(Raised(None, "SignalException", signal[1]))
        elif (watchdog := _WATCHDOG.search(text)) is not None:
            self.run.take_raised(Raised(int(watchdog[1]), "ProcessGroupNCCL", watchdog[2]))
        elif (port := _SERVER_PORT.match(text)) is not None:
            self.run.take_raised(Raised(None, "OSError", f"[Errno 98] {port[1]}"))


def _integer(text: str) -> int:
    return int(text.replace(",", "") or 0)
