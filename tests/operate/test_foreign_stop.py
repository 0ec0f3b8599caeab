"""Runs from elsewhere, stopped by the rules of their kind. The trees are imitated (see the support module);
the keeper, the ladder and the signals are real.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.foreign_runs import PYTHON, alive, enrolled, make_programs, running
from support.jobs import QUICK, kept
from support.waiting import wait_until

from tui.collect.proc import Proc
from tui.facts.errors import LlamaherdError
from tui.facts.job import JobRecord, RequestKind
from tui.jobs.client import list_jobs
from tui.operate.stop import StopTarget, find_target, request_stop, target_of, wait_stopped

PROC = Proc()


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "train.yaml").write_text("stage: sft\noutput_dir: out\n")
    return make_programs(tmp_path)


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    root = tmp_path / "state"
    yield root
    wait_until(lambda: not kept(root), 40, "keepers have left")


def stopped(target: StopTarget, root: Path, kind: RequestKind = "stop") -> JobRecord:
    begun = request_stop(target, kind, root, graces=QUICK)
    record = wait_stopped(begun, lambda _: None)
    assert record.state == "ended"
    assert record.foreign
    assert record.stop is not None
    assert (record.stop.unverified, record.stop.left) == (True, ())
    return record


def steps(record: JobRecord) -> list[tuple[str, tuple[int, ...]]]:
    assert record.stop is not None
    return [(step.name, step.targets) for step in record.stop.steps]


def named(place: Path, name: str) -> list[int]:
    return sorted(pid for pid, (_, known) in enrolled(place / "yard").items() if known == name)


def train(place: Path) -> list[str]:
    return [PYTHON, str(place / "bin" / "llamafactory-cli"), "train", "train.yaml"]


def test_a_single_trainer_from_another_terminal_is_interrupted(place: Path, root: Path) -> None:
    with running(place, train(place), 1) as process:
        target = find_target(str(process.pid), [root])
        assert (target.folder, target.job.kind, target.job.foreign) == (None, "training", True)
        assert target.job.output_dir == str(place / "out")
        record = stopped(target, root)
        assert alive(place / "yard") == {}
    assert steps(record) == [("interrupt", (process.pid,))]
    assert (place / "yard" / "trainer-got-2").exists()
    (listed,) = list_jobs([root])
    assert listed.folder.path.name.split("-")[2] == "train"  # type: ignore[union-attr]  # it is readable


def test_torchrun_is_interrupted_at_its_agent_whoever_was_named(place: Path, root: Path) -> None:
    with running(place, train(place), 4, FORCE_TORCHRUN="1"):
        (rank, _), (agent,) = named(place, "rank"), named(place, "agent")
        target = find_target(str(rank), [root])
        assert sorted(member.role for member in target.job.members) == ["agent", "rank", "rank", "wrapper"]
        record = stopped(target, root)
        assert alive(place / "yard") == {}
    assert steps(record)[0] == ("interrupt", (agent,))
    assert (place / "yard" / "agent-got-15").exists()
    assert not (place / "yard" / "wrapper-got-2").exists()


def test_force_ends_ranks_that_ignore_everything(place: Path, root: Path) -> None:
    with running(place, train(place), 4, FORCE_TORCHRUN="1", STUBBORN="1") as process:
        record = stopped(find_target(str(process.pid), [root]), root, "force")
        assert alive(place / "yard") == {}
    assert [name for name, _ in steps(record)] == ["kill"]


def test_a_deepspeed_launcher_is_interrupted_and_its_rank_ends(place: Path, root: Path) -> None:
    command = [PYTHON, str(place / "bin" / "deepspeed"), "--num_gpus", "1", "src/train.py", "--stage", "sft"]
    with running(place, command, 2) as process:
        record = stopped(find_target(str(process.pid), [root]), root)
        assert alive(place / "yard") == {}
    assert steps(record) == [("interrupt", (process.pid,))]
    assert (place / "yard" / "agent-got-15").exists()


@pytest.mark.parametrize("kind", ["webui", "api", "chat"])
def test_a_service_is_interrupted(place: Path, root: Path, kind: str) -> None:
    with running(place, [PYTHON, place / "bin" / "llamafactory-cli", kind], 1) as process:
        target = find_target(str(process.pid), [root])
        assert target.job.kind == "service"
        record = stopped(target, root)
    assert steps(record) == [("interrupt", (process.pid,))]
    assert (place / "yard" / "service-got-2").exists()


def test_the_engine_and_workers_of_vllm_go_with_their_server(place: Path, root: Path) -> None:
    with running(place, [PYTHON, place / "bin" / "vllm", "serve", "model"], 3) as process:
        target = find_target(str(process.pid), [root])
        assert len(target.job.members) == 3
        record = stopped(target, root)
        assert alive(place / "yard") == {}
    assert steps(record)[0] == ("interrupt", (process.pid,))


def test_a_notebook_kernel_is_stopped_only_by_its_own_pid(place: Path, root: Path) -> None:
    with running(place, [PYTHON, place / "ipykernel_launcher.py", "-f", "kernel.json"], 1) as process:
        (child,) = wait_until(lambda: PROC.children(process.pid), 10, "the kernel's child")
        with pytest.raises(LlamaherdError) as refused:
            find_target(str(child), [root])
        assert (refused.value.code, refused.value.exit_code) == ("not_ours", 3)
        target = find_target(str(process.pid), [root])
        assert {member.pid for member in target.job.members} == {process.pid, child}
        record = stopped(target, root)
        assert process.wait(10) == -signal.SIGINT
    assert steps(record)[0] == ("interrupt", (process.pid,))


def test_the_one_who_asks_may_die(place: Path, root: Path) -> None:
    """The keeper that came for the stop goes on with it."""
    code = (
        "import os, sys; from pathlib import Path; from tui.operate.stop import find_target, request_stop;"
        "root = Path(sys.argv[2]); request_stop(find_target(sys.argv[1], [root]), 'stop', root);"
        "os.kill(os.getpid(), 9)"
    )
    with running(place, train(place), 4, FORCE_TORCHRUN="1") as process:
        asked = subprocess.run([sys.executable, "-c", code, str(process.pid), str(root)], check=False)
        assert asked.returncode == -signal.SIGKILL
        wait_until(lambda: not alive(place / "yard"), 20, "all ended")


def _stopping(text: str, root: Path) -> StopTarget | None:
    target = find_target(text, [root])
    return target if target.folder is not None and target.job.state == "stopping" else None


def test_of_two_who_ask_the_second_finds_the_stop_of_the_first(place: Path, root: Path) -> None:
    with running(place, train(place), 1) as process:
        first, second = (find_target(str(process.pid), [root]) for _ in range(2))
        os.kill(process.pid, signal.SIGSTOP)
        request_stop(first, "stop", root, graces=QUICK)
        # The keeper reads requests ten times a second.
        again = wait_until(lambda: _stopping(str(process.pid), root), 10, "the stop of the first")
        assert wait_stopped(request_stop(again, "force"), lambda _: None).state == "ended"
        process.wait(10)
        with pytest.raises(LlamaherdError) as gone:
            request_stop(second, "stop", root)
        assert gone.value.code == "pid_missing"


def test_nothing_else_is_touched(place: Path, root: Path) -> None:
    with subprocess.Popen([PYTHON, "-c", "import time; time.sleep(600)"]) as innocent:
        try:
            for text in (str(innocent.pid), str(os.getpid()), "1"):
                with pytest.raises(LlamaherdError) as refused:
                    find_target(text, [root])
                assert (refused.value.code, refused.value.exit_code) == ("not_ours", 3)
            assert innocent.poll() is None
        finally:
            innocent.kill()
    assert not list(root.glob("jobs/*"))


def test_read_only_refuses_in_every_layer(place: Path, root: Path) -> None:
    with running(place, train(place), 1) as process:
        with pytest.raises(LlamaherdError) as refused:
            find_target(str(process.pid), [root], readonly=True)
        assert refused.value.code == "readonly"
        target = find_target(str(process.pid), [root])
        with pytest.raises(LlamaherdError) as refused:
            request_stop(target, "stop", root, readonly=True)
        assert refused.value.code == "readonly"
        assert process.poll() is None
        assert target_of(target.job).job == target.job


def test_a_run_of_another_user_is_refused_in_words(place: Path, root: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("needs root to become another user")
    code = (
        "import os, sys; from pathlib import Path; from tui.operate.stop import find_target\n"
        "from tui.facts.errors import LlamaherdError\n"
        "os.setuid(65534)\n"
        "try: find_target(sys.argv[1], [Path('/nowhere')])\n"
        "except LlamaherdError as error: print(error.code, error.values['why'], error.exit_code)\n"
    )
    with running(place, train(place), 1) as process:
        asked = subprocess.run(
            [PYTHON, "-c", code, str(process.pid)], check=True, capture_output=True, text=True
        )
        assert asked.stdout.strip() == "protected other_user 3"
        assert process.poll() is None


def test_a_run_that_llamaherd_itself_was_started_from_is_refused(place: Path, root: Path) -> None:
    """As from a notebook whose kernel is to be stopped."""
    (place / "ipykernel_launcher.py").write_text(
        "import sys; from pathlib import Path; from tui.operate.stop import find_target; import os\n"
        "from tui.facts.errors import LlamaherdError\n"
        "try: find_target(str(os.getppid() if len(sys.argv) > 1 else os.getpid()), [Path('.')])\n"
        "except LlamaherdError as error: print(error.code, error.values['why'])\n"
    )
    asked = subprocess.run(
        [PYTHON, place / "ipykernel_launcher.py"], cwd=place, check=True, capture_output=True, text=True
    )
    assert asked.stdout.strip() == "protected self"
