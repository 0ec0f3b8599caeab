"""Command lines: the one that starts a training, and the ones that people paste.

LLaMA-Factory's launcher decides between training in its own process and starting torchrun; its rules
are repeated here because they decide how a run can be stopped.
"""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from tui.facts.errors import EXIT_USAGE, LlamaherdError
from tui.facts.job import JobKind
from tui.facts.secrets import mask_arguments
from tui.llamafactory.argv import (
    CLI_NAMES,
    Execution,
    agent_target,
    cli_subcommand,
    config_argument,
    execution,
    is_training_script,
)
from tui.llamafactory.environment import Environment
from tui.llamafactory.installed import is_file
from tui.llamafactory.yaml_text import Value

Launch = Literal["cli", "direct", "agent", "service"]
"""How a pasted command starts: by LLaMA-Factory's launcher (which may start torchrun), as the training
script itself, by torchrun or its like, or as a service.
"""

VLLM = "vllm"
"""The subcommand of a pasted vLLM server, which is none of LLaMA-Factory's."""

_SERVICES = frozenset({"webui", "webchat", "api", "chat", "export", "eval"})
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
_PREFIXES = frozenset({"env", "exec", "nohup", "setsid"})
_SHELL_WORDS = re.compile(r"[0-9]*[<>|&;()]+[0-9&-]*|[0-9&]?>+\S+")
_OUTPUT_OPTIONS = ("--output_dir", "--output-dir")
_SHOWN = 200


@dataclass(frozen=True, slots=True)
class PastedCommand:
    """What a person typed after ``--``.

    ``argv`` is without leading assignments (they are in ``environment``) and without ``nohup`` and its
    like, which the keeper makes needless. ``config`` and ``output_dir`` are as typed, relative to the
    job's folder; ``overrides`` are the ``key=value`` words after a config file, ``options`` the settings
    that are given as ``--key value`` where there is no file.
    """

    kind: JobKind
    launch: Launch
    argv: tuple[str, ...]
    subcommand: str
    config: str | None = None
    overrides: tuple[str, ...] = ()
    output_dir: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, Value] = field(default_factory=dict)


def training_command(
    environment: Environment | None, config: Path, overrides: Sequence[str] = ()
) -> tuple[str, ...]:
    """The argument vector that trains ``config``; without an environment, as it would be typed."""
    cli = (CLI_NAMES[0],) if environment is None else environment.command()
    return (*cli, "train", str(config), *overrides)


def launcher_words(environment: Environment | None, arguments: Sequence[str]) -> tuple[str, ...]:
    """What LLaMA-Factory's launcher puts into its torchrun command, which it splits at spaces."""
    launcher = () if environment is None else (str(environment.package or environment.prefix),)
    return (*launcher, *arguments)


def torn_word(words: Sequence[str]) -> str | None:
    """The first of the launcher's words that has a space in it: the ranks would then get no config."""
    return next((word for word in words if any(letter.isspace() for letter in word)), None)


def forces_torchrun(environ: Mapping[str, str]) -> bool:
    """Whether these variables make LLaMA-Factory use torchrun on any number of GPUs."""
    return any(_enabled(environ, name) for name in ("FORCE_TORCHRUN", "USE_MCA", "USE_MEGATRON_BRIDGE"))


def uses_torchrun(environ: Mapping[str, str], visible_gpus: int | None) -> bool | None:
    """Whether ``llamafactory-cli train`` goes through torchrun; ``None`` if the GPU count decides and
    is unknown.
    """
    if forces_torchrun(environ):
        return True
    if _enabled(environ, "USE_RAY") or _enabled(environ, "USE_KT"):
        return False
    return None if visible_gpus is None else visible_gpus > 1


def process_count(environ: Mapping[str, str], visible_gpus: int | None) -> int | None:
    """How many ranks train on this machine; ``None`` if unknown.

    Zero is possible and fails: torchrun forced without a GPU and without NPROC_PER_NODE.
    """
    torchrun = uses_torchrun(environ, visible_gpus)
    if torchrun is None:
        return None
    if not torchrun:
        return 1
    asked = environ.get("NPROC_PER_NODE")
    if asked is None or asked == "gpu":
        return visible_gpus
    return int(asked) if asked.isascii() and asked.isdigit() and len(asked) < 5 else None


def job_environment(kind: JobKind, torchrun: bool | None, job_folder: str) -> dict[str, str]:
    """The variables that this program sets for a job, its token (see ``jobs``) apart.

    A training in one process also learns to stop with its weights saved (the switch that LLaMA-Factory's
    own WebUI uses); several ranks would notice that request at different steps and wait for each other.
    """
    variables = {"PYTHONUNBUFFERED": "1", "TQDM_MININTERVAL": "2"}
    if kind == "training" and torchrun is False:
        variables |= {"LLAMABOARD_ENABLED": "1", "LLAMABOARD_WORKDIR": job_folder}
    return variables


def parse_command_line(argv: Sequence[str]) -> PastedCommand:
    """Understand a pasted command line.

    One word with spaces in it is a quoted command line and is split as a shell would; nothing is ever
    given to a shell.

    Raises:
        LlamaherdError: ``command_empty``, or ``command_unsupported`` with ``command`` (masked) and
            ``why``: ``quotes``, ``shell`` (pipes, redirections and the like), ``program``,
            ``subcommand``.
    """
    words = _split_quoted(argv)
    environment, words = _strip_prefixes(words)
    if not any(words):
        raise LlamaherdError("command_empty", exit_code=EXIT_USAGE)
    if any(_SHELL_WORDS.fullmatch(word) for word in words):
        raise _unsupported(words, "shell")
    run = execution(words)
    cli = cli_subcommand(run)
    if cli is not None:
        return _cli_command(words, *cli, environment)
    if is_training_script(run):
        return _training(words, "direct", run.arguments, environment)
    target = agent_target(run)
    if target is not None and is_training_script(target):
        return _training(words, "agent", target.arguments, environment)
    if _is_vllm_server(run):
        return PastedCommand("service", "service", words, VLLM, environment=environment)
    raise _unsupported(words, "program")


