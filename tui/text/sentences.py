"""Sentences for codes: errors, the driver, failures, endings. What is, what it means, what to do."""

from collections.abc import Iterable, Mapping

from tui.facts.errors import ErrorCode, LlamaherdError
from tui.facts.job import Ending, Job, JobState
from tui.facts.machine import DriverError, DriverErrorCode, PidRegime
from tui.facts.training import Failure, FailureKind
from tui.text import units
from tui.text.names import STAGES, signal_name
from tui.text.outside import outside
from tui.text.translate import tr, tr_noop

_SHOWN_ITEMS = 6

ERRORS: dict[ErrorCode, tuple[str, str]] = {
    "config_missing": (
        tr_noop("There is no config {path}."),
        tr_noop("Check the name; a relative name starts in the current folder, or in --cwd."),
    ),
    "config_unreadable": (
        tr_noop("The config {path} cannot be read."),
        tr_noop("Check that it is a file and that you may read it."),
    ),
    "config_invalid": (
        tr_noop("The config {path} is not valid YAML."),
        tr_noop("Correct the place that is named; indents are spaces, and a colon is followed by a space."),
    ),
    "config_not_mapping": (
        tr_noop("The config {path} holds no settings."),
        tr_noop("A training config is a list of lines such as `stage: sft`."),
    ),
    "config_too_large": (
        tr_noop("The config {path} is too large for a training config."),
        tr_noop("Give the YAML of the training, not its data."),
    ),
    "override_invalid": (
        tr_noop("{override} is not a setting of the form key=value."),
        tr_noop("Write it as learning_rate=1e-4, without spaces around the equals sign."),
    ),
    "environment_not_found": (
        tr_noop("No environment with LLaMA-Factory was found."),
        tr_noop("Name it with --env, for example --env /root/LLaMA-Factory/.venv, or activate it first."),
    ),
    "environment_unusable": (
        tr_noop("LLaMA-Factory cannot be run from {path}."),
        tr_noop("Give --env the folder of the environment in which LLaMA-Factory is installed."),
    ),
    "command_empty": (
        tr_noop("There is no command after --."),
        tr_noop(
            "Write the command to start, for example: llamaherd start -- llamafactory-cli train train.yaml"
        ),
    ),
    "command_unsupported": (
        tr_noop("This command cannot be started as a job: {command}"),
        tr_noop(
            "A job is one llamafactory-cli, torchrun or vllm serve command, without pipes or redirections."
        ),
    ),
    "command_space_in_path": (
        tr_noop("LLaMA-Factory tears a name with a space in it apart when it uses torchrun: {path}"),
        tr_noop("Rename it, or go through a link whose name has no space."),
    ),
    "cwd_missing": (
        tr_noop("There is no folder {path}."),
        tr_noop("Give --cwd the folder in which relative paths of the config start."),
    ),
    "output_not_writable": (
        tr_noop("The output folder {path} cannot be written."),
        tr_noop("Choose another output_dir, or make room or permission for this one. Nothing was started."),
    ),
    "state_not_writable": (
        tr_noop("llamaherd cannot keep its job folders in {path}."),
        tr_noop("Make room there, or set LLAMAHERD_HOME to a folder on a local disk that you may write."),
    ),
    "job_unknown": (
        tr_noop("There is no job {job}."),
        tr_noop("`llamaherd jobs` lists the jobs; the beginning of an id is enough."),
    ),
    "job_ambiguous": (
        tr_noop("Several jobs begin with {job}: {matches}."),
        tr_noop("Give more of the id."),
    ),
    "job_unreadable": (
        tr_noop("The records in the job folder {path} cannot be understood."),
        tr_noop("They were left as they are; perhaps another version of llamaherd wrote them."),
    ),
    "job_ended": (
        tr_noop("Job {job} has already ended."),
        tr_noop("There is nothing to stop; `llamaherd status` shows how it ended."),
    ),
    "not_ours": (
        tr_noop("PID {pid} belongs to no job of llamaherd, so it gets no signal."),
        tr_noop("`llamaherd status` shows what it is; stop it where it was started."),
    ),
    "protected": (
        tr_noop("PID {pid} ({what}) gets no signal from here."),
        tr_noop("Nothing was signalled. Stop it where it was started, if you mean it."),
    ),
    "stray_unknown": (
        tr_noop("There are no strays {group} that could be ended."),
        tr_noop("`llamaherd sweep` lists what is left, with the names of the groups."),
    ),
    "pid_missing": (
        tr_noop("There is no process with PID {pid} in this container."),
        tr_noop(
            "A PID from the driver may lie outside this container; `llamaherd status` lists what is here."
        ),
    ),
    "keeper_failed": (
        tr_noop("The keeper of the job did not start in time; it was told to start nothing."),
        tr_noop("Its log says more; try again once the cause is removed."),
    ),
    "command_failed": (
        tr_noop("The command could not be started: {command}"),
        tr_noop("Check that the program exists and may be run in the environment that was chosen."),
    ),
    "gpu_unknown": (
        tr_noop("There is no GPU {gpu} here."),
        tr_noop("`llamaherd status` shows the numbers of the cards; --gpus takes them as 0,1."),
    ),
    "stop_incomplete": (
        tr_noop("Job {job} was not ended completely."),
        tr_noop(
            "What is left is named above. Wait, or restart the instance; start nothing on the same cards."
        ),
    ),
    "readonly": (
        tr_noop("This would act on a job, and --readonly forbids that."),
        tr_noop("Run it again without --readonly."),
    ),
    "confirm_needed": (
        tr_noop("This needs a confirmation, and there is no terminal to ask at."),
        tr_noop("Run it again with --yes."),
    ),
    "not_confirmed": (
        tr_noop("Nothing was done: the question was not answered with yes."),
        tr_noop("Run it again and answer y, or give --yes."),
    ),
    "settings_invalid": (
        tr_noop("The settings in {path} cannot be used."),
        tr_noop("Correct the key that is named, or rename the file to start without settings."),
    ),
    "start_blocked": (
        tr_noop("Nothing was started: {problems}"),
        tr_noop("`llamaherd check` shows everything that was found, and what to do."),
    ),
    "explain_nothing": (
        tr_noop("Nothing can be said of {path}."),
        tr_noop("Give a training log, a trainer_log.jsonl, an output folder or a job's folder."),
    ),
    "io_failed": (
        tr_noop("The output or a file could not be written or read."),
        tr_noop("Look for a full disk or a closed stream. What was done stays done."),
    ),
    "usage": (
        tr_noop("The command line is not understood: {problem}"),
        tr_noop("`{command} --help` shows what it takes."),
    ),
}

