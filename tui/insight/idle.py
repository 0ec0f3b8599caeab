"""Cards that a run holds and does not use: how long, and what that costs."""

from collections.abc import Iterator, Sequence

from tui.facts.finding import Action, Finding, Level
from tui.facts.job import Job
from tui.facts.machine import Gpu

IDLE_BELOW = 0.05
LEAST_MEMORY = 512 << 20
TRAINING_SECONDS = 180.0
SERVICE_SECONDS = 1800.0
"""A service waits for requests by its nature."""
NEAR_LIMIT = 0.95


def held_idle(job: Job, gpus: Sequence[Gpu]) -> int | None:
    """Bytes that a run holds on cards of which none works now; ``None`` where that is not so or not known."""
    if job.state not in {"running", "starting"} or not job.gpus:
        return None
    cards = [gpu for gpu in gpus if gpu.uuid in job.gpus]
    if not cards or any(gpu.utilization is None or gpu.utilization >= IDLE_BELOW for gpu in cards):
        return None
    held = sum(owner.memory or 0 for gpu in cards for owner in gpu.owners if owner.job == job.id)
    # Where no size is known per process, a card that nobody else uses is this run's.
    known = held or sum(gpu.memory.used or 0 for gpu in cards if len(gpu.owners) <= 1)
    return known if known >= LEAST_MEMORY else None


def idle_findings(job: Job, memory: int, seconds: float, price_per_hour: float | None) -> Iterator[Finding]:
    """``seconds``: since when the cards have been idle without a break; a price adds what that cost."""
    is_training = job.kind == "training"
    if seconds < (TRAINING_SECONDS if is_training else SERVICE_SECONDS):
        return
    actions = (Action("stop", (job.id,)),)
    level: Level = "warning" if is_training else "advice"
    evidence = {"seconds": seconds, "memory": memory}
    if price_per_hour is None:
        yield Finding("gpu_idle", level, job.id, evidence, actions)
    else:
        money = round(price_per_hour * seconds / 3600, 2)
        yield Finding("gpu_idle_paid", level, job.id, {**evidence, "money": money}, actions)


def near_limit(job: Job, gpus: Sequence[Gpu]) -> Iterator[Finding]:
    """A run whose peak nearly filled a card."""
    if job.state != "running" or job.kind != "training":
        return
    for gpu in gpus:
        peak, total = job.peak_memory.get(gpu.uuid), gpu.memory.total
        if peak is not None and total and peak >= NEAR_LIMIT * total:
            evidence = {"used": peak, "total": total, "index": gpu.index}
            yield Finding("memory_near_limit", "advice", job.id, evidence)
