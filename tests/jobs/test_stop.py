"""Every shape of escaping children, stopped for real: nobody survives and nobody else is touched.

Three jobs of a shape are stopped at the same time; graces are divided by 20.
"""

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.jobs import PROC, Yard, alive
from support.waiting import wait_until

from tui.facts.job import Identity, Member
from tui.jobs.client import request_stop
from tui.jobs.identity import identify

RUNS = 3
SHAPES = [
    "sleeper",
    "stubborn",
    "daemons",
    "sessions",
    "outliving",
    "forks_on_term",
    "respawner",
    "hopper",
    "stopped",
    "emptied",
    "renamed",
    "leaderless",
    "zombies",
    "torchrun",
]


@pytest.fixture
def bystander() -> Iterator[Identity]:
    """A process that is nobody's."""
    with subprocess.Popen([sys.executable, "-I", "-S", "-c", "import time; time.sleep(600)"]) as child:
        identity = identify(child.pid, PROC)
        try:
            assert identity is not None
            yield identity
        finally:
            child.kill()


@pytest.mark.parametrize("shape", SHAPES)
def test_nobody_survives_and_no_bystander_is_hurt(jobs: Yard, bystander: Identity, shape: str) -> None:
    running = [jobs.start(shape) for _ in range(RUNS)]
    for job in running:
        assert job.survivors()
        assert request_stop(job.found.folder, "stop")
    for job in running:
        record = job.ended()
        assert job.survivors() == set()
        assert record.state == "ended"
        assert record.members == ()
        assert record.swept == ()
        assert record.stop is not None
        assert record.stop.left == ()
        assert not record.stop.unverified
        assert record.stop.steps[0].name == "interrupt"
        assert record.stop.steps[-1].left == 0
        assert record.stop.seconds is not None
    assert alive(bystander)


def test_torchrun_is_interrupted_at_its_agent_and_never_at_the_wrapper(jobs: Yard) -> None:
    job = jobs.start("torchrun")

    def tree() -> tuple[Member, ...] | None:
        members = job.record().members
        return members if len(members) == 8 else None

    members = wait_until(tree, 10, "all members recorded")
    roles = sorted(member.role for member in members)
    assert roles == [
        "agent",
        "data_worker",
        "data_worker",
        "data_worker",
        "data_worker",
        "rank",
        "rank",
        "wrapper",
    ]
    record = job.stop()
    assert record.stop is not None
    (agent,) = (member.pid for member in members if member.role == "agent")
    assert record.stop.steps[0].name == "interrupt"
    assert record.stop.steps[0].targets == (agent,)
    assert (job.yard / f"agent-got-{signal.SIGTERM:d}").exists()
    assert not (job.yard / f"wrapper-got-{signal.SIGINT:d}").exists()


def test_a_polite_job_is_only_interrupted(jobs: Yard) -> None:
    record = jobs.start("sleeper").stop()
    assert record.stop is not None
    assert [step.name for step in record.stop.steps] == ["interrupt"]
    assert record.exit is not None
    assert record.exit.code is not None or record.exit.signal == signal.SIGINT


def test_force_kills_at_once(jobs: Yard) -> None:
    job = jobs.start("stubborn")
    record = job.stop("force")
    assert record.stop is not None
    assert [step.name for step in record.stop.steps] == ["kill"]
    assert record.exit is not None
    assert record.exit.signal == signal.SIGKILL
    assert record.stop.seconds is not None
    assert record.stop.seconds < 10


def test_keeping_the_weights_asks_the_trainer_to_save(jobs: Yard) -> None:
    job = jobs.start("saves_on_abort")
    record = job.stop("keep_weights")
    assert record.stop is not None
    assert [step.name for step in record.stop.steps] == ["cooperate"]
    assert (job.yard / "saved").exists()
    assert record.exit is not None
    assert record.exit.code == 0


def test_who_does_not_catch_the_request_to_save_is_interrupted_instead(jobs: Yard) -> None:
    record = jobs.start("sleeper").stop("keep_weights")
    assert record.stop is not None
    assert [step.name for step in record.stop.steps] == ["interrupt"]


def test_a_checkpoint_being_written_is_waited_for(jobs: Yard, tmp_path: Path) -> None:
    output = tmp_path / "out"
    job = jobs.start("sleeper", output_dir=str(output))
    checkpoint = output / "checkpoint-50"
    checkpoint.mkdir(parents=True)
    request_stop(job.found.folder, "stop")
    wait_until(
        lambda: (stop := job.record().stop) is not None and [s.name for s in stop.steps] == ["wait_save"],
        10,
        "waiting for the checkpoint",
    )
    assert job.survivors()
    (checkpoint / "trainer_state.json").write_text("{}")
    record = job.ended()
    assert record.stop is not None
    waited, interrupt = record.stop.steps
    assert (waited.name, waited.note, interrupt.name) == ("wait_save", "", "interrupt")


def test_a_stop_can_be_taken_back_while_nobody_is_signalled(jobs: Yard, tmp_path: Path) -> None:
    output = tmp_path / "out"
    job = jobs.start("sleeper", output_dir=str(output))
    (output / "checkpoint-50").mkdir(parents=True)
    request_stop(job.found.folder, "stop")
    wait_until(lambda: job.record().state == "stopping", 10, "stopping")
    request_stop(job.found.folder, "cancel")
    wait_until(lambda: job.record().state == "running", 10, "running again")
    assert job.record().stop is None
    assert job.survivors()
    assert request_stop(job.found.folder, "force")
    assert job.ended().exit is not None


def test_two_stops_at_once_are_one(jobs: Yard) -> None:
    job = jobs.start("sleeper")
    assert request_stop(job.found.folder, "stop")
    assert not request_stop(job.found.folder, "stop")
    record = job.ended()
    assert record.stop is not None
    assert len(record.stop.steps) == 1


def test_what_a_run_leaves_behind_is_swept_and_named(jobs: Yard) -> None:
    job = jobs.start("leaves_daemon")
    record = job.ended()
    assert job.survivors() == set()
    assert record.exit is not None
    assert record.exit.code == 0
    assert record.stop is None
    assert [member.pid for member in record.swept] == [
        pid for pid in job.enrolled() if record.main is not None and pid != record.main.pid
    ]