CAUSES: dict[str, str] = {
    "missing": tr_noop("it does not exist"),
    "own_environment": tr_noop("it is llamaherd's own environment"),
    "no_python": tr_noop("it has no Python that runs"),
    "no_llamafactory": tr_noop("LLaMA-Factory is not installed in it"),
    "not_an_environment": tr_noop("it is not a Python environment"),
    "quotes": tr_noop("a quotation mark is not closed"),
    "shell": tr_noop("it needs a shell (a pipe, a redirection, several commands)"),
    "program": tr_noop("its program is not one that is known here"),
    "subcommand": tr_noop("llamafactory-cli has no such subcommand for a job"),
    "not_a_file": tr_noop("it is not a file"),
    "unreadable": tr_noop("it may not be read"),
    "too_large": tr_noop("it is too large"),
    "not_utf8": tr_noop("it is not UTF-8 text"),
    "suffix": tr_noop("its name does not end in .yaml or .yml"),
    "unknown_key": tr_noop("there is no such key"),
    "no_settings": tr_noop("it holds no settings"),
    "nothing": tr_noop("it holds nothing that a training writes"),
    "init": tr_noop("it is the first process of this container"),
    "self": tr_noop("it is llamaherd itself"),
    "ancestor": tr_noop("llamaherd was started from it"),
    "keeper": tr_noop("it is the keeper of a job; stop the job instead"),
    "remote_login": tr_noop("it is a remote login"),
    "notebook_server": tr_noop("it is the server of the notebooks"),
    "unknown_program": tr_noop("what it runs cannot be read now"),
    "tensorboard": tr_noop("it is TensorBoard"),
    "platform": tr_noop("the instance itself lives on it"),
    "not_a_process": tr_noop("it is a thread of another process"),
    "other_user": tr_noop("it belongs to another user"),
}
"""What an error's ``why`` may hold; any other text is shown as it is, made harmless."""

