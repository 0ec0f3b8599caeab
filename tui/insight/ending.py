"""How a job ended, from the keeper's record, the log and the files: never from the exit code alone.

An abort that LLaMA-Factory takes for itself and a run that had nothing left to train both exit with 0;
a stop through torchrun exits with 1 and is no failure.
"""

import signal
from dataclasses import replace

from tui.facts.job import Ending, ExitStatus, JobRecord, StopReport
from tui.facts.training import Failure, OutputFacts, RunLog

_CLOCK_STEP = 1.0
"""Seconds that a file may seem older than the start of the run that wrote it: coarse file times."""


def ending(record: JobRecord, log: RunLog, output: OutputFacts | None) -> tuple[Ending, Failure | None]:
    """How a job in state ``ended`` or ``lost`` ended, and the failure if it failed.

    ``unknown`` for a job that has not ended, and where neither an exit status nor the files prove
    anything.
    """
    if record.state not in {"ended", "lost"}:
        return "unknown", None
    never_ran = record.started_at is None and record.exit is None
    if record.state == "ended" and never_ran and record.stop is not None:
        return "stopped", None
    if record.error is not None:
        return "failed", Failure("other", "start", None, record.error)
    if record.state == "lost" or record.exit is None:
        return _unwitnessed(record, log, output)
    stop = _acted_stop(record)
    if record.kind == "service":
        return _service(record, record.exit, log, stop)
    succeeded = record.exit.code == 0
    if _proves_finished(record, log, output) and (succeeded or (stop is None and not _fails(log, output))):
        return "finished", None
    if stop is not None:
        return _stopped(record, stop, log, output), None
    if not succeeded:
        return "failed", _failure(record, record.exit, log)
    return _without_error(record, log, output), None


def _unwitnessed(record: JobRecord, log: RunLog, output: OutputFacts | None) -> tuple[Ending, Failure | None]:
    if record.kind == "training" and _proves_finished(record, log, output):
        return "finished", None
    stop = _acted_stop(record)
    if record.state == "ended" and stop is not None:
        return _stopped(record, stop, log, output), None
    return "unknown", None


def _service(
    record: JobRecord, status: ExitStatus, log: RunLog, stop: StopReport | None
) -> tuple[Ending, Failure | None]:
    if stop is not None:
        return "stopped", None
    if status.code == 0:
        return "finished", None
    return "failed", _failure(record, status, log)


def _acted_stop(record: JobRecord) -> StopReport | None:
    """The stop, if it had done something before the run ended by itself."""
    stop = record.stop
    if stop is None or stop.kind == "cancel" or not stop.steps:
        return None
    if record.ended_at is not None and stop.requested_at > record.ended_at:
        return None
    return stop


def _stopped(record: JobRecord, stop: StopReport, log: RunLog, output: OutputFacts | None) -> Ending:
    # An abort before the first step also saves: the weights it started from.
    saved = output is not None and _is_new(record, output.weights_at)
    if stop.kind == "keep_weights" and saved and _has_trained(log, output):
        return "stopped_saved"
    return "stopped"


def _proves_finished(record: JobRecord, log: RunLog, output: OutputFacts | None) -> bool:
    """The final state says that every step was done, and this run wrote it after training some."""
    if output is None or output.global_step is None or not output.max_steps:
        return False
    is_complete = output.global_step >= output.max_steps
    is_new = _is_new(record, output.all_results_at) and _is_new(record, output.trainer_state_at)
    return is_complete and is_new and _has_trained(log, output)


def _has_trained(log: RunLog, output: OutputFacts | None) -> bool:
    # A finished run that is started again resumes at its last step and rewrites all results.
    reached = log.step if log.step is not None else output.global_step if output is not None else None
    return reached is not None and reached > log.resume_step


def _fails(log: RunLog, output: OutputFacts | None) -> bool:
    """Whether the run failed after training: the evaluation that follows may run out of memory."""
    if log.failure is not None:
        return True
    began = log.began_at or 0.0
    evaluated = output is not None and output.eval_results_at is not None and output.eval_results_at >= began
    return log.stage == "final_eval" and not evaluated


def _without_error(record: JobRecord, log: RunLog, output: OutputFacts | None) -> Ending:
    """Exit code 0 and no final state of this run: what did it do?"""
    total = log.plan.total_steps
    if log.step is not None and log.step > log.resume_step:
        # The log of this very run saw steps, whatever became of the output folder since.
        is_complete = log.training_completed and total is not None and log.step >= total
        return "finished" if is_complete else "partial"
    if output is None or _is_unreadable(output):
        return "unknown"
    wrote_state = _is_new(record, output.trainer_state_at)
    if not wrote_state and _is_new(record, output.all_results_at) and "train" not in log.seen:
        return "finished"  # evaluation or prediction alone: there were no steps to do
    return "partial" if wrote_state and _has_trained(log, output) else "untrained"


def _is_unreadable(output: OutputFacts) -> bool:
    return any(reason != "missing_file" for reason in output.unknown.values())


def _failure(record: JobRecord, status: ExitStatus, log: RunLog) -> Failure:
    """What the log says, or what the exit status does; the kernel's memory killer leaves no words."""
    signal_number = _signal_of(status)
    was_killed = signal_number == signal.SIGKILL or (log.failure is not None and log.failure.kind == "killed")
    if was_killed:
        known = log.failure or Failure("killed", log.stage, None, "SIGKILL")
        return replace(known, kind="host_oom") if _memory_killer_struck(record) else known
    if log.failure is not None:
        return log.failure
    if signal_number is not None:
        return Failure("killed", log.stage, None, _signal_name(signal_number))
    if log.interrupted:
        # Somebody signalled torchrun or pressed Ctrl-C; the launcher above tells it by its own exit code.
        return Failure("killed", log.stage, None, "")
    return Failure("other", log.stage, None, record.error or "")


def _memory_killer_struck(record: JobRecord) -> bool:
    before, after = record.oom_kills_start, record.oom_kills_end
    return before is not None and after is not None and after > before


def _signal_of(status: ExitStatus) -> int | None:
    if status.signal is not None:
        return status.signal
    if status.code is None:
        return None
    if status.code < 0:
        return -status.code
    # A shell in between reports a signal as 128 + its number.
    return status.code - 128 if 128 < status.code < 128 + signal.NSIG else None


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIG{number}"


def _is_new(record: JobRecord, changed_at: float | None) -> bool:
    if changed_at is None:
        return False
    began = record.started_at if record.started_at is not None else record.created_at
    return changed_at >= began - _CLOCK_STEP
