"""What each process of a job is for."""

import subprocess
import sys

import pytest
from support.jobs import PROC
from support.waiting import wait_until

from tui.collect.proc import ProcessStat
from tui.facts.job import Identity, MemberRole
from tui.jobs.members import Roles, runs_torchrun

MAIN = Identity("boot", 1, 4_000_010, 100)  # no such process: nothing but the table is read


def stat(pid: int, ppid: int, comm: str = "python3") -> ProcessStat:
    return ProcessStat(4_000_000 + pid, comm, "S", 4_000_000 + ppid, 0, 0, 0, 0, 0, pid * 10, 0)


SINGLE = [stat(10, 1, "llamafactory-cl"), stat(11, 10, "pt_data_worker"), stat(12, 10)]
TORCHRUN = [
    stat(10, 1, "llamafactory-cl"),
    stat(20, 10, "pt_elastic"),
    stat(30, 20),
    stat(31, 20),
    stat(40, 30, "pt_data_worker"),
]


def roles(roles: Roles, table: list[ProcessStat]) -> list[MemberRole]:
    return [member.role for member in roles.members(table)]


def test_a_single_trainer() -> None:
    assert roles(Roles(MAIN, "training", PROC), SINGLE) == ["main", "data_worker", "other"]


def test_torchrun() -> None:
    expected = ["wrapper", "agent", "rank", "rank", "data_worker"]
    assert roles(Roles(MAIN, "training", PROC), TORCHRUN) == expected


def test_the_launcher_stays_a_wrapper_and_a_rank_a_rank_when_the_agent_is_gone() -> None:
    memory = Roles(MAIN, "training", PROC)
    roles(memory, TORCHRUN)
    orphaned = [stat(10, 1, "llamafactory-cl"), stat(30, 1)]
    assert roles(memory, orphaned) == ["wrapper", "rank"]
    # Somebody else with a rank's PID is no rank.
    stranger = ProcessStat(4_000_030, "sh", "S", 1, 0, 0, 0, 0, 0, 999, 0)
    assert roles(memory, [stranger]) == ["other"]


def test_what_an_agent_has_just_forked_is_no_second_agent() -> None:
    table = [*TORCHRUN[:2], stat(30, 20, "pt_elastic")]
    assert roles(Roles(MAIN, "training", PROC), table) == ["wrapper", "agent", "rank"]


def test_torchrun_as_the_command_itself() -> None:
    table = [stat(10, 1, "torchrun"), stat(30, 10)]
    assert roles(Roles(MAIN, "training", PROC), table) == ["agent", "rank"]


def test_a_service() -> None:
    assert roles(Roles(MAIN, "service", PROC), TORCHRUN)[:2] == ["service", "agent"]


def test_torchrun_is_known_by_its_command_before_it_has_a_title() -> None:
    code = "import sys, time; time.sleep(600)"
    with subprocess.Popen([sys.executable, "-I", "-S", "-c", code]) as main_process:
        agent = subprocess.Popen(["/x/bin/torchrun", "600"], executable="/bin/sleep")
        table = [seen for pid in (main_process.pid, agent.pid) if (seen := PROC.stat(pid)) is not None]
        main = Identity("boot", 1, main_process.pid, table[0].start)
        try:
            read, unread = Roles(main, "training", PROC), Roles(main, "training", PROC)
            wait_until(lambda: roles(read, table) == ["wrapper", "agent"], 5, "read")
            assert [member.role for member in unread.members(table, judge=False)] == ["main", "other"]
        finally:
            main_process.kill()
            agent.kill()
            agent.wait()


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (("/e/bin/python", "/e/bin/torchrun", "--nnodes", "1"), True),
        (("torchrun",), True),
        (("python", "-m", "torch.distributed.run", "x.py"), True),
        (("python", "-m", "llamafactory.cli", "torchrun"), False),
        (("llamafactory-cli", "train", "torchrun"), False),
        ((), False),
    ],
)
def test_which_commands_start_torchrun(command: tuple[str, ...], expected: bool) -> None:
    assert runs_torchrun(command) is expected
