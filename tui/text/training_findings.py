"""Sentences for findings about a training: its losses, pace, memory, checkpoints and settings."""

from tui.facts.finding import EvidenceValue
from tui.facts.waiting import StallCause
from tui.text import units
from tui.text.setting_words import setting_name, setting_value
from tui.text.translate import tr, tr_noop
from tui.text.words import Words, as_duration, as_size


def _figure(value: EvidenceValue) -> str:
    return units.number(value) if isinstance(value, int | float) else units.UNKNOWN


def _percent(value: EvidenceValue) -> str:
    return units.percent(value) if isinstance(value, int | float) else units.UNKNOWN


def _each(value: EvidenceValue) -> str:
    return units.seconds_each(value) if isinstance(value, int | float) else units.UNKNOWN


STALLS: dict[StallCause, str] = {
    "pipe": tr_noop("It waits to print: its output goes to a pipe that nobody reads (a closed browser)."),
    "stopped": tr_noop("A process of it is suspended (state T); `kill -CONT` lets it go on."),
    "disk_wait": tr_noop("A process of it waits in the kernel (state D): a disk, or the driver."),
    "disk_full": tr_noop("The disk that it writes to is full."),
    "data_workers": tr_noop("It waits for its data workers, which are busy."),
    "collective": tr_noop("Its ranks wait for each other (NCCL): one may have failed or be behind."),
    "unknown": tr_noop("What it waits for cannot be seen."),
}


def _stall(value: EvidenceValue) -> str:
    return next((tr(text) for cause, text in STALLS.items() if cause == value), units.UNKNOWN)


TRAINING: dict[str, Words] = {
    "loss_not_finite": Words(
        tr_noop("The loss of {subject} is {loss} since step {step}; the model is broken from there on."),
        tr_noop(
            "Stop it, go back to a checkpoint before that step, and lower the learning rate;"
            " with fp16, use bf16 where the card can."
        ),
    ),
    "loss_spike": Words(
        tr_noop("The loss of {subject} jumped to {loss} at step {step}; it was about {usual} before."),
        tr_noop("One jump may pass. If it stays, lower the learning rate or look at the samples there."),
        {"loss": _figure, "usual": _figure},
    ),
    "loss_flat": Words(
        tr_noop("The loss of {subject} has stopped falling at {loss}, with {fraction} of the steps done."),
        tr_noop("It has converged early: fewer epochs would do, or stop after the next checkpoint."),
        {"loss": _figure, "fraction": _percent},
    ),
    "loss_near_zero": Words(
        tr_noop("The loss of {subject} is near zero ({loss}): it probably learns its samples by heart."),
        tr_noop("Use fewer epochs or more data, and judge an earlier checkpoint by its answers."),
        {"loss": _figure},
    ),
    "eval_loss_rising": Words(
        tr_noop(
            "The evaluation loss of {subject} rises: {last} now, {best} at step {best_step}."
            " The model learns its samples by heart."
        ),
        tr_noop("The checkpoint near that step is probably the better model; use fewer epochs next time."),
        {"last": _figure, "best": _figure},
    ),
    "memory_pressure": Words(
        tr_noop(
            "The log of {subject} reports {count} allocations that failed at first: GPU memory is tight."
        ),
        tr_noop("It may end at a longer sample. Halve the batch and double the accumulation for some room."),
    ),
    "fp16_overflow": Words(
        tr_noop("{count} of {steps} steps of {subject} were skipped because fp16 overflowed."),
        tr_noop(
            "A few at the start are normal. Many mean a learning rate too high, or a model made for bf16."
        ),
    ),
    "samples_dropped": Words(
        tr_noop("LLaMA-Factory dropped samples of {subject} ({count} lines say so): too long or not valid."),
        tr_noop("Raise cutoff_len or correct the data; what is dropped is not trained."),
    ),
    "samples_over_long": Words(
        tr_noop("Some samples of {subject} are longer than the model's own limit."),
        tr_noop("They are cut at cutoff_len; check that the answers survive it."),
    ),
    "throughput_drop": Words(
        tr_noop("{subject} has become slow: a step takes {now}, it took {before}."),
        tr_noop("Look for another process on the same card or CPUs, a hot card, or longer samples."),
        {"now": _each, "before": _each},
    ),
    "resume_incomplete": Words(
        tr_noop(
            "checkpoint-{taken} of {subject} is not complete; LLaMA-Factory would continue from it and fail."
        ),
        tr_noop("Name the last complete one (step {usable}) in resume_from_checkpoint, or remove the other."),
    ),
    "checkpoint_of_older_run": Words(
        tr_noop(
            "checkpoint-{checkpoint} in {subject} is of an older run, beyond step {step} of this one."
            " LLaMA-Factory would continue from it."
        ),
        tr_noop("Remove or move it before continuing this run."),
    ),
    "setting_differs": Words(
        tr_noop("{subject} does not run as configured: {name} is {log}, the config says {config}."),
        tr_noop("Trust the log; look for an override, a default, or a DeepSpeed file that says otherwise."),
        {"name": lambda value: setting_name(str(value)), "log": setting_value, "config": setting_value},
    ),
    "run_untrained": Words(
        tr_noop("{subject} ended without an error, and nothing was trained."),
        tr_noop("The output folder probably held a finished run already; choose a new one, or overwrite it."),
    ),
    "run_partial": Words(
        tr_noop("{subject} ended without an error at step {step} of {total}."),
        tr_noop("The last complete checkpoint can be continued with resume_from_checkpoint."),
    ),
    "stalled": Words(
        tr_noop("{subject} has shown no progress for {seconds}; usually it does every {usual}. {cause}"),
        tr_noop("Look at PID {pid} (state {state}, {wchan}); `llamaherd stop {subject}` ends the run."),
        {"seconds": as_duration, "usual": _each, "cause": _stall},
    ),
    "gpu_idle": Words(
        tr_noop("The cards of {subject} have been idle for {seconds} while {memory} is held."),
        tr_noop("If nothing is loading or waiting on purpose, stop it: the instance is paid for."),
        {"seconds": as_duration, "memory": as_size},
    ),
    "gpu_idle_paid": Words(
        tr_noop(
            "The cards of {subject} have been idle for {seconds} while {memory} is held: {money} so far."
        ),
        tr_noop("If nothing is loading or waiting on purpose, stop it."),
        {"seconds": as_duration, "memory": as_size, "money": _figure},
    ),
    "memory_near_limit": Words(
        tr_noop("{subject} has used {used} of the {total} of GPU {index}."),
        tr_noop(
            "A longer sample or the first evaluation may not fit. Halve the batch, or shorten cutoff_len."
        ),
        {"used": as_size, "total": as_size},
    ),
    "disk_will_fill": Words(
        tr_noop("{subject} still saves {saves} checkpoints of {size}; the disk has {free}."),
        tr_noop("Set save_total_limit, save less often, or make room before step {step}."),
        {"size": as_size, "free": as_size},
    ),
}
