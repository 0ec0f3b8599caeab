"""The stop ladder as arithmetic: which step follows from which facts, and whom it signals."""

import signal
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.facts.job import Graces, Member, RequestKind, StepName
from tui.jobs.ladder import (
    SHORT_GRACES,
    Climb,
    Facts,
    Order,
    advance,
    can_cancel,
    hurried,
    scaled,
    start,
    steps_taken,
    sweep,
)

GRACES = Graces()
MAIN = Member(10, 100, "main")
WORKER = Member(11, 101, "data_worker")
WRAPPER, AGENT = Member(10, 100, "wrapper"), Member(20, 200, "agent")
RANKS = (Member(30, 300, "rank"), Member(31, 301, "rank"))
SINGLE = Facts(now=0.0, members=(MAIN, WORKER))
TORCHRUN = Facts(now=0.0, members=(WRAPPER, AGENT, *RANKS))


class Stop:
    """A climb driven through time."""

    def __init__(self, facts: Facts, kind: RequestKind = "stop") -> None:
        self.climb = start(kind, facts.now)
        self.facts = facts

    def at(self, now: float, **changes: object) -> list[tuple[StepName, str, int]]:
        """Advance; the orders as step, signal, PID."""
        self.facts = replace(self.facts, now=now, **changes)  # type: ignore[arg-type]  # the fields check
        self.climb, orders = advance(self.climb, self.facts, GRACES)
        return [(order.step, number.name, order.target.pid) for order in orders for number in order.signals]


def test_a_single_trainer_is_interrupted_then_all_are_terminated_then_killed() -> None:
    stop = Stop(SINGLE)
    assert stop.at(0.0) == [("interrupt", "SIGINT", 10)]
    assert stop.at(34.9) == []
    assert stop.at(35.0) == [
        ("terminate", "SIGTERM", 10),
        ("terminate", "SIGCONT", 10),
        ("terminate", "SIGTERM", 11),
        ("terminate", "SIGCONT", 11),
    ]
    assert stop.at(44.9) == []
    assert stop.at(45.0) == [("kill", "SIGKILL", 10), ("kill", "SIGKILL", 11)]
    assert stop.at(64.9) == []
    assert not stop.climb.stuck
    assert stop.at(65.0) == []
    assert stop.climb.stuck


def test_torchrun_is_interrupted_at_the_agent_alone() -> None:
    assert Stop(TORCHRUN).at(0.0) == [("interrupt", "SIGTERM", 20)]


def test_an_agent_that_shows_up_late_is_interrupted_too() -> None:
    stop = Stop(SINGLE)
    stop.at(0.0)
    assert stop.at(0.1, members=TORCHRUN.members) == [("interrupt", "SIGTERM", 20)]


def test_a_service_is_interrupted_together_with_a_training_below_it() -> None:
    facts = replace(TORCHRUN, members=(Member(5, 50, "service"), *TORCHRUN.members))
    assert {pid for _, _, pid in Stop(facts).at(0.0)} == {5, 20}


def test_who_ignores_the_interrupt_is_terminated_at_once() -> None:
    stop = Stop(replace(SINGLE, ignoring_interrupt=frozenset({10})))
    assert {order[0] for order in stop.at(0.0)} == {"terminate"}
    assert stop.climb.steps[0].note == "nobody_to_interrupt"


def test_what_the_interrupted_left_gets_little_time() -> None:
    stop = Stop(SINGLE)
    stop.at(0.0)
    assert stop.at(3.0, members=(WORKER,)) == []
    assert stop.at(8.9) == []
    assert {order[0] for order in stop.at(9.0)} == {"terminate"}


def test_new_members_are_signalled_in_the_step_that_runs() -> None:
    stop = Stop(SINGLE, "force")
    stop.at(0.0, requests=frozenset({"force"}))
    late = Member(99, 900)
    assert stop.at(0.02, members=(*SINGLE.members, late)) == [("kill", "SIGKILL", 99)]
    # The same PID with another start is another process.
    assert stop.at(0.04, members=(Member(10, 555),)) == [("kill", "SIGKILL", 10)]
    assert stop.at(0.06) == []


def test_asking_again_restarts_no_clock_and_force_skips_ahead() -> None:
    stop = Stop(SINGLE)
    stop.at(0.0, requests=frozenset({"stop"}))
    stop.at(20.0, requests=frozenset({"stop", "keep_weights"}))
    assert stop.at(34.9) == []
    assert {order[0] for order in stop.at(35.0)} == {"terminate"}
    assert {order[0] for order in stop.at(36.0, requests=frozenset({"stop", "force"}))} == {"kill"}
    assert stop.climb.steps[-1].note == "forced"
    stop.at(50.0)
    assert stop.climb.step_began == 36.0


def test_a_checkpoint_being_written_is_waited_for_and_then_not() -> None:
    stop = Stop(replace(SINGLE, saving=True))
    assert stop.at(0.0) == []
    assert can_cancel(stop.climb)
    assert stop.at(50.0, saving=False) == [("interrupt", "SIGINT", 10)]
    assert not can_cancel(stop.climb)

    impatient = Stop(replace(SINGLE, saving=True))
    impatient.at(0.0)
    assert impatient.at(119.9) == []
    assert impatient.at(120.0) == [("interrupt", "SIGINT", 10)]
    assert impatient.climb.steps[0].note == "still_saving"