DRIVER_ERRORS: dict[DriverErrorCode, tuple[str, str]] = {
    "library_missing": (
        tr_noop("No NVIDIA driver library is here, so no GPU can be read."),
        tr_noop("If this instance should have a GPU, start it with one; training without a GPU needs none."),
    ),
    "driver_not_loaded": (
        tr_noop("The NVIDIA driver is not loaded, so no GPU can be read."),
        tr_noop("If this instance should have a GPU, start it with one from the provider's console."),
    ),
    "no_device": (
        tr_noop("The NVIDIA driver sees no GPU here."),
        tr_noop("Start the instance with a GPU from the provider's console."),
    ),
    "version_mismatch": (
        tr_noop("The driver on the host was upgraded under this container, so GPUs cannot be read any more."),
        tr_noop("A training that runs may go on: let it save first, then restart the instance."),
    ),
    "no_permission": (
        tr_noop("The NVIDIA driver refuses to answer this user."),
        tr_noop("A running training may be untouched: let it save first, then restart the instance."),
    ),
    "timed_out": (
        tr_noop("The NVIDIA driver does not answer; a card may hang."),
        tr_noop("Wait a minute. If it stays so, let a running training save and restart the instance."),
    ),
    "crashed": (
        tr_noop("Reading the NVIDIA driver failed and is tried again."),
        tr_noop("If it stays so, let a running training save and restart the instance."),
    ),
    "unknown_error": (
        tr_noop("The NVIDIA driver reports an unknown error."),
        tr_noop("A training that runs may go on: let it save first, then restart the instance."),
    ),
}

PID_REGIMES: dict[PidRegime, str] = {
    "own_with_memory": tr_noop("the driver names the processes here with their memory"),
    "own_without_memory": tr_noop("the driver names the processes here without their memory"),
    "host": tr_noop("the driver names processes by PIDs from outside this container"),
    "empty": tr_noop("the driver names no processes"),
    "error": tr_noop("the driver's list of processes cannot be read"),
    "no_gpu": tr_noop("there is no GPU"),
    "unknown": tr_noop("whether the driver names processes is not known yet"),
}

STATE_MEANINGS: dict[JobState, str] = {
    "starting": tr_noop("The command is being started."),
    "running": tr_noop("The run is going on; closing this terminal does not touch it."),
    "stopping": tr_noop("A stop was asked for and is under way."),
    "stuck": tr_noop(
        "Some processes outlived every signal; they and their memory stay until the kernel lets go."
    ),
    "ended": tr_noop("Every process of it is gone."),
    "lost": tr_noop(
        "Its keeper is gone without a record of the end, for example after a restart of the instance."
    ),
}

ENDING_MEANINGS: dict[Ending, str] = {
    "finished": tr_noop("All steps are done, and the files of a finished run are there."),
    "stopped": tr_noop("It was stopped on request before the last step."),
    "stopped_saved": tr_noop("It was stopped on request, after the weights had been saved."),
    "failed": tr_noop("It ended with an error."),
    "untrained": tr_noop("It ended without an error, and nothing was trained."),
    "partial": tr_noop("It ended without an error before the last step."),
    "unknown": tr_noop("Nobody saw it end, and its files do not tell how."),
}

