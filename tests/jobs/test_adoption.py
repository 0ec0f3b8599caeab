"""The keeper is killed: the job runs on, the next client adopts it, and only the job is ever signalled."""

import json
import os
import pty
import signal
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from support.jobs import PROC, TestJob, Yard, alive
from support.waiting import wait_until

from tui.facts.errors import LlamaherdError
from tui.facts.job import Identity
from tui.jobs.client import ensure_keeper, list_jobs, request_stop
from tui.jobs.folder import JobFolder
from tui.jobs.identity import identify
from tui.jobs.strays import find_strays

SLEEP = [sys.executable, "-I", "-S", "-c", "import time; time.sleep(600)"]


def orphaned(jobs: Yard, shape: str, members: int) -> TestJob:
    """A job whose members are all recorded, and whose keeper was killed."""
    job = jobs.start(shape)
    wait_until(lambda: len(job.record().members) == members, 10, "members recorded")
    job.kill_keeper()
    return job


def identity(pid: int) -> Identity:
    found = identify(pid, PROC)
    assert found is not None
    return found


def test_the_job_runs_on_and_is_adopted_and_stopped(jobs: Yard) -> None:
    job = orphaned(jobs, "torchrun", 8)
    before = job.survivors()
    assert len(before) == 8
    record = ensure_keeper(job.found.folder)
    assert (record.state, record.adopted) == ("running", 1)
    assert job.found.folder.is_kept()
    assert job.survivors() == before
    ended = job.stop()
    assert job.survivors() == set()
    assert ended.exit is None
    assert ended.stop is not None
    assert ended.stop.unverified
    assert ended.stop.steps[0].name == "interrupt"
    assert not (job.yard / f"wrapper-got-{signal.SIGINT:d}").exists()


@pytest.mark.parametrize(
    ("shape", "members"), [("daemons", 3), ("sessions", 4), ("emptied", 2), ("outliving", 3), ("renamed", 3)]
)
def test_escaped_children_are_still_known_after_adoption(jobs: Yard, shape: str, members: int) -> None:
    job = orphaned(jobs, shape, members)
    job.stop()
    assert job.survivors() == set()


def test_what_the_job_forked_without_a_keeper_is_found_by_its_log(jobs: Yard) -> None:
    """The record knows nothing of the daemons: they came after its last writing."""
    job = jobs.start("daemons")
    job.kill_keeper()
    folder = job.found.folder
    record = folder.read_record()
    folder.write_record(replace(record, members=()))
    job.stop()
    assert job.survivors() == set()


def test_a_job_that_ends_while_adopted_has_no_exit_status(jobs: Yard) -> None:
    job = orphaned(jobs, "sleeper", 1)
    ensure_keeper(job.found.folder)
    main = job.record().main
    assert main is not None
    os.kill(main.pid, signal.SIGKILL)
    record = job.ended()
    assert (record.exit, record.stop, record.adopted) == (None, None, 1)


def test_a_stop_goes_on_when_its_keeper_is_killed(jobs: Yard) -> None:
    job = jobs.start("stubborn")
    request_stop(job.found.folder, "stop")
    wait_until(lambda: job.record().stop, 10, "stop began")
    asked_at = job.record().stop
    job.kill_keeper()
    record = job.ended()
    assert job.survivors() == set()
    assert record.stop is not None
    assert asked_at is not None
    assert record.stop.requested_at == asked_at.requested_at


def test_another_life_of_the_machine_is_lost_and_gets_no_signal(jobs: Yard) -> None:
    job = orphaned(jobs, "sleeper", 1)
    folder = job.found.folder
    record = folder.read_record()
    main = record.main
    assert main is not None
    folder.write_record(replace(record, main=replace(main, init_start=main.init_start + 1)))
    assert request_stop(folder, "force")
    wait_until(lambda: folder.read_record().state == "lost", 10, "lost")
    assert alive(main)
    with pytest.raises(LlamaherdError) as refused:
        request_stop(folder, "stop")
    assert refused.value.code == "job_ended"
    folder.withdraw(["force"])
    folder.write_record(record)  # so that the yard can end it


