"""``start``: what would run, what stands in the way, and the start."""

import argparse
import os
import sys
from dataclasses import replace

from tui.cli.check import observed
from tui.cli.context import Context
from tui.cli.documents import JobDocument, PlanDocument, emit
from tui.cli.request import read_request
from tui.cli.terminal import Terminal
from tui.facts.errors import EXIT_FAILED, EXIT_OK, LlamaherdError
from tui.facts.secrets import mask_arguments, mask_environment
from tui.operate import launch as launching
from tui.operate.cards import uuids_of
from tui.operate.check import check_launch
from tui.operate.runs import read_job
from tui.text.cells import clean
from tui.text.check_report import plan_rows, verdict
from tui.text.finding_lines import finding_lines
from tui.text.findings import finding_text
from tui.text.layout import Page
from tui.text.report import pairs
from tui.text.translate import tr


def start(arguments: argparse.Namespace) -> int:
    """``start CONFIG [key=value …]`` or ``start -- COMMAND …``: preflight, then start."""
    context = Context.of(arguments)
    request = read_request(arguments)
    launch = launching.prepare(request, context.settings, os.environ)
    if request.gpus is not None:
        launch = replace(launch, spec=replace(launch.spec, gpus=uuids_of(request.gpus)))
    if arguments.dry_run:
        return _show_plan(launch, as_json=arguments.json)
    root = context.write_root()
    if not arguments.unchecked and not _may_start(launch, context, arguments):
        return EXIT_FAILED
    found = launching.start(launch, root)
    record = found.record
    if record.error is not None:
        command = " ".join(record.command)
        raise LlamaherdError("command_failed", command=clean(command, 300), reason=record.error)
    if arguments.json:
        emit(JobDocument(read_job(found)))
    else:
        print(record.id, flush=True)
        sys.stderr.write(
            tr("It runs on when this terminal closes. `llamaherd status` shows it.", job=record.id)
            + " "
            + tr("`llamaherd stop {job}` stops it.", job=record.id)
            + "\n"
        )
    return EXIT_OK


def _may_start(launch: launching.Launch, context: Context, arguments: argparse.Namespace) -> bool:
    """Say what a preflight warns of; whether nothing stands in the way.

    Raises:
        LlamaherdError: ``start_blocked``, where a document was asked for.
    """
    checked = observed(lambda look: check_launch(launch, look, context.write_root()), context.roots)
    if checked.blockers and arguments.json:
        problems = " ".join(finding_text(finding)[0] for finding in checked.blockers)
        raise LlamaherdError("start_blocked", problems=problems)
    page = Page(Terminal.of_stdout().width)
    for finding in checked.blockers or checked.findings:
        if finding.blocks or finding.level in ("danger", "warning"):
            sys.stderr.write("\n".join(finding_lines(page, finding)) + "\n")
    if checked.blockers:
        sys.stderr.write(f"llamaherd: {verdict(checked.blockers)}\n")
    return not checked.blockers


def _show_plan(launch: launching.Launch, *, as_json: bool) -> int:
    spec = launch.spec
    document = PlanDocument(
        command=mask_arguments(spec.command),
        cwd=spec.cwd,
        environment=mask_environment(spec.environment),
        config=spec.config,
        output_dir=spec.output_dir,
        torchrun=launch.torchrun,
    )
    if as_json:
        emit(document)
        return EXIT_OK
    rows = plan_rows(
        document.command, document.cwd, document.config, document.output_dir, document.environment
    )
    print(pairs([(label, clean(text, 4000)) for label, text in rows]))
    return EXIT_OK
