"""A recorded feed: made-up Snapshots that the screen, its tests and its pictures are drawn from.

Everything is a function of the tick, so that two runs paint the same screens.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tui.app.desk import Loss, Preview
from tui.facts.errors import LlamaherdError
from tui.facts.finding import Finding
from tui.facts.job import Job, LadderStep, Member, RequestKind, StopReport
from tui.facts.machine import (
    Clocks,
    Disk,
    Driver,
    DriverError,
    DriverErrorCode,
    Gpu,
    GpuMemory,
    Host,
    HostMemory,
    Owner,
    SharedMemory,
)
from tui.facts.snapshot import Snapshot
from tui.facts.training import Allocation, Bar, EtaWorking, Failure, Progress

GIB = 1 << 30
MIB = 1 << 20
START = 1_780_000_000.0
"""Epoch seconds of the first tick: 2026-05-28 20:26:40 UTC."""

RUN = "20260528-201200-qwen-lora"


class RecordedFeed:
    """A feed that has these Snapshots, one after another, as often as ``step`` is called."""

    def __init__(self, snapshots: Sequence[Snapshot]) -> None:
        self._snapshots = snapshots
        self._at = -1

    def start(self) -> None:
        if self._at < 0 and self._snapshots:
            self._at = 0

    def step(self) -> None:
        self._at = min(self._at + 1, len(self._snapshots) - 1)

    def latest(self) -> Snapshot | None:
        return self._snapshots[self._at] if self._at >= 0 else None

    def trouble(self) -> str:
        return ""

    def close(self) -> None:
        pass


class RecordedDesk:
    """A desk that has two configs, remembers what was asked of it, and refuses what it is told to."""

    def __init__(self) -> None:
        self.started: list[Path] = []
        self.stopped: list[tuple[str, RequestKind]] = []
        self.refusal: LlamaherdError | None = None

    def configs(self) -> Sequence[Path]:
        return [Path("configs/qwen-lora.yaml"), Path("configs/broken.yaml")]

    def prepare(self, config: Path, overrides: tuple[str, ...]) -> Preview:
        if config.stem == "broken":
            raise LlamaherdError("config_missing", path=str(config))
        command = ("llamafactory-cli", "train", "/root/autodl-tmp/.llamaherd/jobs/<new>/config.yaml")
        added = (("LLAMABOARD_ENABLED", "1"),)
        return Preview(command, "/root/LLaMA-Factory", "saves/qwen2.5-7b/lora/sft", added, config)

    def start(self, preview: Preview) -> str:
        if self.refusal is not None:
            raise self.refusal
        assert isinstance(preview.launch, Path)
        self.started.append(preview.launch)
        return RUN

    def loss(self, job: Job) -> Loss:
        return Loss(17, 50)

    def stop(self, job: Job, kind: RequestKind) -> None:
        if self.refusal is not None:
            raise self.refusal
        self.stopped.append((job.id, kind))


def gpu(
    index: int = 0,
    *,
    name: str = "NVIDIA GeForce RTX 4090",
    total: int = 24 * GIB,
    used: int = 0,
    reserved: int = 450 * MIB,
    utilization: float | None = 0.97,
    temperature: float | None = 61,
    power: float | None = 312,
    owners: tuple[Owner, ...] = (),
    unattributed: int | None = None,
    throttle: tuple[str, ...] = (),
    age: float | None = 0.2,
) -> Gpu:
    return Gpu(
        index=index,
        minor=index,
        uuid=f"GPU-{index:04d}",
        name=name,
        state="ok",
        age=age,
        memory=GpuMemory(total, used, reserved, total - used - reserved, unattributed),
        utilization=utilization,
        temperature=temperature,
        power=power,
        power_limit=450,
        clocks=Clocks(2_520_000_000, 10_501_000_000),
        throttle=throttle,
        peak_memory=used + 200 * MIB if used else used,
        owners=owners,
    )


def owner(pid: int, memory: int | None, **more: object) -> Owner:
    base = Owner(
        pid=pid,
        host_pid=None,
        start=pid * 100,
        memory=memory,
        evidence="exact",
        kind="train",
        user="root",
        command=("python", "-u", "src/train.py", "examples/qwen-lora.yaml"),
        state="running",
    )
    return replace(base, **more)  # type: ignore[arg-type]  # the names are those of Owner


def hidden(memory: int) -> Owner:
    return Owner(pid=None, host_pid=None, start=None, memory=memory, evidence="hidden", kind="other")


def host(*, gpu_mode: str = "gpu") -> Host:
    return Host(
        cpu_count=16,
        cpu_used=3.2,
        memory=HostMemory(limit=62 * GIB, used=int(18.4 * GIB), high=None),
        oom_kills=0,
        disks=(
            Disk("/", 30 * GIB, int(3.1 * GIB), 900_000, "system"),
            Disk("/root/autodl-tmp", 50 * GIB, int(21.7 * GIB), 3_000_000, "data"),
        ),
        shm=SharedMemory(31 * GIB, 30 * GIB),
        platform="autodl",
        gpu_mode=gpu_mode,  # type: ignore[arg-type]  # one of the literals
    )


def progress(step: int, total: int = 300) -> Progress:
    left = total - step
    seconds = 3.62
    eta = left * seconds + 2 * 6.0 + 9
    return Progress(
        stage="train",
        step=step,
        total=total,
        fraction=step / total,
        eta=eta,
        eta_low=eta * 0.93,
        eta_high=eta * 1.12,
        eta_working=EtaWorking(left, seconds, 1, 31.0, 2, 6.0, 9.0),
        seconds_per_step=seconds,
        samples_per_second=8.84,
        tokens_per_second=4312,
        effective_batch=32,
        epoch=step / 100,
        loss=1.92 * math.exp(-step / 140) + 0.61 + 0.02 * math.sin(step),
        eval_loss=1.1873 if step > 100 else None,
        last_checkpoint=step // 50 * 50 or None,
        seen=("start", "import", "dataset", "tokenize", "load", "prepare", "train"),
        source="bar",
        age=1.0,
        bar=Bar("train", step, total),
    )


def job(**more: object) -> Job:
    base = Job(
        id=RUN,
        kind="training",
        state="running",
        ending=None,
        exit_code=None,
        failure=None,
        keeper=True,
        main_pid=4321,
        members=(
            Member(4321, 432_100, "main", "R", "python -u src/train.py"),
            Member(4377, 432_900, "data_worker", "S", "python -u src/train.py"),
        ),
        config="examples/qwen-lora.yaml",
        output_dir="saves/qwen2.5-7b/lora/sft",
        started_at=START - 480,
        ended_at=None,
        gpus=("GPU-0000",),
        peak_memory={"GPU-0000": 21 * GIB},
        ports=(),
        progress=progress(123),
        command=("llamafactory-cli", "train", "examples/qwen-lora.yaml"),
        cwd="/root/LLaMA-Factory",
        folder="/root/autodl-tmp/.llamaherd/" + RUN,
    )
    return replace(base, **more)  # type: ignore[arg-type]  # the names are those of Job


def failed_job() -> Job:
    return job(
        id="20260528-190310-full-ft",
        state="ended",
        ending="failed",
        exit_code=1,
        keeper=False,
        members=(),
        config="examples/full-ft.yaml",
        main_pid=None,
        started_at=START - 5000,
        ended_at=START - 4700,
        progress=replace(progress(0), step=0, stage="backward", eta=None, fraction=0.0, loss=None),
        failure=Failure(
            "cuda_oom",
            "backward",
            0,
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.16 GiB.",
            Allocation(int(1.16 * GIB), "logits"),
        ),
    )


def finished_job() -> Job:
    return job(
        id="20260527-221500-baseline",
        state="ended",
        ending="finished",
        exit_code=0,
        keeper=False,
        members=(),
        main_pid=None,
        config="examples/baseline.yaml",
        started_at=START - 80_000,
        ended_at=START - 76_000,
        progress=replace(progress(300), stage="ended", eta=None),
    )


def service(**more: object) -> Job:
    return job(
        id="6011:601100",
        kind="service",
        keeper=False,
        main_pid=6011,
        members=(Member(6011, 601_100, "service", "S", "llamafactory-cli webui"),),
        config=None,
        output_dir=None,
        progress=None,
        ports=(7860,),
        command=("llamafactory-cli", "webui"),
        folder=None,
        **more,
    )


def stop_report(*, done: bool = False) -> StopReport:
    steps = (LadderStep("interrupt", 0.1, 4.2, (4321,), 1), LadderStep("terminate", 4.2, 5.0, (4377,), 0))
    return StopReport(START, "stop", steps if done else steps[:1], seconds=5.3 if done else None)


def one_gpu(tick: int = 0, *, findings: tuple[Finding, ...] | None = None) -> Snapshot:
    """A 24 GiB card that trains, memory getting tight, and some memory that nobody explains."""
    used = int((20.8 + 0.6 * math.sin(tick / 3)) * GIB)
    explained = used - int(0.9 * GIB)
    card = gpu(
        used=used,
        utilization=0.94 + 0.05 * math.sin(tick / 2),
        temperature=61 + tick % 3,
        power=312 + 9 * math.sin(tick),
        owners=(owner(4321, explained, job=RUN), hidden(used - explained)),
        unattributed=used - explained,
    )
    return snapshot(
        tick,
        gpus=(card,),
        jobs=(job(progress=progress(40 + tick // 4)), failed_job(), finished_job()),
        findings=findings if findings is not None else (low_disk(),),
    )


def low_disk() -> Finding:
    return Finding(
        "disk_nearly_full",
        "warning",
        "/",
        {"path": "/", "free": int(3.1 * GIB), "total": 30 * GIB},
    )


def eight_gpus(tick: int = 0, *, owners: int = 50) -> Snapshot:
    """Eight cards under a torchrun training, with so many owner rows; everything changes each tick."""
    cards = []
    for index in range(8):
        rows = []
        for row in range(index, owners, 8):
            size = int((7.0 - row * 0.11 + 0.2 * math.sin(tick + row)) * GIB)
            kind = "train" if row < 8 else ("data_worker", "vllm", "notebook", "other")[row % 4]
            rows.append(
                owner(
                    5000 + row, size, rank=index if row < 8 else None, kind=kind, job=RUN if row < 8 else None
                )
            )
        used = sum(row.memory or 0 for row in rows) + 2 * GIB
        cards.append(
            gpu(
                index,
                name="NVIDIA A100-SXM4-80GB",
                total=80 * GIB,
                used=used,
                utilization=0.5 + 0.49 * math.sin(tick + index),
                temperature=55 + (tick * 7 + index * 3) % 20,
                power=250 + 90 * math.sin(tick * 1.7 + index),
                owners=(*rows, hidden(2 * GIB)),
                unattributed=2 * GIB,
            )
        )
    running = job(
        gpus=tuple(card.uuid for card in cards),
        members=tuple(Member(5000 + n, 500_000, "rank", "R", "python -u src/train.py") for n in range(8)),
        progress=progress(20 + tick // 3, 4000),
    )
    return snapshot(
        tick, gpus=tuple(cards), jobs=(running, failed_job(), finished_job()), foreign=(service(),)
    )


def no_driver(code: DriverErrorCode = "library_missing", *, gpu_mode: str = "none") -> Snapshot:
    """No card: a training on the CPU still shows."""
    return replace(
        snapshot(0, gpus=(), jobs=(job(gpus=(), progress=progress(7, 40)),), host=host(gpu_mode=gpu_mode)),
        driver=Driver(error=DriverError(code, "libnvidia-ml.so.1: cannot open shared object file")),
    )


def stale(seconds: float) -> Snapshot:
    """The driver has not answered for so long; the last figures are kept with their age."""
    picture = one_gpu()
    return replace(
        picture,
        driver=replace(picture.driver, error=DriverError("timed_out", "")),
        gpus=tuple(replace(card, age=seconds) for card in picture.gpus),
        ages={**picture.ages, "gpu": seconds},
    )


def snapshot(
    tick: int,
    *,
    gpus: tuple[Gpu, ...],
    jobs: tuple[Job, ...] = (),
    foreign: tuple[Job, ...] = (),
    findings: tuple[Finding, ...] = (),
    host: Host | None = None,
) -> Snapshot:
    return Snapshot(
        number=tick + 1,
        taken_at=START + tick,
        driver=Driver("550.90.07", "12.550.90.07", "own_with_memory"),
        gpus=gpus,
        host=host or globals()["host"](),
        jobs=jobs,
        foreign=foreign,
        findings=findings,
        ages={"gpu": 0.2, "processes": 0.1, "host": 0.1, "jobs": 0.1},
    )


def write_logs(snapshot: Snapshot, folder: Path) -> Snapshot:
    """The same picture, its jobs' folders being real ones that hold a log."""
    return replace(snapshot, jobs=tuple(_with_log(item, folder / item.id) for item in snapshot.jobs))


