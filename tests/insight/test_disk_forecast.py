from support.runs import run_log

from tui.facts.training import Checkpoint, OutputFacts, Schedule
from tui.insight.disk_forecast import disk_forecast

GIB = 1 << 30
EVERY = Schedule(save_steps=20)


def output(*steps: int) -> OutputFacts:
    return OutputFacts(
        "out", exists=True, checkpoints=tuple(Checkpoint(f"c-{n}", n, True, 1.0, 3 * GIB) for n in steps)
    )


def test_checkpoints_to_come_and_the_room_for_them() -> None:
    log = run_log([2.0] * 45, total=200)
    assert disk_forecast("job", log, output(20, 40), EVERY, 24 * GIB) is None, "eight more of 3 GiB fit"
    found = disk_forecast("job", log, output(20, 40), EVERY, 10 * GIB)
    assert found is not None
    assert (found.level, found.evidence["saves"], found.evidence["step"]) == ("warning", 8, 120)
    none = disk_forecast("job", log, output(20, 40), EVERY, 2 * GIB)
    assert none is not None
    assert (none.level, none.evidence["step"]) == ("danger", 60)


def test_old_ones_that_are_removed_make_room() -> None:
    log = run_log([2.0] * 45, total=200)
    assert disk_forecast("job", log, output(20, 40), EVERY, 4 * GIB, save_limit=2) is None
    assert disk_forecast("job", log, output(20, 40), EVERY, 2 * GIB, save_limit=2) is not None, (
        "new before old"
    )


def test_nothing_is_forecast_without_a_size() -> None:
    log = run_log([2.0] * 45, total=200)
    assert disk_forecast("job", log, output(), EVERY, 0) is None
    assert disk_forecast("job", run_log([2.0] * 200, total=200), output(180), EVERY, 0) is None