def test_an_output_folder_that_does_not_answer_delays_a_stop_by_two_seconds() -> None:
    stop = Stop(replace(SINGLE, saving=None))
    assert stop.at(0.0) == []
    assert stop.at(1.9) == []
    assert stop.at(2.0) == [("interrupt", "SIGINT", 10)]


def test_cooperation_needs_every_leader() -> None:
    ready = frozenset({30, 31})
    stop = Stop(replace(TORCHRUN, catching_abort=ready), "keep_weights")
    assert stop.at(0.0) == [("cooperate", "SIGABRT", 30), ("cooperate", "SIGABRT", 31)]
    partly = Stop(replace(TORCHRUN, catching_abort=frozenset({30})), "keep_weights")
    assert partly.at(0.0) == [("interrupt", "SIGTERM", 20)]
    # The launcher that outlives its ranks is no leader.
    assert stop.at(5.0, members=(WRAPPER,), catching_abort=frozenset({10})) == []
    single = Stop(replace(SINGLE, catching_abort=frozenset({10})), "keep_weights")
    assert single.at(0.0) == [("cooperate", "SIGABRT", 10)]


def test_cooperation_may_take_longer_while_files_grow_but_not_for_ever() -> None:
    def cooperating() -> Stop:
        stop = Stop(replace(SINGLE, catching_abort=frozenset({10}), output_bytes=0), "keep_weights")
        stop.at(0.0)
        return stop

    still = cooperating()
    assert still.at(119.9) == []
    assert still.at(120.0) == [("interrupt", "SIGINT", 10)]

    growing = cooperating()
    assert growing.at(100.0, output_bytes=1) == []
    assert growing.at(129.9) == []
    assert growing.at(130.0) == [("interrupt", "SIGINT", 10)]

    endless = cooperating()
    for second in range(1, 600):
        assert endless.at(float(second), output_bytes=second) == []
    assert endless.at(600.0, output_bytes=600) == [("interrupt", "SIGINT", 10)]


def test_a_plain_stop_ends_cooperation() -> None:
    stop = Stop(replace(SINGLE, catching_abort=frozenset({10})), "keep_weights")
    stop.at(0.0, requests=frozenset({"keep_weights"}))
    assert stop.at(5.0, requests=frozenset({"keep_weights", "stop"})) == [("interrupt", "SIGINT", 10)]


def test_a_sweep_begins_with_terminate() -> None:
    _, orders = advance(sweep(0.0), replace(SINGLE, members=(WORKER,)), GRACES)
    assert orders == (Order("terminate", (signal.SIGTERM, signal.SIGCONT), WORKER),)


def test_the_report_tells_each_step_with_its_targets_and_what_was_left() -> None:
    stop = Stop(SINGLE)
    stop.at(0.0)
    stop.at(35.0)
    interrupt, terminate = steps_taken(stop.climb, 2)
    assert (interrupt.began, interrupt.ended, interrupt.targets, interrupt.left) == (0.0, 35.0, (10,), 2)
    assert (terminate.began, terminate.ended, terminate.targets) == (35.0, None, (10, 11))
    assert steps_taken(stop.climb, 0, 36.0)[-1].ended == 36.0


def test_graces_scale_and_hurry() -> None:
    assert scaled(GRACES, 20).interrupt == pytest.approx(1.75)
    assert hurried(GRACES) == SHORT_GRACES
    assert hurried(scaled(GRACES, 20)).interrupt == pytest.approx(1.75)
    slowest = SHORT_GRACES.look + SHORT_GRACES.interrupt + SHORT_GRACES.terminate + SHORT_GRACES.kill
    assert slowest < 10


ORDER_OF_STEPS: tuple[StepName, ...] = ("cooperate", "wait_save", "interrupt", "terminate", "kill")


@given(
    st.lists(
        st.tuples(
            st.floats(0.01, 100),
            st.frozensets(st.sampled_from(["stop", "force", "keep_weights", "cancel"])),
            st.sampled_from([None, True, False]),
            st.lists(st.sampled_from([MAIN, WORKER, WRAPPER, AGENT, *RANKS]), unique=True),
            st.frozensets(st.sampled_from([10, 30, 31])),
            st.frozensets(st.sampled_from([10, 20])),
        ),
        min_size=1,
        max_size=30,
    ),
    st.sampled_from(["stop", "force", "keep_weights"]),
)
def test_whatever_happens_the_ladder_only_goes_up_and_ends(
    looks: list[
        tuple[float, frozenset[RequestKind], bool | None, list[Member], frozenset[int], frozenset[int]]
    ],
    kind: RequestKind,
) -> None:
    climb: Climb = start(kind, 0.0)
    now, seen = 0.0, -1
    for seconds, requests, saving, members, catching, ignoring in looks:
        now += seconds
        facts = Facts(now, tuple(members), requests, catching, ignoring, saving, None)
        climb, orders = advance(climb, facts, GRACES)
        step = ORDER_OF_STEPS.index(climb.step) if climb.step is not None else -1
        assert step >= seen
        seen = step
        assert all(order.target in members for order in orders)
        if any(member.role == "agent" for member in members):
            assert not any(o.step == "interrupt" and o.target.role in ("main", "wrapper") for o in orders)
    final = replace(facts, now=now + sum(GRACES_TOTAL))
    for _ in range(6):
        climb, _ = advance(climb, final, GRACES)
        final = replace(final, now=final.now + 700)
    assert climb.stuck


GRACES_TOTAL = (GRACES.look, GRACES.wait_save, GRACES.cooperate_limit, GRACES.interrupt, GRACES.terminate)
