"""The keeper: one small process per job that starts it, watches it, and proves its end.

It holds the folder's lock for life and is subreaper, so whatever the job forks stays below it and the
kernel itself says when nothing is left (ECHILD). It imports all it needs at start: an upgrade of the
package under a running job cannot break its stop. If it dies, the job runs on and is adopted.
"""

import json
import os
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path

from tui.collect.cgroup import read_cgroup
from tui.collect.proc import Proc
from tui.facts.errors import LlamaherdError
from tui.facts.job import KEEPER_TITLE, Identity, JobRecord, StopReport
from tui.jobs.family import AdoptedFamily, OwnFamily
from tui.jobs.folder import JobFolder
from tui.jobs.identity import identify, same_boot
from tui.jobs.kernel import become_subreaper, set_title
from tui.jobs.spawn import GatedChild, fork_at_gate, open_gate
from tui.jobs.watch import WAKING_SIGNALS, Watch

EXIT_ALREADY_KEPT = 75

_LOCK_PATIENCE = 2.0


def main(arguments: list[str]) -> int:
    """Keep the job in ``FOLDER``: ``[--adopt] FOLDER``.

    The command (one line of JSON) and its complete environment (``KEY=value``, separated by NUL) come on
    standard input: they may hold secrets, which the record does not. Standard output is closed once the
    start is decided.
    """
    folder = JobFolder(Path(arguments[-1]))
    lock = folder.lock(_LOCK_PATIENCE)
    if lock is None:
        return EXIT_ALREADY_KEPT
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, WAKING_SIGNALS)
    proc = Proc()
    try:
        record = folder.read_record()
        if record.state in ("ended", "lost"):
            return 0
        if "--adopt" in arguments[:-1]:
            _adopt(folder, record, proc)
        else:
            _start(folder, record, proc)
    except (LlamaherdError, OSError) as error:
        sys.stderr.write(f"keeper: {error}\n")
        return 1
    return 0


def _start(folder: JobFolder, record: JobRecord, proc: Proc) -> None:
    command, environ = _read_order()
    become_subreaper()
    child = fork_at_gate(command, record.cwd, environ, folder.log)
    # Only now: the child has its parent's title until it runs its command.
    set_title(KEEPER_TITLE)
    main_process = _identified(child.pid, proc)
    record = replace(
        record,
        main=main_process,
        keeper=identify(os.getpid(), proc),
        started_at=time.time(),
        oom_kills_start=read_cgroup(proc).oom_kills,
    )
    if _is_unwanted(folder, record, child):
        return
    folder.write_record(record)
    open_gate(child)
    family = OwnFamily(child.pid)
    Watch(folder, record, main_process, family, proc, child, on_started=_release_caller).run()


def _is_unwanted(folder: JobFolder, record: JobRecord, child: GatedChild) -> bool:
    """A stop that comes before the gate is opened needs no signal: the gate stays shut."""
    kind = next(iter(sorted(folder.requests())), None)
    if kind is None:
        return False
    os.close(child.gate)
    os.waitpid(child.pid, 0)
    now = time.time()
    stop = StopReport(requested_at=now, kind=kind, seconds=0.0)
    folder.write_record(replace(record, main=None, started_at=None, state="ended", ended_at=now, stop=stop))
    return True


def _adopt(folder: JobFolder, record: JobRecord, proc: Proc) -> None:
    """Go on with a job whose keeper died, or find that its machine or container was restarted."""
    set_title(KEEPER_TITLE)
    main_process = record.main
    if main_process is None:
        folder.write_record(replace(record, state="ended", ended_at=time.time(), error="gate EOF keeper"))
        return
    if not same_boot(main_process, proc):
        folder.write_record(replace(record, state="lost", members=()))
        return
    record = replace(
        record,
        state="running" if record.state == "starting" else record.state,
        keeper=identify(os.getpid(), proc),
        adopted=record.adopted + 1,
    )
    folder.write_record(record)
    if record.stop is not None:
        # A stop by signal left no request behind, and must go on all the same.
        folder.request(record.stop.kind)
    _release_caller()
    family = AdoptedFamily(main_process, record, folder, proc)
    Watch(folder, record, main_process, family, proc).run()


def _identified(pid: int, proc: Proc) -> Identity:
    identity = identify(pid, proc)
    if identity is None:
        raise OSError(f"child {pid} is not visible in {proc.root}")
    return identity


def _read_order() -> tuple[tuple[str, ...], dict[bytes, bytes]]:
    """The command and its environment, as ``client`` writes them."""
    command, _, environ = sys.stdin.buffer.read().partition(b"\n")
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.close(nothing)
    entries = (entry.partition(b"=") for entry in environ.split(b"\0"))
    try:
        words = tuple(str(word) for word in json.loads(command))
    except ValueError as error:
        raise OSError("no command came on standard input") from error
    return words, {name: value for name, _, value in entries if name}


def _release_caller() -> None:
    """Let go of the pipe on which the caller waits for the start to be decided."""
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 1)
    os.close(nothing)
