"""The arguments of every subcommand."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from tui import __version__
from tui.facts.errors import EXIT_USAGE, LlamaherdError
from tui.text.translate import tr

_PRUNE_DAYS = 30.0


class _Parser(argparse.ArgumentParser):
    """An argument parser whose errors are ours: one sentence, or JSON when it was asked for."""

    def error(self, message: str) -> NoReturn:
        raise LlamaherdError("usage", exit_code=EXIT_USAGE, problem=message, command=self.prog)


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Parse a command line. What stands after ``--`` is a command to start and is never looked into.

    Raises:
        LlamaherdError: ``usage`` (exit 2).
    """
    words = list(argv)
    pasted: list[str] = []
    if "--" in words:
        cut = words.index("--")
        words, pasted = words[:cut], words[cut + 1 :]
    arguments, rest = build_parser().parse_known_args(words)
    command = " ".join(filter(None, ("llamaherd", arguments.subcommand)))
    if arguments.subcommand in ("start", "check"):
        # argparse takes the settings before the first option only; people add them at the end.
        arguments.overrides += [word for word in rest if _is_setting(word)]
        rest = [word for word in rest if not _is_setting(word)]
    if pasted and arguments.subcommand != "start":
        rest = ["--", *pasted]
    if rest:
        problem = tr("it does not take {words}", words=" ".join(rest)[:200])
        raise LlamaherdError("usage", exit_code=EXIT_USAGE, problem=problem, command=command)
    arguments.pasted = tuple(pasted)
    return arguments


def _is_setting(word: str) -> bool:
    return "=" in word and not word.startswith("-")


def build_parser() -> argparse.ArgumentParser:
    """The whole grammar; cheap to build, it imports nothing heavy."""
    parser = _Parser(
        prog="llamaherd",
        description=tr("Watch, start and safely stop LLaMA-Factory trainings on this instance."),
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"llamaherd {__version__}")
    _add_language(parser, default=None)
    _add_screen(parser)
    commands = parser.add_subparsers(dest="subcommand", metavar="COMMAND", parser_class=_Parser)
    _add_status(commands)
    _add_start(commands)
    _add_check(commands)
    _add_jobs(commands)
    _add_logs(commands)
    _add_explain(commands)
    _add_stop(commands)
    _add_sweep(commands)
    return parser


def _add_readonly(parser: argparse.ArgumentParser) -> None:
    # Without a default, so that one given before the subcommand stays in force.
    parser.add_argument(
        "--readonly", action="store_true", default=argparse.SUPPRESS, help=tr("refuse to act")
    )


