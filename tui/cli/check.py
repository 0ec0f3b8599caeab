"""``check CONFIG``: everything that can be known before a start."""

import argparse
import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from tui.cli.context import Context
from tui.cli.documents import CheckDocument, emit
from tui.cli.request import read_request
from tui.cli.terminal import Terminal
from tui.facts.errors import EXIT_FAILED, EXIT_OK, LlamaherdError
from tui.facts.secrets import mask_arguments, mask_environment
from tui.jobs.client import JOB_FOLDER
from tui.operate import check as checking
from tui.operate.launch import visible_gpus
from tui.operate.observe import Observer
from tui.text.check_report import check_report, plan_rows
from tui.text.translate import tr


def check(arguments: argparse.Namespace) -> int:
    """Judge a training without starting it; 1 if something stands in the way."""
    context = Context.of(arguments)
    request = read_request(arguments)
    root = _state_root(context)
    checked = observed(
        lambda look: checking.check(request, context.settings, os.environ, look, root), context.roots
    )
    document = _document(checked)
    if arguments.json:
        emit(document)
    else:
        _show(document)
    return EXIT_FAILED if checked.blockers else EXIT_OK


def observed(judge: Callable[[checking.Look], checking.Check], roots: Sequence[Path]) -> checking.Check:
    """Judge with a look at the machine; the driver has the time that the files take to answer."""
    with Observer(roots) as observer:
        patience = checking.PATIENCE if visible_gpus(os.environ) else 0.0
        return judge(partial(observer.snapshot, patience))


def _state_root(context: Context) -> Path | None:
    try:
        return context.write_root()
    except LlamaherdError:
        return None  # a check needs no state; a start says what is wrong with it


def _document(checked: checking.Check) -> CheckDocument:
    spec = checked.launch.spec
    environment = mask_environment({**checked.variables, **spec.environment})
    return CheckDocument(
        findings=checked.findings,
        steps=None,
        memory=None,
        command=tuple(map(_shown, mask_arguments(spec.command))),
        cwd=spec.cwd,
        config=spec.config,
        output_dir=spec.output_dir,
        environment={name: _shown(value) for name, value in environment.items()},
        torchrun=checked.launch.torchrun,
        processes=checked.launch.processes,
    )


def _shown(word: str) -> str:
    """The job's folder has no name yet."""
    return word.replace(JOB_FOLDER, "…")


def _show(document: CheckDocument) -> None:
    from tui.text.report import pairs

    terminal = Terminal.of_stdout()
    print(check_report(document.findings, terminal.width, terminal.colour, terminal.ascii))
    rows = plan_rows(
        document.command, document.cwd, document.config, document.output_dir, document.environment
    )
    print(f"\n{tr('What would run')}\n{pairs(rows)}")