def test_a_reused_pid_is_not_the_main_process(jobs: Yard) -> None:
    """The recorded PID now belongs to somebody else, who must not be hurt."""
    job = orphaned(jobs, "sleeper", 1)
    folder = job.found.folder
    record = folder.read_record()
    assert record.main is not None
    with subprocess.Popen(SLEEP) as other:
        stranger = identity(other.pid)
        assert stranger.start != record.main.start
        wrong = replace(record.main, pid=other.pid)
        members = tuple(replace(member, pid=other.pid, start=wrong.start) for member in record.members)
        folder.write_record(replace(record, main=wrong, members=members))
        # Its log is still held by the true main process, so that is found and ended; the stranger is not.
        try:
            assert job.stop("force").state == "ended"
            assert alive(stranger)
        finally:
            other.kill()
    assert job.survivors() == set()


def test_carrying_the_token_is_not_belonging(jobs: Yard) -> None:
    """A terminal multiplexer started from a job hands its environment to every later shell."""
    job = orphaned(jobs, "sleeper", 1)
    folder = job.found.folder
    environ = {**os.environ, **job.record().environment}
    master, terminal = pty.openpty()
    with folder.log.open("rb") as reading, folder.log.open("ab") as writing, closing(os.fdopen(master)):
        carriers = [
            subprocess.Popen(SLEEP, env=environ, stdin=subprocess.DEVNULL, start_new_session=True),
            subprocess.Popen(SLEEP, env=environ, stdin=reading, start_new_session=True),
            # With a terminal even the log is no proof: somebody copies it, or looks at it.
            subprocess.Popen(
                [sys.executable, "-c", f"import os; os.open(os.ttyname(0), os.O_RDWR); exec({SLEEP[-1]!r})"],
                env=environ,
                stdin=terminal,
                stdout=writing,
                start_new_session=True,
            ),
        ]
        os.close(terminal)
        identities = [identity(carrier.pid) for carrier in carriers]
        try:
            wait_until(lambda: (s := PROC.stat(carriers[2].pid)) is not None and s.tty, 10, "has a terminal")
            strays = find_strays(job.record(), folder, PROC)
            why = {stray.process.pid: (stray.why, stray.proven) for stray in strays}
            expected = {carrier.pid: ("token", False) for carrier in carriers}
            assert why == {**expected, job.record().members[0].pid: ("log", True)}
            job.stop("force")
            assert all(map(alive, identities))
        finally:
            for carrier in carriers:
                carrier.kill()
                carrier.wait()


def test_who_writes_the_log_without_a_terminal_belongs(jobs: Yard) -> None:
    job = orphaned(jobs, "sleeper", 1)
    with job.found.folder.log.open("ab") as log:
        writer = subprocess.Popen(SLEEP, env={}, stdout=log, start_new_session=True)
    ended = job.stop("force")
    assert writer.wait(timeout=10) == -signal.SIGKILL
    assert ended.stop is not None
    assert writer.pid in ended.stop.steps[-1].targets


def test_a_keeper_that_died_before_its_job_ran_leaves_an_ended_job(jobs: Yard, tmp_path: Path) -> None:
    job = jobs.start("sleeper")
    record = job.stop()
    folder = JobFolder(tmp_path / "state" / "jobs" / "copy")
    folder.path.mkdir()
    (folder.path / "requests").mkdir()
    folder.write_record(
        replace(record, state="starting", main=None, keeper=None, exit=None, stop=None, created_at=1.0)
    )
    found = ensure_keeper(folder)
    assert (found.state, found.error) == ("ended", "gate EOF keeper")


def test_only_one_of_two_adopters_keeps(jobs: Yard) -> None:
    job = orphaned(jobs, "sleeper", 1)
    code = (
        "import sys; from pathlib import Path; from tui.jobs.client import ensure_keeper;"
        "from tui.jobs.folder import JobFolder; ensure_keeper(JobFolder(Path(sys.argv[1])))"
    )
    clients = [subprocess.Popen([sys.executable, "-c", code, str(job.found.folder.path)]) for _ in range(3)]
    assert [client.wait(timeout=30) for client in clients] == [0, 0, 0]
    assert job.record().adopted == 1
    events = [json.loads(line) for line in job.found.folder.events.read_text().splitlines()]
    assert sum(event["event"] == "watching" for event in events) == 2
    found = list_jobs([jobs.root])
    assert len(found) == 1
