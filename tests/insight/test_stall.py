from collections.abc import Sequence

import pytest
from support.live_jobs import running_job

from tui.facts.finding import Finding
from tui.facts.training import Progress, Stage
from tui.facts.waiting import Wait
from tui.insight.stall import stall_finding, stalled_for

MAIN = Wait(1, "main", "S", "futex_wait_queue", piped=False, busy=False)


def standing(age: float = 100.0, interval: float | None = 5.0, stage: Stage = "train") -> Progress:
    return Progress(stage=stage, step=5, total=100, age=age, sign_interval=interval)


@pytest.mark.parametrize(
    ("progress", "stalled"),
    [
        (standing(31.0), True),
        (standing(29.0), False),
        (standing(50.0, interval=10.0), False),
        (standing(61.0, interval=10.0), True),
        (standing(500.0, interval=None), False),
        (standing(601.0, interval=None), True),
        (standing(1000.0, stage="eval"), False),
        (standing(1000.0, stage="save"), False),
        (standing(1000.0, stage="load"), False),
    ],
)
def test_several_usual_intervals_outside_evaluation_and_save(progress: Progress, stalled: bool) -> None:
    assert (stalled_for(running_job(progress=progress)) is not None) is stalled


def cause(*waits: Wait, free: int | None = None, used: Sequence[float | None] = ()) -> tuple[object, object]:
    found = stall_finding(running_job(progress=standing()), waits, free, used)
    assert isinstance(found, Finding)
    return found.evidence["cause"], found.evidence["pid"]


def worker(pid: int, *, state: str = "S", busy: bool = False) -> Wait:
    return Wait(pid, "data_worker", state, "", piped=False, busy=busy)


def rank(pid: int, *, busy: bool) -> Wait:
    return Wait(pid, "rank", "R", "", piped=False, busy=busy)


def test_what_it_waits_on() -> None:
    assert cause(MAIN) == ("unknown", 1)
    for kernel in ("anon_pipe_write", "pipe_write"):
        assert cause(Wait(7, "main", "S", kernel, piped=True)) == ("pipe", 7)
    assert cause(Wait(7, "main", "S", "pipe_read", piped=True)) == ("unknown", 7)
    assert cause(MAIN, worker(8, state="T")) == ("stopped", 8)
    assert cause(Wait(7, "main", "D", "nv_wait", piped=False)) == ("disk_wait", 7)
    assert cause(MAIN, free=1000) == ("disk_full", None)
    assert cause(MAIN, free=1 << 40) == ("unknown", 1)
    assert cause(MAIN, worker(8), worker(9, busy=True)) == ("data_workers", 9)
    assert cause(rank(1, busy=False), rank(2, busy=False), used=[0.99, 1.0]) == ("collective", 1)
    assert cause(rank(1, busy=True), rank(2, busy=True)) == ("collective", 1)
    assert cause(rank(1, busy=True), rank(2, busy=False), used=[1.0, 0.0]) == ("unknown", 1)