def pasted_uses_torchrun(
    command: PastedCommand, environ: Mapping[str, str], visible_gpus: int | None
) -> bool | None:
    """Whether a pasted command trains in several processes that one agent started."""
    if command.launch == "cli":
        return uses_torchrun({**environ, **command.environment}, visible_gpus)
    return command.launch == "agent"


def named_environment(command: PastedCommand) -> Path | None:
    """The program of a pasted command if it was typed with a folder: then that environment is meant."""
    program = Path(command.argv[0])
    meant = program.name in CLI_NAMES or program.name.startswith("python")
    return program if meant and len(program.parts) > 1 else None


def replace_cli(argv: Sequence[str], environment: Environment | None) -> tuple[str, ...]:
    """``argv`` with a bare program name replaced by the one of the found environment.

    A program typed with its folder stays, and so does a name that the environment lacks.
    """
    program, *rest = argv
    if "/" in program or environment is None:
        return tuple(argv)
    if program in CLI_NAMES:
        return (*environment.command(), *rest)
    own = environment.bin / program
    return (str(own) if is_file(own) else program, *rest)


def _cli_command(
    words: tuple[str, ...], subcommand: str, arguments: tuple[str, ...], environment: Mapping[str, str]
) -> PastedCommand:
    if subcommand == "train":
        return _training(words, "cli", arguments, environment)
    if subcommand not in _SERVICES:
        # LLaMA-Factory prints its usage and exits with 0, which would look like a success.
        raise _unsupported(words, "subcommand")
    return PastedCommand(
        "service", "service", words, subcommand, config_argument(arguments), environment=environment
    )


def _training(
    words: tuple[str, ...], launch: Launch, arguments: tuple[str, ...], environment: Mapping[str, str]
) -> PastedCommand:
    config = config_argument(arguments)
    return PastedCommand(
        "training",
        launch,
        words,
        "train",
        config,
        arguments[1:] if config is not None else (),
        _output_dir(arguments, config is not None),
        environment,
        {} if config is not None else option_values(arguments),
    )


def option_values(arguments: Sequence[str]) -> dict[str, Value]:
    """The settings in ``--key value``, ``--key=value`` and ``--key`` words, as LLaMA-Factory's parser of
    command lines reads them: ``no`` is a word there, and ``5e-5`` a number.
    """
    values: dict[str, Value] = {}
    for word, following in zip(arguments, [*arguments[1:], None], strict=True):
        if not word.startswith("--"):
            continue
        name, equals, attached = word[2:].partition("=")
        has_value = following is not None and not following.startswith("--")
        values[name.replace("-", "_")] = (
            _option_value(attached) if equals else _option_value(following or "") if has_value else True
        )
    return values


def _option_value(text: str) -> Value:
    if text.lower() in {"true", "false"}:
        return text.lower() == "true"
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text


def _output_dir(arguments: Sequence[str], has_config: bool) -> str | None:
    """The last output folder given; ``key=value`` after a config file, options without one."""
    found: str | None = None
    for word, following in zip(arguments, [*arguments[1:], None], strict=True):
        name, equals, value = word.partition("=")
        if equals and name in (("output_dir",) if has_config else _OUTPUT_OPTIONS):
            found = value
        elif not has_config and word in _OUTPUT_OPTIONS and following is not None:
            found = following
    return found or None


def _split_quoted(argv: Sequence[str]) -> tuple[str, ...]:
    if len(argv) != 1 or not any(letter.isspace() for letter in argv[0]):
        return tuple(argv)
    if any(letter in argv[0] for letter in "$`"):
        raise _unsupported(argv, "shell")
    lexer = shlex.shlex(argv[0].replace("\\\n", " "), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        # What a shell would take for its own comes out as words of their own, also where it is glued on.
        return tuple(lexer)
    except ValueError as error:
        raise _unsupported(argv, "quotes") from error


def _strip_prefixes(words: tuple[str, ...]) -> tuple[dict[str, str], tuple[str, ...]]:
    environment: dict[str, str] = {}
    for position, word in enumerate(words):
        assignment = _ASSIGNMENT.fullmatch(word)
        if assignment is not None:
            environment[assignment[1]] = assignment[2]
        elif word not in _PREFIXES:
            return environment, words[position:]
    return environment, ()


def _is_vllm_server(run: Execution) -> bool:
    if run.name == "vllm":
        return run.arguments[:1] == ("serve",)
    return (run.module or "").startswith("vllm.entrypoints.")


def _enabled(environ: Mapping[str, str], name: str) -> bool:
    """LLaMA-Factory's reading of a switch: ``yes`` and ``on`` are off."""
    return environ.get(name, "0").lower() in {"true", "y", "1"}


def _unsupported(words: Sequence[str], why: str) -> LlamaherdError:
    shown = " ".join(mask_arguments(words[:50]))[:_SHOWN]
    return LlamaherdError("command_unsupported", exit_code=EXIT_USAGE, command=shown, why=why)
