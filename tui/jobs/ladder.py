"""The stop ladder: what to signal next, decided from facts alone.

Every step is taken only if the one before did not empty the job:

1. ``cooperate``: SIGABRT to every rank leader, where each of them catches it (LLaMA-Factory then ends
   its step and saves the weights). Only on request.
   ``wait_save``: let a checkpoint that is being written be finished.
2. ``interrupt``: SIGINT to the single trainer, or SIGTERM to the torchrun agent. Never to the
   ``llamafactory-cli`` over an agent: it kills the agent after 0.25 s and the ranks train on.
3. ``terminate``: SIGTERM and SIGCONT to every member once.
4. ``kill``: SIGKILL to every member, and to whoever appears, until nothing is left.

A member is signalled once per step. Asking again restarts no clock; asking for more skips ahead.
"""

import math
import signal
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace

from tui.facts.job import Graces, LadderStep, Member, RequestKind, StepName

SHORT_GRACES = Graces(
    look=0.2,
    wait_save=0.0,
    cooperate=0.0,
    cooperate_limit=0.0,
    quiet=0.0,
    interrupt=3.0,
    leftover=1.0,
    terminate=2.0,
    kill=3.0,
    settle=0.5,
)
"""Where the container is going down: it gives ten seconds before it kills everything."""

