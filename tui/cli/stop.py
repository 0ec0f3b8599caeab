"""``stop JOB|PID``: asks, walks the ladder, and returns when the job is proved gone."""

import argparse
import sys

from tui.cli.confirm import confirm
from tui.cli.context import Context
from tui.cli.documents import JobDocument, emit
from tui.cli.terminal import Terminal
from tui.facts.errors import EXIT_LEFT, EXIT_OK, EXIT_REFUSED, LlamaherdError
from tui.facts.job import Behind, Job, JobRecord, RequestKind
from tui.jobs.client import find_job, is_over
from tui.operate import stop as stopping
from tui.operate.runs import read_job
from tui.text.layout import Page
from tui.text.stop_report import foreign_lines, step_text, stop_question


def stop(arguments: argparse.Namespace) -> int:
    """Stop one job, or one run or service that was not started here."""
    context = Context.of(arguments)
    if context.settings.readonly:
        raise LlamaherdError("readonly", exit_code=EXIT_REFUSED, deed="stop")
    target = stopping.find_target(arguments.job, context.roots)
    if target.job.state not in ("ended", "lost"):
        kind: RequestKind = (
            "force" if arguments.force else "keep_weights" if arguments.keep_weights else "stop"
        )
        is_foreign = target.folder is None
        lines = (
            foreign_lines(Page(Terminal.of_stdout().width), target.job, target.behind) if is_foreign else []
        )
        if not arguments.yes:
            confirm(target.job.id, lines, stop_question(target.job, target.steps_lost, kind))
        elif lines and not arguments.json:
            sys.stderr.write("".join(f"{line}\n" for line in lines))
        try:
            target = stopping.request_stop(target, kind, context.write_root() if is_foreign else None)
        except LlamaherdError as error:
            if error.code != "job_ended":  # it came to its end by itself: that is what is told then
                raise
        else:
            stopping.wait_stopped(target, Steps(quiet=arguments.json).show)
    job = read_job(find_job(context.roots, target.job.id))
    return _finish(job, target.behind, as_json=arguments.json)


class Steps:
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


def _finish(job: Job, goes_on: tuple[Behind, ...], *, as_json: bool) -> int:
    report = job.stop
    left = report.left if report else ()
    if as_json:
        emit(JobDocument(job, steps=report.steps if report else (), left=left, behind=goes_on))
    else:
        from tui.text.report import stop_report

        terminal = Terminal.of_stdout()
        print(stop_report(report, job, terminal.width, terminal.colour, terminal.ascii))
    over = job.state in ("ended", "lost")
    return EXIT_OK if over and not left else EXIT_LEFT
