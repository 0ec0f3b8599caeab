"""The keeper's loop over one job: reap, read requests, look, climb the ladder, record.

What is recorded here are facts: the exit status, the order of events, counters. How the run ended is
derived from them, and from the run's files, elsewhere.
"""

import os
import signal
import time
from collections.abc import Callable
from dataclasses import replace

from tui.collect.cgroup import read_cgroup
from tui.collect.proc import Proc
from tui.facts.job import Identity, JobRecord, Member, RequestKind, StopReport
from tui.jobs import ladder
from tui.jobs.family import Family
from tui.jobs.folder import JobFolder
from tui.jobs.identity import identity_of
from tui.jobs.members import Roles
from tui.jobs.saving import OutputWatch
from tui.jobs.scribe import Scribe
from tui.jobs.spawn import GatedChild, read_report
from tui.jobs.stopper import Stopper

WAKING_SIGNALS = frozenset({signal.SIGCHLD, signal.SIGTERM, signal.SIGINT})
"""Blocked in the keeper, and waited for: no handler can interrupt anything."""

_TICK = 0.1
_KILL_TICK = 0.02
_FIRST_SCANS, _IDLE_SCAN, _SLOWEST_SCAN = 0.3, 1.0, 10.0
_YOUNG = 5.0
"""What a job forks in its first seconds must be known soon: its keeper may die."""

_IDLE_SHARE, _STOPPING_SHARE = 0.004, 0.05
"""The part of a core that looking at all processes may take."""

_MEMBERS_RECORDED = 500
_STOP_KINDS: tuple[RequestKind, ...] = ("force", "stop", "keep_weights")