_SIGNALS: dict[StepName, tuple[signal.Signals, ...]] = {
    "wait_save": (),
    "cooperate": (signal.SIGABRT,),
    "interrupt": (signal.SIGINT,),
    "terminate": (signal.SIGTERM, signal.SIGCONT),  # a stopped process takes nothing but KILL before CONT
    "kill": (signal.SIGKILL,),
}


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known at one moment. ``now`` is monotonic seconds; ``members`` are those alive.

    ``saving`` and ``output_bytes`` are ``None`` while the output folder has not answered.
    """

    now: float
    members: tuple[Member, ...]
    requests: frozenset[RequestKind] = frozenset()
    catching_abort: frozenset[int] = frozenset()
    ignoring_interrupt: frozenset[int] = frozenset()
    saving: bool | None = False
    output_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Climb:
    """Where a stop stands. Times are monotonic seconds; ``step`` is ``None`` before the first step.

    ``sent`` are the members (PID and start) that the step has signalled; ``alone_since`` is when the
    last of them was gone; ``steps`` are the steps left behind, without the one it is on.
    """

    kind: RequestKind
    began: float
    step_began: float
    step: StepName | None = None
    note: str = ""
    sent: frozenset[tuple[int, int]] = frozenset()
    alone_since: float | None = None
    output_bytes: int | None = None
    grew_at: float = -math.inf
    steps: tuple[LadderStep, ...] = ()
    stuck: bool = False


@dataclass(frozen=True, slots=True)
class Order:
    """Send these signals to this member, in this order."""

    step: StepName
    signals: tuple[signal.Signals, ...]
    target: Member


def hurried(graces: Graces) -> Graces:
    """No wait longer than the container gives."""
    return Graces(**{name: min(value, getattr(SHORT_GRACES, name)) for name, value in _items(graces)})


def scaled(graces: Graces, divisor: float) -> Graces:
    """The same ladder, faster."""
    return Graces(**{name: value / divisor for name, value in _items(graces)})


def start(kind: RequestKind, now: float) -> Climb:
    """A stop that was just asked for."""
    return Climb(kind, began=now, step_began=now)


def sweep(now: float) -> Climb:
    """For what a run left behind when it ended by itself: nothing there is worth an interrupt."""
    return Climb("stop", began=now, step_began=now, step="terminate")


def can_cancel(climb: Climb) -> bool:
    """A stop can be taken back as long as it has signalled nobody."""
    return climb.step in (None, "wait_save")


def advance(climb: Climb, facts: Facts, graces: Graces) -> tuple[Climb, tuple[Order, ...]]:
    """One look: moves to the step that the facts ask for, and says whom to signal now."""
    climb = _observe(climb, facts)
    while (move := _next_step(climb, facts, graces)) is not None:
        climb = _enter(climb, *move, facts)
    if climb.step == "kill" and facts.now - climb.step_began >= graces.kill:
        climb = replace(climb, stuck=True)
    orders = _orders(climb, facts)
    sent = climb.sent.union((order.target.pid, order.target.start) for order in orders)
    return replace(climb, sent=sent), orders


def steps_taken(climb: Climb, left: int, ended: float | None = None) -> tuple[LadderStep, ...]:
    """The steps so far and the one it is on; ``ended``: monotonic seconds, when all was over."""
    return climb.steps if climb.step is None else (*climb.steps, _closed(climb, climb.step, ended, left))


def leaders(members: tuple[Member, ...]) -> tuple[Member, ...]:
    """Who runs the training itself: the ranks, or else the single main process."""
    ranks = tuple(member for member in members if member.role == "rank")
    return ranks or tuple(member for member in members if member.role in ("main", "service"))


def _items(graces: Graces) -> Iterator[tuple[str, float]]:
    return ((field.name, getattr(graces, field.name)) for field in fields(graces))


def _observe(climb: Climb, facts: Facts) -> Climb:
    if facts.output_bytes is not None and facts.output_bytes != climb.output_bytes:
        climb = replace(climb, output_bytes=facts.output_bytes, grew_at=facts.now)
    alive = {(member.pid, member.start) for member in facts.members}
    if not climb.sent or climb.sent & alive:
        return replace(climb, alone_since=None)
    return climb if climb.alone_since is not None else replace(climb, alone_since=facts.now)


def _next_step(climb: Climb, facts: Facts, graces: Graces) -> tuple[StepName, str] | None:
    """The step to move to, with the note for the step that is left; ``None``: stay."""
    elapsed = facts.now - climb.step_began
    if climb.step == "kill":
        return None
    if "force" in facts.requests:
        return "kill", "forced"
    if climb.step is None:
        if climb.kind == "keep_weights" and "stop" not in facts.requests and _all_catch_abort(facts):
            return "cooperate", ""
        if facts.saving is None and elapsed < graces.look:
            return None
        return _after_saving(facts)
    if climb.step == "cooperate":
        waits = "stop" not in facts.requests and elapsed < _cooperation(climb, facts, graces)
        return None if waits and not _left_alone(climb, facts, graces) else _after_saving(facts)
    if climb.step == "wait_save":
        if facts.saving and elapsed < graces.wait_save:
            return None
        return "interrupt", "still_saving" if facts.saving else ""
    if climb.step == "interrupt":
        if not climb.sent and not _targets(climb, facts):
            return "terminate", "nobody_to_interrupt"
        waits = elapsed < graces.interrupt and not _left_alone(climb, facts, graces)
        return None if waits else ("terminate", "")
    return None if elapsed < graces.terminate else ("kill", "")


def _after_saving(facts: Facts) -> tuple[StepName, str]:
    return ("wait_save", "") if facts.saving else ("interrupt", "")


def _cooperation(climb: Climb, facts: Facts, graces: Graces) -> float:
    """How long the cooperative step may take, as far as is known by now."""
    writing = facts.now - climb.grew_at < graces.quiet
    return graces.cooperate_limit if writing else graces.cooperate


def _left_alone(climb: Climb, facts: Facts, graces: Graces) -> bool:
    """Those that were asked are gone, and what they left had its time."""
    if not facts.members or climb.alone_since is None:
        return False
    return facts.now - climb.alone_since >= graces.leftover


def _all_catch_abort(facts: Facts) -> bool:
    asked = leaders(facts.members)
    return bool(asked) and all(member.pid in facts.catching_abort for member in asked)


def _enter(climb: Climb, step: StepName, note: str, facts: Facts) -> Climb:
    steps = climb.steps
    if climb.step is not None:
        steps = (*steps, _closed(replace(climb, note=note), climb.step, facts.now, len(facts.members)))
    return replace(
        climb, step=step, step_began=facts.now, note="", sent=frozenset(), alone_since=None, steps=steps
    )


def _closed(climb: Climb, step: StepName, ended: float | None, left: int) -> LadderStep:
    return LadderStep(
        name=step,
        began=climb.step_began - climb.began,
        ended=None if ended is None else ended - climb.began,
        targets=tuple(sorted(pid for pid, _ in climb.sent)),
        left=left,
        note=climb.note,
    )


def _orders(climb: Climb, facts: Facts) -> tuple[Order, ...]:
    step = climb.step
    if step is None or not _SIGNALS[step]:
        return ()
    fresh = (member for member in _targets(climb, facts) if (member.pid, member.start) not in climb.sent)
    return tuple(Order(step, _signals(step, member), member) for member in fresh)


def _signals(step: StepName, target: Member) -> tuple[signal.Signals, ...]:
    # torchrun passes on what it gets, and ranks take twice as long to end by SIGINT.
    is_agent = step == "interrupt" and target.role == "agent"
    return (signal.SIGTERM,) if is_agent else _SIGNALS[step]


def _targets(climb: Climb, facts: Facts) -> tuple[Member, ...]:
    if climb.step == "cooperate":
        return tuple(member for member in leaders(facts.members) if member.pid in facts.catching_abort)
    if climb.step == "interrupt":
        agents = tuple(member for member in facts.members if member.role == "agent")
        services = tuple(member for member in facts.members if member.role == "service")
        single = tuple(member for member in facts.members if member.role == "main")
        asked = agents + services or single
        return tuple(member for member in asked if member.pid not in facts.ignoring_interrupt)
    return facts.members
