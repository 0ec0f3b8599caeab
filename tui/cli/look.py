"""Subcommands that only look: ``status`` and ``jobs``."""

import argparse
import sys
import time
from contextlib import suppress

from tui.cli.context import Context
from tui.cli.documents import JobsDocument, UnreadableFolder, emit
from tui.cli.terminal import Terminal
from tui.collect.proc import Proc
from tui.facts.errors import EXIT_OK, LlamaherdError
from tui.facts.snapshot import Snapshot
from tui.jobs.client import FoundJob, UnreadableJob, list_jobs
from tui.operate.observe import GPU_PATIENCE, Observer, adopt_orphans
from tui.operate.runs import RunReaders
from tui.text.sentences import error_text
from tui.text.translate import tr

_CLEAR = "\x1b[H\x1b[2J"
_SHORT_PATIENCE = 0.5


def status(arguments: argparse.Namespace) -> int:
    """``status``: one snapshot, or one every N seconds until interrupted.

    Raises:
        LlamaherdError: ``pid_missing``, where one process was asked for.
    """
    context = Context.of(arguments)
    adopt(context)
    terminal = Terminal.of_stdout(ascii=arguments.ascii)
    with (
        Observer(context.roots, price_per_hour=context.settings.price_per_hour) as observer,
        suppress(KeyboardInterrupt),
    ):
        patience = GPU_PATIENCE
        while True:
            began = time.monotonic()
            snapshot = observer.snapshot(patience)
            if arguments.json:
                emit(snapshot if arguments.pid is None else observer.detail(arguments.pid, snapshot))
            else:
                text = _text(arguments, observer, snapshot, terminal)
                clear = _CLEAR if arguments.watch and terminal.is_terminal else ""
                print(f"{clear}{text}", flush=True)
            if not arguments.watch:
                return EXIT_OK
            patience = _SHORT_PATIENCE if patience else 0.0
            time.sleep(max(0.0, arguments.watch - (time.monotonic() - began)))
            adopt(context)
    return EXIT_OK


def _text(arguments: argparse.Namespace, observer: Observer, snapshot: Snapshot, terminal: Terminal) -> str:
    look = (terminal.width, terminal.colour, terminal.ascii)
    if arguments.pid is not None:
        from tui.text.process_report import process_report

        return process_report(
            observer.detail(arguments.pid, snapshot), snapshot.gpus, snapshot.taken_at, *look
        )
    from tui.text.report import status_report

    text = status_report(snapshot, *look)
    if arguments.detail and snapshot.gpus:
        from tui.text.gpu_detail import detail_report

        return f"{text}\n\n{detail_report(snapshot, *look)}"
    return text


def jobs(arguments: argparse.Namespace) -> int:
    """``jobs``: everything that was started, newest first."""
    context = Context.of(arguments)
    if arguments.prune is not None:
        from tui.cli.prune import prune

        return prune(arguments, context)
    adopt(context)
    proc = Proc()
    table = proc.table()
    readers = RunReaders(proc)
    found = list_jobs(context.roots)
    shown = tuple(readers.read(item, table) for item in reversed(found) if isinstance(item, FoundJob))
    readers.close()
    unreadable = tuple(
        UnreadableFolder(str(item.path), item.reason) for item in found if isinstance(item, UnreadableJob)
    )
    if arguments.json:
        emit(JobsDocument(shown, unreadable))
        return EXIT_OK
    from tui.text.report import jobs_report

    terminal = Terminal.of_stdout()
    print(jobs_report(shown, time.time(), terminal.width, terminal.colour, terminal.ascii))
    for folder in unreadable:
        message, hint = error_text(LlamaherdError("job_unreadable", path=folder.path, reason=folder.reason))
        sys.stderr.write(f"{message} {hint}\n")
    return EXIT_OK


def adopt(context: Context) -> None:
    """A job whose keeper died gets a new one, so that it can be stopped; this is said, not hidden."""
    if context.settings.readonly:
        return
    for job in adopt_orphans(context.roots):
        sys.stderr.write(
            tr("The keeper of {job} had died; a new one watches it. How it ends will be less sure.", job=job)
            + "\n"
        )
