"""Subcommands that act: ``start`` and ``stop``."""

import argparse
import os
import sys

from tui.cli.check import observed
from tui.cli.context import Context
from tui.cli.documents import JobDocument, PlanDocument, emit
from tui.cli.request import read_request
from tui.cli.terminal import Terminal
from tui.facts.errors import EXIT_FAILED, EXIT_LEFT, EXIT_OK, EXIT_REFUSED, LlamaherdError
from tui.facts.job import Job, JobRecord, RequestKind
from tui.facts.secrets import mask_arguments, mask_environment
from tui.jobs.client import find_job, is_over
from tui.operate import launch as launching
from tui.operate import stop as stopping
from tui.operate.check import check_launch
from tui.operate.runs import read_job
from tui.text.cells import clean
from tui.text.check_report import plan_rows, verdict
from tui.text.finding_lines import finding_lines
from tui.text.findings import finding_text
from tui.text.layout import Page
from tui.text.report import pairs
from tui.text.stop_report import step_text, stop_question
from tui.text.translate import tr


def start(arguments: argparse.Namespace) -> int:
    """``start CONFIG [key=value …]`` or ``start -- COMMAND …``: preflight, then start."""
    context = Context.of(arguments)
    launch = launching.prepare(read_request(arguments), context.settings, os.environ)
    if arguments.dry_run:
        return _show_plan(launch, as_json=arguments.json)
    root = context.write_root()
    if not arguments.unchecked and launch.config is not None and not _may_start(launch, context, arguments):
        return EXIT_FAILED
    found = launching.start(launch, root)
    record = found.record
    if arguments.json:
        emit(JobDocument(read_job(found)))
    elif record.error is not None:
        sys.stderr.write(_why_not_started(record))
    else:
        print(record.id, flush=True)
        sys.stderr.write(
            tr("It runs on when this terminal closes. `llamaherd status` shows it.", job=record.id)
            + " "
            + tr("`llamaherd stop {job}` stops it.", job=record.id)
            + "\n"
        )
    return EXIT_OK if record.error is None else EXIT_FAILED


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


def stop(arguments: argparse.Namespace) -> int:
    """``stop JOB|PID``: asks, walks the ladder, and returns when the job is proved gone."""
    context = Context.of(arguments)
    if context.settings.readonly:
        raise LlamaherdError("readonly", exit_code=EXIT_REFUSED, deed="stop")
    target = stopping.find_target(arguments.job, context.roots)
    if target.job.state not in ("ended", "lost"):
        kind: RequestKind = (
            "force" if arguments.force else "keep_weights" if arguments.keep_weights else "stop"
        )
        if not arguments.yes:
            _confirm(target, kind)
        stopping.request_stop(target, kind)
        stopping.wait_stopped(target, _Steps(quiet=arguments.json).show)
    return _finish_stop(read_job(find_job(context.roots, target.job.id)), as_json=arguments.json)


class _Steps:
    """Says each step of the ladder once, as the keeper takes it."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._said = 0

    def show(self, record: JobRecord) -> None:
        """Say what is new in this record."""
        if self._quiet or record.stop is None or is_over(record):
            return
        for step in record.stop.steps[self._said :]:
            sys.stderr.write(f"{step_text(step)}\n")
        sys.stderr.flush()
        self._said = len(record.stop.steps)


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


def _why_not_started(record: JobRecord) -> str:
    why = clean(record.error or "", 500)
    return (
        tr("{job} did not start: {why}", job=record.id, why=why)
        + "\n"
        + tr("What it said is kept: `llamaherd logs {job}`.", job=record.id)
        + "\n"
    )


def _confirm(target: stopping.StopTarget, kind: RequestKind) -> None:
    if not sys.stdin.isatty():
        raise LlamaherdError("confirm_needed", exit_code=EXIT_REFUSED, job=target.job.id)
    sys.stderr.write(stop_question(target.job, target.steps_lost, kind) + " " + tr("[y/N]") + " ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes", "是"):
        raise LlamaherdError("not_confirmed", exit_code=EXIT_REFUSED, job=target.job.id)


def _finish_stop(job: Job, *, as_json: bool) -> int:
    report = job.stop
    left = report.left if report else ()
    if as_json:
        emit(JobDocument(job, steps=report.steps if report else (), left=left))
    else:
        from tui.text.report import stop_report

        terminal = Terminal.of_stdout()
        print(stop_report(report, job, terminal.width, terminal.colour, terminal.ascii))
    over = job.state in ("ended", "lost")
    return EXIT_OK if over and not left else EXIT_LEFT
