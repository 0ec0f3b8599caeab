"""What an argument vector executes.

A process is judged by the program it runs (its first word, or the script or module of its
interpreter), never by a word that occurs somewhere: ``vim train.yaml``, ``grep llamafactory-cli`` and
``bash -c "llamafactory-cli train x.yaml"`` run an editor, a search and a shell. The text is hostile:
it may be empty, huge or no text at all.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

CLI_NAMES = ("llamafactory-cli", "lmf")
"""Console scripts of LLaMA-Factory."""

CONFIG_SUFFIXES = (".yaml", ".yml", ".json")

_PYTHON = re.compile(r"python[0-9.]*|pypy[0-9.]*")
_NAME_LIMIT = 64
_PATH_LIMIT = 4096

# Interpreter options that take their value from the rest of the word or from the next word.
_PYTHON_VALUES = "WX"
_PYTHON_LONG_VALUES = ("--check-hash-based-pycs",)

# Options of torchrun, accelerate launch and deepspeed that stand alone; every other one takes a value.
_LAUNCHER_FLAGS = frozenset(
    {
        "--standalone",
        "--no-python",
        "--no_python",
        "-m",
        "--module",
        "--run-path",
        "--run_path",
        "--multi_gpu",
        "--multi-gpu",
        "--use_deepspeed",
        "--use_fsdp",
        "--cpu",
        "--debug",
        "-q",
        "--quiet",
        "--no_local_rank",
        "--bind_cores_to_rank",
        "--force_multi",
        "--elastic_training",
        "--save_pid",
        "--use_env",
        "--use-env",
    }
)
_AGENT_MODULES = frozenset(
    {
        "torch.distributed.run",
        "torch.distributed.launch",
        "accelerate.commands.launch",
        "deepspeed",
        "deepspeed.launcher.runner",
        "deepspeed.launcher.launch",
    }
)


@dataclass(frozen=True, slots=True)
class Execution:
    """``program`` is the path or name that runs: a binary, or the script given to an interpreter.

    ``module`` is set instead of a script for ``python -m``, ``code`` for ``python -c``.
    ``arguments`` is what follows the program.
    """

    program: str
    arguments: tuple[str, ...] = ()
    interpreter: str | None = None
    module: str | None = None
    code: str | None = None

    @property
    def name(self) -> str:
        """Last part of the program's path; ``""`` for a module, inline code, or an absurd name."""
        return _base_name(self.program)


def execution(argv: Sequence[str]) -> Execution:
    """What ``argv`` executes, seen through a Python interpreter's own options."""
    if not argv:
        return Execution("")
    if not _PYTHON.fullmatch(_base_name(argv[0])):
        return Execution(argv[0], tuple(argv[1:]))
    return _python_execution(argv)


def _python_execution(argv: Sequence[str]) -> Execution:
    interpreter = argv[0]
    position = 1
    while position < len(argv):
        word = argv[position]
        position += 1
        if word in _PYTHON_LONG_VALUES:
            position += 1
            continue
        if not word.startswith("-") or word == "-":
            return Execution(word, tuple(argv[position:]), interpreter)
        option, attached = _deciding_option(word)
        if option in {"m", "c"}:
            if not attached:
                attached = argv[position] if position < len(argv) else ""
                position += 1
            rest = tuple(argv[position:])
            if option == "m":
                return Execution("", rest, interpreter, module=attached)
            return Execution("", rest, interpreter, code=attached)
        if option and not attached:
            position += 1
    return Execution("", (), interpreter)


def _deciding_option(word: str) -> tuple[str, str]:
    """The first letter of ``-uWignore`` that takes a value, and what is attached to it."""
    if word.startswith("--"):
        return "", ""
    for index, letter in enumerate(word[1:_NAME_LIMIT], start=1):
        if letter in "mc" or letter in _PYTHON_VALUES:
            return letter, word[index + 1 :]
    return "", ""


def config_argument(arguments: Sequence[str]) -> str | None:
    """The config file of ``train X.yaml``: LLaMA-Factory looks at the first argument only."""
    if arguments and arguments[0].endswith(CONFIG_SUFFIXES) and len(arguments[0]) <= _PATH_LIMIT:
        return arguments[0]
    return None


def cli_subcommand(run: Execution) -> tuple[str, tuple[str, ...]] | None:
    """Subcommand and its arguments where LLaMA-Factory's command line runs, else ``None``.

    That is ``llamafactory-cli``, ``lmf``, ``python -m llamafactory.cli``, and the scripts
    ``src/webui.py`` and ``src/api.py`` of its source tree. The subcommand may be ``""``.
    """
    if run.name in CLI_NAMES or run.module in {"llamafactory", "llamafactory.cli"}:
        return (run.arguments[0], run.arguments[1:]) if run.arguments else ("", ())
    for script, subcommand in (("src/webui.py", "webui"), ("src/api.py", "api")):
        if _ends_with_path(run.program, script):
            return subcommand, run.arguments
    return None


def is_training_script(run: Execution) -> bool:
    """Whether this is the script that each rank of a LLaMA-Factory training runs.

    ``llamafactory/launcher.py`` is LLaMA-Factory's by its path. ``train.py`` is a name that any project
    uses, so there more must fit: its folder and a config file, or ``--stage``.
    """
    if run.module in {"llamafactory.launcher", "llamafactory.v1.launcher"}:
        return True
    if any(
        _ends_with_path(run.program, f"llamafactory/{path}") for path in ("launcher.py", "v1/launcher.py")
    ):
        return True
    if run.name not in {"train.py", "train_bash.py"}:
        return False
    if config_argument(run.arguments) is not None:
        return _ends_with_path(run.program, f"src/{run.name}")
    return any(word == "--stage" or word.startswith("--stage=") for word in run.arguments)


def agent_target(run: Execution) -> Execution | None:
    """What torchrun, accelerate or deepspeed starts in each rank; ``None`` for any other program."""
    if run.name in {"torchrun", "deepspeed", "accelerate-launch"} or run.module in _AGENT_MODULES:
        return _launched(run.arguments)
    if run.name == "accelerate" and run.arguments[:1] == ("launch",):
        return _launched(run.arguments[1:])
    return None


def _launched(arguments: Sequence[str]) -> Execution:
    position = 0
    as_module = False
    while position < len(arguments):
        word = arguments[position]
        if not word.startswith("-"):
            rest = tuple(arguments[position + 1 :])
            return Execution("", rest, module=word) if as_module else Execution(word, rest)
        as_module = as_module or word in {"-m", "--module"}
        position += 1 if word in _LAUNCHER_FLAGS or "=" in word else 2
    return Execution("")


def _base_name(path: str) -> str:
    name = path[-_PATH_LIMIT:].rpartition("/")[2]
    return name if len(name) <= _NAME_LIMIT else ""


def _ends_with_path(path: str, end: str) -> bool:
    """Whether the last parts of ``path`` are ``end``: ``/x/src/api.py`` but not ``/x/mysrc/api.py``."""
    return path == end or path.endswith(f"/{end}")
