"""Cards that a run should use and does not, and cards that it uses and should not."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from tui.facts.finding import EvidenceValue, Finding
from tui.facts.job import Job
from tui.facts.machine import Gpu, Owner, ProcessInfo
from tui.insight.visible_devices import card_of_rank, visible_cards


def device_findings(
    gpus: Sequence[Gpu], jobs: Iterable[Job], processes: Mapping[int, ProcessInfo]
) -> tuple[Finding, ...]:
    """Findings about the cards of each live run, by the environment of its processes (all local ones)."""
    live = [job for job in jobs if job.state not in ("ended", "lost")]
    return (
        *(finding for gpu in gpus for finding in _strayed(gpu, gpus, processes)),
        *(finding for job in live for finding in _unused(job, gpus, processes)),
        *(finding for gpu in gpus for finding in _memory_errors(gpu)),
    )


def _strayed(gpu: Gpu, gpus: Sequence[Gpu], processes: Mapping[int, ProcessInfo]) -> Iterator[Finding]:
    """Ranks that hold memory on a card which is another rank's."""
    strays: dict[str, list[Owner]] = {}
    for owner in gpu.owners:
        info = processes.get(owner.pid) if owner.pid is not None else None
        if owner.rank is None or owner.memory is None or info is None or info.start != owner.start:
            continue
        own = card_of_rank(info.environment, gpus)
        if own is not None and own != gpu.uuid:
            strays.setdefault(owner.job or "", []).append(owner)
    for job, owners in strays.items():
        ranks = sorted(owner.rank for owner in owners if owner.rank is not None)
        evidence: dict[str, EvidenceValue] = {
            "index": gpu.index,
            "job": job,
            "ranks": ", ".join(map(str, ranks)),
            "memory": sum(owner.memory or 0 for owner in owners),
        }
        yield Finding("rank_on_other_card", "advice", gpu.uuid, evidence)


def _unused(job: Job, gpus: Sequence[Gpu], processes: Mapping[int, ProcessInfo]) -> Iterator[Finding]:
    """Cards that a training which has come to its steps may use and does not hold.

    Judged only while it is seen to hold a card: where owners cannot be told, nothing can.
    """
    if job.kind != "training" or job.progress is None or not job.progress.step:
        return
    info = processes.get(job.main_pid) if job.main_pid is not None else None
    pids = {member.pid for member in job.members}
    held = {gpu.uuid for gpu in gpus if any(owner.pid in pids for owner in gpu.owners if owner.pid)}
    if info is None or "environment" in info.unknown or not held:
        return
    given = visible_cards(info.environment, gpus) or ()
    for gpu in gpus:
        if gpu.uuid in given and gpu.uuid not in held and gpu.state == "ok":
            yield Finding("card_unused", "advice", gpu.uuid, {"index": gpu.index, "job": job.id})


def _memory_errors(gpu: Gpu) -> Iterator[Finding]:
    errors = gpu.detail.ecc
    if errors is not None and errors.uncorrected:
        evidence = {"index": gpu.index, "count": errors.uncorrected}
        yield Finding("gpu_memory_errors", "warning", gpu.uuid, evidence)
