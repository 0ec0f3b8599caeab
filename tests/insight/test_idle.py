from dataclasses import replace

from support.live_jobs import running_job
from support.samples import CUDA_0, gpu
from support.samples import rank as owner

from tui.facts.machine import Gpu
from tui.insight.idle import held_idle, idle_findings, near_limit

GIB = 1 << 30


def card(utilization: float | None, memory: float | None = 20.0) -> Gpu:
    owned = owner(0, 77, memory, job="job")
    return replace(gpu(owners=(owned,)), utilization=utilization)


def test_memory_that_is_held_by_a_card_that_does_nothing() -> None:
    job = running_job(gpus=(CUDA_0,))
    assert held_idle(job, [card(0.0)]) == 20 * GIB
    assert held_idle(job, [card(0.5)]) is None
    assert held_idle(job, [card(None)]) is None, "not known is not idle"
    assert held_idle(running_job(), [card(0.0)]) is None
    assert held_idle(job, [card(0.0, None)]) == gpu().memory.used, "the only one on the card"
    assert held_idle(replace(job, state="stopping"), [card(0.0)]) is None


def test_minutes_and_money() -> None:
    job = running_job(gpus=(CUDA_0,))
    assert list(idle_findings(job, GIB, 100.0, None)) == []
    (found,) = idle_findings(job, GIB, 600.0, None)
    assert (found.code, found.level, found.evidence["seconds"]) == ("gpu_idle", "warning", 600.0)
    (paid,) = idle_findings(job, GIB, 1800.0, 3.5)
    assert (paid.code, paid.evidence["money"]) == ("gpu_idle_paid", 1.75)
    service = running_job(kind="service")
    assert list(idle_findings(service, GIB, 600.0, 3.5)) == []
    assert [one.level for one in idle_findings(service, GIB, 3600.0, 3.5)] == ["advice"]


def test_a_peak_near_the_limit() -> None:
    total = gpu().memory.total
    assert total is not None
    job = running_job(gpus=(CUDA_0,))
    full = replace(job, peak_memory={CUDA_0: int(total * 0.96)})
    assert [one.code for one in near_limit(full, [gpu()])] == ["memory_near_limit"]
    assert list(near_limit(replace(job, peak_memory={CUDA_0: int(total * 0.9)}), [gpu()])) == []
