"""``check CONFIG``: everything that can be known before a start."""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from tui.cli.context import Context
from tui.cli.documents import CheckDocument, emit
from tui.cli.request import read_request
from tui.cli.terminal import Terminal
from tui.facts.errors import EXIT_FAILED, EXIT_OK, LlamaherdError
from tui.facts.secrets import mask_arguments, mask_environment
from tui.facts.steps import LengthProgress, TokenLengths
from tui.jobs.client import JOB_FOLDER
from tui.operate import check as checking
from tui.operate.calibration import learn
from tui.operate.estimate import measure_lengths
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
    lengths = _measured_lengths(checked) if arguments.lengths else None
    checked = checking.with_estimate(checked, learn(context.roots, checked.cards, os.environ), lengths)
    if arguments.json:
        emit(_document(checked))
    else:
        _show(checked)
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
    spec, estimate = checked.launch.spec, checked.estimate
    lengths = estimate.lengths if estimate is not None else None
    environment = mask_environment({**checked.variables, **spec.environment})
    return CheckDocument(
        findings=checked.findings,
        steps=None if estimate is None else estimate.steps,
        memory=None if estimate is None else estimate.memory,
        fits=() if estimate is None else estimate.checks,
        measured=() if estimate is None else estimate.measured,
        lengths=None if estimate is None else estimate.summary,
        length_problem=lengths.problem if lengths is not None else None,
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


def _show(checked: checking.Check) -> None:
    from tui.text.estimate_report import estimate_report
    from tui.text.report import pairs

    terminal, document = Terminal.of_stdout(), _document(checked)
    print(check_report(document.findings, terminal.width, terminal.colour, terminal.ascii))
    if checked.estimate is not None:
        print(f"\n{estimate_report(checked.estimate, terminal.width, terminal.colour, terminal.ascii)}")
    rows = plan_rows(
        document.command, document.cwd, document.config, document.output_dir, document.environment
    )
    print("\n" + tr("What would run") + f"\n{pairs(rows)}")


def _measured_lengths(checked: checking.Check) -> TokenLengths | None:
    """Token lengths, measured in the training environment; how far it is shows on a terminal."""
    from tui.text.estimate_report import progress_text

    def show(progress: LengthProgress) -> None:
        if sys.stderr.isatty():
            sys.stderr.write(f"\r\x1b[K{progress_text(progress)}")
            sys.stderr.flush()

    launch = checked.launch
    if launch.config is None or launch.environment is None:
        return None
    lengths = measure_lengths(launch.config, launch.environment, launch.environ, show)
    if sys.stderr.isatty():
        sys.stderr.write("\r\x1b[K")
    return lengths
