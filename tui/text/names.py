"""Short names for every code of the facts: what a table cell or a label says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui.text.translate import tr, tr_noop

if TYPE_CHECKING:  # the screen says these words before it needs any fact
    from tui.facts.finding import Level
    from tui.facts.job import Ending, JobKind, JobState, MemberRole
    from tui.facts.machine import Evidence, ProcessKind, ProcessState, ThrottleReason
    from tui.facts.training import Stage

STATES: dict[JobState, str] = {
    "starting": tr_noop("starting"),
    "running": tr_noop("running"),
    "stopping": tr_noop("stopping"),
    "stuck": tr_noop("cannot be ended"),
    "ended": tr_noop("ended"),
    "lost": tr_noop("out of sight"),
}
ENDINGS: dict[Ending, str] = {
    "finished": tr_noop("finished"),
    "stopped": tr_noop("stopped"),
    "stopped_saved": tr_noop("stopped, weights saved"),
    "failed": tr_noop("failed"),
    "untrained": tr_noop("ended without training"),
    "partial": tr_noop("ended before the last step"),
    "unknown": tr_noop("ended, how is unknown"),
}
STAGES: dict[Stage, str] = {
    "start": tr_noop("starting"),
    "import": tr_noop("importing libraries"),
    "dataset": tr_noop("reading the dataset"),
    "tokenize": tr_noop("tokenizing"),
    "load": tr_noop("loading weights"),
    "prepare": tr_noop("preparing the trainer"),
    "train": tr_noop("training"),
    "forward": tr_noop("forward pass"),
    "loss": tr_noop("computing the loss"),
    "backward": tr_noop("backward pass"),
    "optimizer": tr_noop("optimizer step"),
    "eval": tr_noop("evaluating"),
    "save": tr_noop("saving"),
    "final_eval": tr_noop("final evaluation"),
    "ended": tr_noop("ended"),
}
JOB_KINDS: dict[JobKind, str] = {
    "training": tr_noop("training"),
    "service": tr_noop("service"),
}
ROLES: dict[MemberRole, str] = {
    "main": tr_noop("main process"),
    "wrapper": tr_noop("launcher"),
    "agent": tr_noop("torchrun"),
    "rank": tr_noop("rank"),
    "data_worker": tr_noop("data worker"),
    "pool": tr_noop("preprocessing worker"),
    "service": tr_noop("service"),
    "keeper": tr_noop("keeper"),
    "other": tr_noop("other"),
}
PROCESS_KINDS: dict[ProcessKind, str] = {
    "train": tr_noop("training"),
    "data_worker": tr_noop("data worker"),
    "webui": "WebUI",
    "chat": "Chat",
    "api": "API",
    "vllm": "vLLM",
    "notebook": tr_noop("notebook"),
    "monitor": tr_noop("monitor"),
    "other": tr_noop("other"),
}
PROCESS_STATES: dict[ProcessState, str] = {
    "running": tr_noop("running"),
    "sleeping": tr_noop("sleeping"),
    "disk_wait": tr_noop("waiting in the kernel"),
    "stopped": tr_noop("suspended"),
    "zombie": tr_noop("zombie"),
    "gone": tr_noop("gone"),
    "unknown": tr_noop("unknown"),
}
EVIDENCE: dict[Evidence, str] = {
    "exact": tr_noop("measured"),
    "sole_holder": tr_noop("only holder"),
    "inferred": tr_noop("inferred"),
    "holder": tr_noop("holder"),
    "hidden": tr_noop("hidden"),
}
EVIDENCE_MEANINGS: dict[Evidence, str] = {
    "exact": tr_noop("the driver gives the size of this process"),
    "sole_holder": tr_noop("the only process on the card, so what the card has in use is taken as its size"),
    "inferred": tr_noop("the driver's process has a PID outside this container; it was paired with this one"),
    "holder": tr_noop("it has the card open, its size is unknown"),
    "hidden": tr_noop("no visible process explains this memory"),
}
THROTTLES: dict[ThrottleReason, str] = {
    "idle": tr_noop("idle"),
    "application_clocks": tr_noop("clocks set by a program"),
    "sw_power_cap": tr_noop("power limit"),
    "hw_slowdown": tr_noop("slowed down by the hardware"),
    "sync_boost": tr_noop("kept in step with other cards"),
    "sw_thermal": tr_noop("slowed down: too hot"),
    "hw_thermal": tr_noop("slowed down by the hardware: too hot"),
    "hw_power_brake": tr_noop("slowed down by the power supply"),
    "display_clocks": tr_noop("clocks set for a display"),
}
LEVELS: dict[Level, str] = {
    "info": tr_noop("note"),
    "advice": tr_noop("advice"),
    "warning": tr_noop("warning"),
    "danger": tr_noop("danger"),
}

_SIGNALS = {1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 6: "SIGABRT", 9: "SIGKILL", 11: "SIGSEGV", 15: "SIGTERM"}


def state_or_ending(state: JobState, ending: Ending | None) -> str:
    """What a job is now: its ending once it has one, else its state."""
    return tr(ENDINGS[ending] if state == "ended" and ending else STATES[state])


def signal_name(number: int) -> str:
    """``SIGINT``; a signal without a common name as ``signal 35``."""
    return _SIGNALS.get(number) or tr("signal {number}", number=number)
