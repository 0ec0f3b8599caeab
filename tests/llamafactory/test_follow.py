import os
from pathlib import Path

import pytest
from support.training_logs import PLAN_BLOCK, bar, facts_of, log_bytes

from tui.llamafactory.follow import LogFollower
from tui.llamafactory.tail import HEAD, TAIL


def written(path: Path, data: bytes, at: float, mode: str = "ab") -> None:
    with path.open(mode) as file:
        file.write(data)
    os.utime(path, (at, at))


def test_a_finished_log_read_late_tells_the_same(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    written(log, log_bytes("v4-resume-second"), at=5000.0)
    follower = LogFollower(log)
    facts = follower.update(monotonic=100.0, epoch=5060.0)
    follower.close()
    assert facts == facts_of(log_bytes("v4-resume-second"), at=40.0)
    assert facts.changed_at == 40.0, "the log was last written 60 s ago"


def test_from_a_late_start_to_following_live(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    written(log, PLAN_BLOCK + b"".join(bar(step, int(2.5 * step)) for step in range(11)), at=5000.4)
    follower = LogFollower(log)
    assert follower.update(monotonic=100.0, epoch=5001.0).step == 10
    for step in (11, 12, 13):
        written(log, bar(step, int(2.5 * step)), at=5000.4 + 2.5 * (step - 10))
        facts = follower.update(monotonic=100.0 + 2.5 * (step - 10), epoch=5001.0 + 2.5 * (step - 10))
    follower.close()
    assert facts.step == 13
    times = {clock.step: clock.at for clock in facts.clocks}
    assert times[13] - times[11] == pytest.approx(5.0, abs=0.51)
    assert all(int(2.5 * step) <= at <= int(2.5 * step) + 1 for step, at in times.items())


def test_a_big_log_tells_the_plan_and_the_newest_step(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    plan = PLAN_BLOCK.replace(b"= 100\n", b"= 900,000\n")
    resumed = b"[INFO|trainer.py:2551] 2026-11-29 14:44:06,472 >>   Continuing training from global step 40\n"
    with log.open("wb") as file:
        file.write(plan + resumed)
        for step in range(40, 800_000, 10):
            file.write(bar(step, step % 3600, 900_000))
    assert log.stat().st_size > HEAD + TAIL
    follower = LogFollower(log)
    facts = follower.update(monotonic=1.0, epoch=1.0)
    follower.close()
    assert (facts.step, facts.plan.total_steps, facts.resume_step) == (799_990, 900_000, 40)
    assert facts.clocks[-1].marks == ()


def test_a_log_that_begins_anew_is_another_run(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    written(log, PLAN_BLOCK + bar(0, 0) + bar(50, 100), at=10.0)
    follower = LogFollower(log)
    assert follower.update(1.0, 11.0).step == 50
    written(log, PLAN_BLOCK + bar(0, 0), at=12.0, mode="wb")
    assert follower.update(2.0, 12.0).step == 0
    follower.close()


def test_a_log_that_is_not_there_yet(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    follower = LogFollower(log)
    assert follower.update(1.0, 1.0).stage == "start"
    assert follower.missing
    written(log, log_bytes("v4-torchrun-2rank"), at=2.0)
    assert follower.update(2.0, 2.0).training_completed
    follower.close()