def _with_log(item: Job, folder: Path) -> Job:
    if item.folder is None:
        return item
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "train.log").write_text(
        _data("out-of-memory.log") if item.ending == "failed" else log_text(item)
    )
    return replace(item, folder=str(folder))


def log_text(item: Job) -> str:
    step = (item.progress.step if item.progress else None) or 0
    total = (item.progress.total if item.progress else None) or 0
    lines = [_data("train-head.log").format(total=total)]
    for at in range(5, step + 1, 5):
        loss = 1.92 * math.exp(-at / 140) + 0.61 + 0.02 * math.sin(at)
        lines.append(
            f"{{'loss': {loss:.4f}, 'grad_norm': 0.8871, 'learning_rate': 9.1e-05, 'epoch': {at / 100}}}"
        )
        if at % 50 == 0:
            folder = f"saves/qwen2.5-7b/lora/sft/checkpoint-{at}"
            lines.append(
                f"[INFO|trainer.py:4309] 2026-05-28 20:40:12,118 >> Saving model checkpoint to {folder}"
            )
    share = step / max(total, 1)
    bar = f"{share:4.0%}|{'█' * int(10 * share):<10}| {step}/{total} [12:04<08:31,  3.62s/it]"
    return "\n".join([*lines, f"\r{bar}"])


def _data(name: str) -> str:
    return (Path(__file__).parent.parent / "data" / "screen" / name).read_text()