class Watch:
    """Watches one job to its end. ``main`` is the recorded main process."""

    def __init__(
        self,
        folder: JobFolder,
        record: JobRecord,
        main: Identity,
        family: Family,
        proc: Proc,
        child: GatedChild | None = None,
        on_started: Callable[[], None] = lambda: None,
    ) -> None:
        self._folder = folder
        self._record = record
        self._main = main
        self._family = family
        self._proc = proc
        self._child = child
        self._on_started = on_started
        self._scribe = Scribe(folder)
        self._stopper = Stopper(proc)
        self._roles = Roles(main, record.kind, proc, record.members)
        self._graces = record.graces
        self._members: tuple[Member, ...] = ()
        self._main_ended_at: float | None = None
        self._climb: ladder.Climb | None = None
        self._output: OutputWatch | None = None
        self._ports: frozenset[int] = frozenset()
        self._unsure = 0
        self._going_down = False
        self._next_scan = 0.0
        self._young_until = time.monotonic() + _YOUNG

    def run(self) -> None:
        """Return when nothing of the job is left and its last state is on disk."""
        self._scribe.event("watching", main=self._main.pid, verified=self._family.verified)
        while True:
            now = time.monotonic()
            self._note_exit(now)
            self._kill_orphans(now)
            requests = self._take_requests(now)
            if now >= self._next_scan:
                self._scan(now)
            if self._climb is not None:
                self._advance(self._climb, self._facts(requests, now))
            if self._family.is_gone():
                break
            self._rest()
        self._finish(time.monotonic())

    def _note_exit(self, now: float) -> None:
        status = self._family.reap()
        self._note_start(ended=status is not None)
        if status is not None:
            self._main_ended_at = now
            self._scribe.event("main_ended", code=status.code, signal=status.signal)
            if self._record.error is None:
                self._update(exit=status)

    def _note_start(self, ended: bool) -> None:
        report = None if self._child is None else read_report(self._child)
        if self._child is None or report is None:
            return
        os.close(self._child.report)
        self._child = None
        if report:
            self._scribe.event("not_started", error=report)
            self._update(error=report)
        elif self._record.state == "starting" and not ended:
            self._update(state="running")
        self._on_started()

    def _take_requests(self, now: float) -> frozenset[RequestKind]:
        requests = self._folder.requests()
        if self._going_down:
            requests |= {"stop"}
        if self._climb is None:
            self._consider(requests, now)
        elif "cancel" in requests and self._record.stop is not None and ladder.can_cancel(self._climb):
            self._climb = None
            self._scribe.event("stop_cancelled")
            self._update(state="running", stop=None)
            self._folder.withdraw(_STOP_KINDS)
        if "cancel" in requests:
            self._folder.withdraw(("cancel",))
        return requests

    def _consider(self, requests: frozenset[RequestKind], now: float) -> None:
        """Begin a stop that is asked for, or to clear away what the run left when it ended by itself."""
        kind = next((kind for kind in _STOP_KINDS if kind in requests), None)
        if kind is not None and (self._main_ended_at is None or self._record.stop is not None):
            self._begin_stop(kind, now)
        elif self._main_ended_at is not None and now >= self._main_ended_at + self._graces.settle:
            self._climb = ladder.sweep(now)
            self._next_scan = now
            self._scribe.event("sweep_began")
            self._update(state="stopping")

    def _begin_stop(self, kind: RequestKind, now: float) -> None:
        before = self._record.stop
        asked_at = time.time() if before is None else before.requested_at
        stop = StopReport(asked_at, kind, unverified=not self._family.verified)
        self._scribe.event("stop_began", kind=kind)
        self._update(state="stopping", stop=stop)
        self._climb = ladder.start(kind, now)
        self._scan(now)
        if self._output is None:
            self._output = OutputWatch(self._record.output_dir, self._record.started_at or 0.0)
        self._ports = frozenset(self._proc.ports(member.pid for member in self._members))

    def _scan(self, now: float) -> None:
        began = time.thread_time()
        found = self._family.find(self._proc.table())
        may_judge = self._climb is None or self._climb.step not in ("terminate", "kill")
        members = self._roles.members(found, judge=may_judge)
        if self._climb is not None and self._climb.stuck:
            members = tuple(replace(member, wchan=self._proc.wchan(member.pid)) for member in members)
        self._next_scan = now + self._scan_period(time.thread_time() - began, now)
        changed = [_essence(member) for member in members] != [_essence(m) for m in self._members]
        self._members = members
        if not self._family.verified:
            self._note_unseen_end(now)
        if changed:
            self._update(members=members[:_MEMBERS_RECORDED])
        if self._climb is not None and self._record.stop is None:
            self._note_swept()

    def _scan_period(self, cost: float, now: float) -> float:
        """Seconds until the next look at all processes, of which one takes ``cost`` of CPU."""
        if self._climb is not None and not self._climb.stuck:
            return _KILL_TICK if self._climb.step == "kill" else min(cost / _STOPPING_SHARE, _IDLE_SCAN)
        if now < self._young_until:
            return _FIRST_SCANS
        return min(max(_IDLE_SCAN, cost / _IDLE_SHARE), _SLOWEST_SCAN)

    def _note_unseen_end(self, now: float) -> None:
        """Without being the parent, the end of the main process is only seen."""
        if not self._members:
            self._next_scan = now
        is_alive = (self._main.pid, self._main.start) in {(m.pid, m.start) for m in self._members}
        if self._main_ended_at is None and not is_alive:
            self._main_ended_at = now
            self._scribe.event("main_gone")

    def _note_swept(self) -> None:
        swept = {(member.pid, member.start): member for member in (*self._members, *self._record.swept)}
        if len(swept) > len(self._record.swept):
            self._update(swept=tuple(swept.values())[:_MEMBERS_RECORDED])

    def _advance(self, before: ladder.Climb, facts: ladder.Facts) -> None:
        climb, orders = ladder.advance(before, facts, self._graces)
        if climb.step != before.step:
            self._next_scan = facts.now
            self._scribe.event("step", step=climb.step, left=len(self._members))
        for order in orders:
            self._obey(order)
        self._climb = climb
        if (climb.step, climb.sent, climb.stuck) != (before.step, before.sent, before.stuck):
            self._report(climb)
        if climb.stuck and not before.stuck:
            # After the report: who waits for this state wants to know at once who is left.
            self._scribe.event("stuck", left=len(self._members))
            self._update(state="stuck")

    def _kill_orphans(self, now: float) -> None:
        """Take orphans as they come: who forks and leaves is gone before all processes are looked at.

        Every such hop wakes the keeper, since the process left behind is its child.
        """
        if self._climb is None or self._climb.step != "kill" or not self._family.verified:
            return
        seen = (self._proc.stat(pid) for pid in self._proc.children(os.getpid()))
        orphans = tuple(
            Member(stat.pid, stat.start, command=stat.comm) for stat in seen if stat and stat.lives_on
        )
        self._advance(self._climb, ladder.Facts(now, orphans))

    def _obey(self, order: ladder.Order) -> None:
        member = order.target
        for number in order.signals:
            result = self._stopper.send(
                identity_of(member, self._main), number, descends=not self._record.foreign
            )
            self._unsure += result.status == "sent" and not result.sure
            self._scribe.event(
                "signal",
                step=order.step,
                signal=number.name,
                pid=member.pid,
                role=member.role,
                result=result.status,
                refusal=result.refusal,
                sure=result.sure,
            )

    def _facts(self, requests: frozenset[RequestKind], now: float) -> ladder.Facts:
        statuses = {
            member.pid: self._proc.status(member.pid)
            for member in self._members
            if member.role in ("main", "service", "agent", "rank")
        }
        seen = {pid: status for pid, status in statuses.items() if status is not None}
        look = None if self._output is None else self._output.latest
        return ladder.Facts(
            now=now,
            members=self._members,
            requests=requests,
            catching_abort=frozenset(pid for pid, s in seen.items() if s.catches(signal.SIGABRT)),
            ignoring_interrupt=frozenset(pid for pid, s in seen.items() if s.ignores(signal.SIGINT)),
            saving=None if look is None else look.saving,
            output_bytes=None if look is None else look.size,
        )

    def _report(self, climb: ladder.Climb) -> None:
        if self._record.stop is None:
            return
        steps = ladder.steps_taken(climb, len(self._members))
        left = self._members[:_MEMBERS_RECORDED] if climb.stuck else ()
        held = (self._proc.device_minors(member.pid) for member in left)
        self._update(
            stop=replace(
                self._record.stop,
                steps=steps,
                left=left,
                ports_open=self._still_open() if climb.stuck else (),
                devices_held=tuple(sorted(frozenset[int]().union(*held))),
                unsure=self._unsure,
            )
        )

    def _rest(self) -> None:
        killing = self._climb is not None and self._climb.step == "kill" and not self._climb.stuck
        woken = signal.sigtimedwait(WAKING_SIGNALS, _KILL_TICK if killing else _TICK)
        if woken is not None and woken.si_signo != signal.SIGCHLD and not self._going_down:
            self._going_down = True
            self._graces = ladder.hurried(self._graces)
            self._scribe.event("going_down", signal=woken.si_signo)

    def _finish(self, now: float) -> None:
        stop = self._record.stop
        if stop is not None and self._climb is not None:
            stop = replace(
                stop,
                steps=ladder.steps_taken(self._climb, 0, now),
                left=(),
                ports_open=self._still_open(),
                devices_held=(),
                seconds=now - self._climb.began,
            )
        self._scribe.event("ended")
        self._update(
            state="ended",
            ended_at=time.time(),
            members=(),
            stop=stop,
            oom_kills_end=read_cgroup(self._proc).oom_kills,
        )
        self._scribe.close()
        self._folder.release_reserve()

    def _still_open(self) -> tuple[int, ...]:
        return tuple(sorted(self._ports & {listener.port for listener in self._proc.listeners()}))

    def _update(self, **changes: object) -> None:
        self._record = replace(self._record, **changes)  # type: ignore[arg-type]  # the fields check
        self._scribe.record(self._record)


def _essence(member: Member) -> tuple[int, int, str, str]:
    """What makes a record worth writing again; the state letter changes all the time."""
    return member.pid, member.start, member.role, member.wchan
