"""Cards that a run should use and does not, and the other way round."""

from collections.abc import Iterable
from dataclasses import replace

from support.samples import CUDA_0, CUDA_1, GIB, PROGRESS, gpu, rank

from tui.facts.finding import Finding
from tui.facts.job import Job, Member
from tui.facts.machine import EccErrors, Gpu, GpuDetail, Owner, ProcessInfo
from tui.insight.device_findings import device_findings
from tui.insight.peaks import Peaks

JOB = "1130-1541-lora"


def process(owner: Owner, **environment: str) -> ProcessInfo:
    assert owner.pid is not None
    assert owner.start is not None
    return ProcessInfo(
        owner.pid, 1, owner.start, "running", "root", owner.command, "train", owner.rank, environment
    )


def training(*pids: int, step: int | None = 5) -> Job:
    return Job(
        id=JOB, kind="training", state="running", ending=None, exit_code=None, failure=None, keeper=True,
        main_pid=pids[0], members=tuple(Member(pid, 1) for pid in pids), config=None, output_dir=None,
        started_at=None, ended_at=None, gpus=(), peak_memory={}, ports=(),
        progress=replace(PROGRESS, step=step),
    )  # fmt: skip


def found(gpus: Iterable[Gpu], jobs: Iterable[Job], processes: Iterable[ProcessInfo]) -> list[Finding]:
    return list(device_findings(tuple(gpus), jobs, {info.pid: info for info in processes}))


def test_ranks_that_also_hold_the_first_card_are_named_once() -> None:
    ranks = [rank(number, 50 + number, 20.0) for number in range(2)]
    stray = replace(ranks[1], memory=GIB // 2)
    gpus = [gpu(0, CUDA_0, owners=(ranks[0], stray)), gpu(1, CUDA_1, owners=(ranks[1],))]
    processes = [process(one, LOCAL_RANK=str(one.rank)) for one in ranks]
    assert found(gpus, [], processes) == [
        Finding(
            "rank_on_other_card",
            "advice",
            CUDA_0,
            {"index": 0, "job": JOB, "ranks": "1", "memory": GIB // 2},
        )
    ]
    swapped = [process(one, LOCAL_RANK=str(one.rank), CUDA_VISIBLE_DEVICES="1,0") for one in ranks]
    assert [(item.subject, item.evidence["ranks"]) for item in found(gpus, [], swapped)] == [
        (CUDA_0, "0"),
        (CUDA_1, "1"),
    ]


def test_a_rank_is_judged_by_its_own_environment_only() -> None:
    owner = rank(1, 51, 20.0)
    gpus = [gpu(0, CUDA_0, owners=(owner,)), gpu(1, CUDA_1)]
    assert found(gpus, [], []) == []
    assert found(gpus, [], [process(owner)]) == [], "no rank of torchrun"
    assert found(gpus, [], [replace(process(owner, LOCAL_RANK="1"), start=1)]) == [], "another process"
    unsized = replace(owner, memory=None)
    assert found([gpu(0, CUDA_0, owners=(unsized,)), gpus[1]], [], [process(owner, LOCAL_RANK="1")]) == []


def test_a_card_that_a_training_may_use_and_does_not() -> None:
    owner = rank(0, 50, 20.0)
    gpus = [gpu(0, CUDA_0, owners=(owner,)), gpu(1, CUDA_1)]
    unused = Finding("card_unused", "advice", CUDA_1, {"index": 1, "job": JOB})
    assert found(gpus, [training(50)], [process(owner)]) == [unused]
    assert found(gpus, [training(50)], [process(owner, CUDA_VISIBLE_DEVICES="0,1")]) == [unused]
    assert found(gpus, [training(50)], [process(owner, CUDA_VISIBLE_DEVICES="0")]) == []
    assert found(gpus, [training(50, step=None)], [process(owner)]) == [], "not yet at its steps"
    assert found(gpus, [training(50, step=0)], [process(owner)]) == []
    assert found(gpus, [training(60)], [process(owner)]) == [], "nothing of it is seen on any card"
    hidden = replace(process(owner), unknown={"environment": "no_permission"})
    assert found(gpus, [training(50)], [hidden]) == []


def test_memory_errors_that_could_not_be_corrected() -> None:
    broken = replace(gpu(0), detail=GpuDetail(ecc=EccErrors(corrected=9, uncorrected=2)))
    assert found([broken], [], []) == [
        Finding("gpu_memory_errors", "warning", CUDA_0, {"index": 0, "count": 2})
    ]
    fine = replace(gpu(0), detail=GpuDetail(ecc=EccErrors(corrected=9, uncorrected=0)))
    assert found([fine, replace(gpu(0), detail=GpuDetail(ecc=EccErrors(0, None)))], [], []) == []


def test_the_peak_of_a_run_is_that_of_all_its_processes_together() -> None:
    peaks = Peaks()
    both = gpu(0, CUDA_0, owners=(rank(0, 50, 3.0), rank(1, 51, 4.0)))
    peaks.note_runs([both, gpu(1, CUDA_1, owners=(rank(0, 50, 1.0),))], [JOB])
    peaks.note_runs([gpu(0, CUDA_0, owners=(rank(0, 50, 5.0), rank(1, 51, None)))], [JOB])
    assert peaks.of_run(JOB) == {CUDA_0: 7 * GIB, CUDA_1: GIB}
    assert peaks.of_run("other") == {}
    peaks.note_runs([], [])
    assert peaks.of_run(JOB) == {}