def _add_screen(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(tr("the screen, which opens without a COMMAND"))
    group.add_argument("--demo", action="store_true", help=tr("simulated cards and a pretended training"))
    group.add_argument("--readonly", action="store_true", help=tr("refuse to act"))
    group.add_argument("--ascii", action="store_true", help=tr("draw with ASCII characters only"))
    group.add_argument("--no-mouse", action="store_true", help=tr("leave the mouse to the terminal"))


_Commands = argparse._SubParsersAction  # the only name argparse gives its subparsers' type


def _add_command(commands: "_Commands[_Parser]", name: str, text: str) -> argparse.ArgumentParser:
    parser = commands.add_parser(name, help=text, description=text, allow_abbrev=False)
    _add_language(parser, default=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true", help=tr("print one JSON document"))
    return parser


def _add_language(parser: argparse.ArgumentParser, default: str | None) -> None:
    # Given before or after the subcommand; the suppressed default keeps the outer value.
    parser.add_argument("--lang", choices=("en", "zh"), default=default, help=tr("language of the words"))


def _add_status(commands: "_Commands[_Parser]") -> None:
    parser = _add_command(commands, "status", tr("show GPUs, owners, host and jobs once, or every N seconds"))
    parser.add_argument(
        "--watch", type=_seconds, metavar="N", help=tr("show again every N seconds until interrupted")
    )
    parser.add_argument(
        "--ascii", action="store_true", default=argparse.SUPPRESS, help=tr("draw with ASCII characters only")
    )
    parser.add_argument(
        "--detail", action="store_true", help=tr("show everything of each card and the proof of each owner")
    )
    parser.add_argument("--pid", type=int, metavar="PID", help=tr("show one process in full instead"))


def _add_start(commands: "_Commands[_Parser]") -> None:
    parser = _add_command(commands, "start", tr("start a training that outlives this terminal"))
    parser.usage = (
        "llamaherd start CONFIG [key=value ...] [options]\n       llamaherd start [options] -- COMMAND ..."
    )
    _add_training(parser)
    parser.add_argument("--dry-run", action="store_true", help=tr("show what would run, start nothing"))
    parser.add_argument(
        "--unchecked", action="store_true", help=tr("start whatever check finds; for when it is wrong")
    )
    _add_readonly(parser)


def _add_check(commands: "_Commands[_Parser]") -> None:
    parser = _add_command(commands, "check", tr("say what would go wrong with a training, start nothing"))
    parser.usage = "llamaherd check CONFIG [key=value ...] [options]"
    _add_training(parser)
    parser.add_argument(
        "--lengths", action="store_true", help=tr("measure the samples in tokens, too; takes a while")
    )


def _add_training(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("config", nargs="?", type=Path, metavar="CONFIG", help=tr("a training config (YAML)"))
    parser.add_argument(
        "overrides",
        nargs="*",
        metavar="key=value",
        help=tr("values that replace the config's, for this run only"),
    )
    parser.add_argument("--env", type=Path, metavar="DIR", help=tr("the environment that has LLaMA-Factory"))
    parser.add_argument(
        "--cwd", type=Path, metavar="DIR", help=tr("where relative paths start (default: the current folder)")
    )
    parser.add_argument("--gpus", metavar="0,1", help=tr("cards to use, as numbered by status"))
    parser.add_argument(
        "--trial", type=_steps, metavar="N", help=tr("train N steps only, in a new output folder")
    )
    parser.add_argument(
        "--trial-all", action="store_true", help=tr("with --trial: evaluate and save in between, too")
    )


def _add_jobs(commands: "_Commands[_Parser]") -> None:
    parser = _add_command(commands, "jobs", tr("list the jobs that llamaherd has started"))
    parser.add_argument(
        "--prune",
        type=_days,
        nargs="?",
        const=_PRUNE_DAYS,
        metavar="DAYS",
        help=tr("remove the folders of jobs that have been over for DAYS (default: 30), after asking"),
    )
    parser.add_argument("--yes", action="store_true", help=tr("do not ask"))
    _add_readonly(parser)


def _add_logs(commands: "_Commands[_Parser]") -> None:
    parser = _add_command(commands, "logs", tr("print the log of a job"))
    parser.add_argument("job", metavar="JOB", help=tr("the job's id, or its beginning"))
    parser.add_argument("-f", "--follow", action="store_true", help=tr("go on until the job ends"))


def _add_explain(commands: "_Commands[_Parser]") -> None:
    parser = _add_command(commands, "explain", tr("say what logs and output folders tell of their runs"))
    parser.add_argument(
        "paths",
        nargs="+",
        type=Path,
        metavar="PATH",
        help=tr("a training log, a trainer_log.jsonl, an output folder, a job's folder"),
    )
    parser.add_argument("--curve", action="store_true", help=tr("draw the losses"))
    parser.add_argument(
        "--ascii", action="store_true", default=argparse.SUPPRESS, help=tr("draw with ASCII characters only")
    )


def _add_stop(commands: "_Commands[_Parser]") -> None:
    parser = _add_command(commands, "stop", tr("stop a job and prove that nothing of it is left"))
    parser.add_argument("job", metavar="JOB|PID", help=tr("the job's id, its beginning, or a PID"))
    parser.add_argument("--yes", action="store_true", help=tr("do not ask"))
    parser.add_argument(
        "--keep-weights", action="store_true", help=tr("let the trainer finish its step and save first")
    )
    parser.add_argument("--force", action="store_true", help=tr("end every process of the job at once"))
    _add_readonly(parser)


def _add_sweep(commands: "_Commands[_Parser]") -> None:
    parser = _add_command(commands, "sweep", tr("list what is left of runs without a leader, and end it"))
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=tr("groups to end, as sweep names them"))
    parser.add_argument("--yes", action="store_true", help=tr("do not ask"))
    _add_readonly(parser)


def _days(text: str) -> float:
    value = float(text)
    if not 0 <= value <= 36_500:
        raise argparse.ArgumentTypeError("0 .. 36500")
    return value


def _seconds(text: str) -> float:
    value = float(text)
    if not 0.2 <= value <= 3600:
        raise argparse.ArgumentTypeError("0.2 .. 3600")
    return value


def _steps(text: str) -> int:
    value = int(text)
    if not 1 <= value <= 1_000_000:
        raise argparse.ArgumentTypeError("1 .. 1000000")
    return value
