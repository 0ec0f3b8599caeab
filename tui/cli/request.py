"""What ``start`` and ``check`` are asked: a config with changes, or a command."""

import argparse
from pathlib import Path

from tui.facts.errors import EXIT_USAGE, LlamaherdError
from tui.operate.launch import StartRequest, Trial
from tui.text.cells import clean
from tui.text.translate import tr


def read_request(arguments: argparse.Namespace) -> StartRequest:
    """The request that parsed arguments stand for.

    Raises:
        LlamaherdError: ``usage``, ``gpu_unknown`` (exit 2).
    """
    cwd = arguments.cwd.resolve() if arguments.cwd else Path.cwd()
    command = f"llamaherd {arguments.subcommand}"
    if bool(arguments.pasted) == bool(arguments.config):
        problem = tr("give either a config or a command after --")
        raise LlamaherdError("usage", exit_code=EXIT_USAGE, problem=problem, command=command)
    trial = Trial(arguments.trial, with_pauses=arguments.trial_all) if arguments.trial else None
    if trial is not None and arguments.pasted:
        problem = tr("--trial takes a config, not a command")
        raise LlamaherdError("usage", exit_code=EXIT_USAGE, problem=problem, command=command)
    return StartRequest(
        cwd=cwd,
        # The file keeps its own name if it is a link; the way to it loses its dots.
        config=arguments.config and arguments.config.parent.resolve() / arguments.config.name,
        overrides=tuple(arguments.overrides),
        pasted=arguments.pasted,
        environment=arguments.env and _from_here(arguments.env),
        gpus=_gpus(arguments.gpus),
        trial=trial,
    )


def _from_here(path: Path) -> Path:
    # A home folder is found where the environment is; a relative path starts here, not in --cwd.
    return path if str(path).startswith("~") else Path.cwd() / path


def _gpus(text: str | None) -> tuple[int, ...] | None:
    if text is None:
        return None
    parts = text.split(",")
    if not all(part.isascii() and part.isdigit() and len(part) < 4 for part in parts):
        raise LlamaherdError("gpu_unknown", exit_code=EXIT_USAGE, gpu=clean(text, 100))
    return tuple(dict.fromkeys(int(part) for part in parts))
