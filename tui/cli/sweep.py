"""``sweep [GROUP …]``: lists what is left of runs that have no leader, and ends it after a confirmation."""

import argparse
import sys
import time

from tui.cli.confirm import confirm
from tui.cli.context import Context
from tui.cli.documents import SweepDocument, emit
from tui.cli.look import adopt
from tui.cli.stop import Steps
from tui.cli.terminal import Terminal
from tui.facts.errors import EXIT_LEFT, EXIT_OK, EXIT_REFUSED, LlamaherdError
from tui.facts.job import Job
from tui.facts.stray import StrayGroup
from tui.jobs.client import FoundJob, wait_stopped
from tui.operate import sweep as sweeping
from tui.operate.runs import read_job
from tui.text.layout import Page
from tui.text.report import stop_report
from tui.text.stray_report import stray_lines, sweep_question


def sweep(arguments: argparse.Namespace) -> int:
    """Without a name all groups; without a terminal and without ``--yes`` they are only listed."""
    context = Context.of(arguments)
    wants_to_end = bool(arguments.groups) or arguments.yes
    if context.settings.readonly and wants_to_end:
        raise LlamaherdError("readonly", exit_code=EXIT_REFUSED, deed="sweep")
    adopt(context)
    groups = sweeping.find_groups(context.roots)
    chosen = sweeping.choose(groups, arguments.groups)
    is_asked = sys.stdin.isatty() and not context.settings.readonly and not arguments.json
    if not chosen or not (wants_to_end or is_asked):
        _show(groups, as_json=arguments.json)
        return EXIT_OK
    if not arguments.yes:
        lines = stray_lines(Page(Terminal.of_stdout().width), groups, time.time())
        confirm(" ".join(group.id for group in chosen), lines, sweep_question(chosen))
    return _end(chosen, groups, context, as_json=arguments.json)


def _end(
    chosen: tuple[StrayGroup, ...], groups: tuple[StrayGroup, ...], context: Context, *, as_json: bool
) -> int:
    root = context.write_root()
    ended: list[Job] = []
    for group in chosen:
        found = sweeping.sweep(group, root, readonly=context.settings.readonly)
        record = wait_stopped(found.folder, Steps(quiet=as_json).show)
        ended.append(read_job(FoundJob(found.folder, record)))
    if as_json:
        emit(SweepDocument(groups, tuple(ended)))
    else:
        terminal = Terminal.of_stdout()
        for job in ended:
            print(stop_report(job.stop, job, terminal.width, terminal.colour, terminal.ascii))
    is_clean = all(job.state == "ended" and not (job.stop and job.stop.left) for job in ended)
    return EXIT_OK if is_clean else EXIT_LEFT


def _show(groups: tuple[StrayGroup, ...], *, as_json: bool) -> None:
    if as_json:
        emit(SweepDocument(groups))
        return
    terminal = Terminal.of_stdout()
    page = Page(terminal.width, terminal.colour, terminal.ascii)
    print("\n".join(stray_lines(page, groups, time.time())))