FAILURES: dict[FailureKind, str] = {
    "cuda_oom": tr_noop("GPU memory ran out"),
    "host_oom": tr_noop("the memory of the container ran out, and the kernel killed a process"),
    "killed": tr_noop("a process was killed from outside"),
    "nccl": tr_noop("the GPUs lost each other (NCCL)"),
    "config": tr_noop("LLaMA-Factory refused the config"),
    "disk": tr_noop("a file could not be written"),
    "port": tr_noop("a network port was taken"),
    "other": tr_noop("the program ended with an error"),
}


def error_text(error: LlamaherdError) -> tuple[str, str]:
    """What failed, on what, where and why; and what to do.

    Besides the placeholders of its sentences an error may carry ``why`` (a key of ``CAUSES``) or
    ``detail`` or ``reason`` (text from elsewhere), ``line``, ``column``, ``key``, ``nearest`` (the key
    that was perhaps meant), and ``rejected`` (places that were looked at, each ``"place: why"``).
    """
    message, hint = ERRORS[error.code]
    given = {name: value for name, value in error.values.items() if value not in (None, ())}
    values = {name: _shown(value) for name, value in given.items()}
    text = tr(message, **values)
    cause = given.get("why") or given.get("detail") or given.get("reason")
    if place := _place(values):
        text = tr("{sentence} At {place}.", sentence=text, place=place)
    if cause:
        text = tr("{sentence} Reason: {cause}.", sentence=text, cause=_cause(cause))
    if "nearest" in values:
        text = tr("{sentence} Perhaps {nearest} was meant.", sentence=text, nearest=values["nearest"])
    if "rejected" in values:
        text = tr("{sentence} Looked at: {places}.", sentence=text, places=values["rejected"])
    return text, tr(hint, **values)


def _place(values: Mapping[str, str]) -> str:
    parts = []
    if "line" in values:
        parts.append(tr("line {line}", line=values["line"]))
    if "column" in values:
        parts.append(tr("column {column}", column=values["column"]))
    if "key" in values:
        parts.append(tr("key {key}", key=values["key"]))
    return tr(", ").join(parts)


def driver_text(error: DriverError) -> tuple[str, str]:
    """Why no GPU can be read, with the library's own words; and what to do."""
    message, hint = DRIVER_ERRORS[error.code]
    text = tr(message)
    if error.detail:
        text = tr("{sentence} Reason: {cause}.", sentence=text, cause=_shown(error.detail).rstrip(".。"))
    return text, tr(hint)


def failure_text(failure: Failure) -> str:
    """What went wrong, where: ``GPU memory ran out (backward pass, rank 1, 2.0 GiB asked for)``."""
    places = []
    if failure.stage:
        places.append(tr(STAGES[failure.stage]))
    if failure.rank is not None:
        places.append(f"rank {failure.rank}")
    if failure.allocation:
        places.append(tr("{size} asked for", size=units.size(failure.allocation.bytes)))
    what = tr(FAILURES[failure.kind])
    return tr("{what} ({where})", what=what, where=tr(", ").join(places)) if places else what


def exit_text(job: Job) -> str | None:
    """How the main process ended: ``exit code 1`` or ``ended by SIGKILL``; ``None`` if unknown.

    A signal is the negative exit code, as Python's subprocess reports it.
    """
    if job.exit_code is None:
        return None
    if job.exit_code < 0:
        return tr("ended by {signal}", signal=signal_name(-job.exit_code))
    return tr("exit code {code}", code=job.exit_code)


def _cause(cause: object) -> str:
    text = _shown(cause)
    return tr(CAUSES[text]) if text in CAUSES else text.rstrip(".。")


def _shown(value: object) -> str:
    """A value from anywhere as harmless, bounded text; of a collection the first few items."""
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        items = [_with_cause(_shown(item)) for item in value]
        more = [tr("{count} more", count=len(items) - _SHOWN_ITEMS)] if len(items) > _SHOWN_ITEMS else []
        return tr(", ").join(items[:_SHOWN_ITEMS] + more)
    return outside(str(value))


def _with_cause(item: str) -> str:
    place, colon, cause = item.rpartition(": ")
    return (
        tr("{place} ({cause})", place=place, cause=tr(CAUSES[cause])) if colon and cause in CAUSES else item
    )
