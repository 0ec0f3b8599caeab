"""Snapshots and jobs made by hand: a busy machine, one without a driver, a stop that failed, hostile text."""

from dataclasses import replace

from tui.facts.finding import Action, Finding
from tui.facts.job import Job, LadderStep, Member, StopReport
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
from tui.facts.training import Allocation, EtaWorking, Failure, Progress

GIB, MIB = 1 << 30, 1 << 20
NOW = 1_796_029_445.0
"""2026-11-30 17:04:05 +0800."""

JOB = "1130-1541-lora"
OTHER_JOB = "1130-0912-lora"
CUDA_0, CUDA_1 = "GPU-11111111-aaaa-bbbb-cccc-000000000001", "GPU-22222222-aaaa-bbbb-cccc-000000000002"


def gpu(index: int = 0, uuid: str = CUDA_0, *, used: float = 21.4, owners: tuple[Owner, ...] = ()) -> Gpu:
    """A working RTX 4090 with ``used`` GiB in use."""
    explained = sum(owner.memory or 0 for owner in owners if owner.evidence != "hidden")
    return Gpu(
        index=index,
        minor=index,
        uuid=uuid,
        name="NVIDIA GeForce RTX 4090",
        state="ok",
        age=0.4,
        memory=GpuMemory(
            total=24 * GIB,
            used=int(used * GIB),
            reserved=430 * MIB,
            free=int((24 - used) * GIB) - 430 * MIB,
            unattributed=max(0, int(used * GIB) - explained),
        ),
        utilization=0.98,
        temperature=64,
        power=287,
        power_limit=450,
        clocks=Clocks(graphics=2_520_000_000, memory=10_501_000_000),
        throttle=(),
        peak_memory=int(used * GIB),
        owners=owners,
    )


def lost_gpu(index: int, uuid: str) -> Gpu:
    """A card that fell off the bus."""
    return replace(
        gpu(index, uuid),
        state="lost",
        memory=GpuMemory(total=None, used=None, reserved=None, free=None),
        utilization=None,
        temperature=None,
        power=None,
        power_limit=None,
        clocks=None,
        peak_memory=None,
        unknown={
            "memory": "gpu_lost",
            "utilization": "gpu_lost",
            "temperature": "gpu_lost",
            "power": "gpu_lost",
        },
    )


def rank(number: int, pid: int, memory: float | None, *, job: str | None = JOB) -> Owner:
    """A rank of the training."""
    return Owner(
        pid=pid,
        host_pid=None,
        start=8_812_345 + pid,
        memory=None if memory is None else int(memory * GIB),
        evidence="exact" if memory is not None else "holder",
        kind="train",
        rank=number,
        job=job,
        user="root",
        command=(
            "/root/miniconda3/envs/lf/bin/python",
            "-u",
            "/root/LLaMA-Factory/src/llamafactory/launcher.py",
            "train.yaml",
        ),
        state="running",
        unknown={} if memory is not None else {"memory": "driver_without_figure"},
    )


WEBUI = Owner(
    pid=3311,
    host_pid=None,
    start=7_000_000,
    memory=int(0.8 * GIB),
    evidence="exact",
    kind="webui",
    user="root",
    command=("/root/miniconda3/envs/lf/bin/python", "/root/miniconda3/envs/lf/bin/llamafactory-cli", "webui"),
    state="sleeping",
)
UNEXPLAINED = Owner(
    pid=None,
    host_pid=None,
    start=None,
    memory=int(1.1 * GIB),
    evidence="hidden",
    kind="other",
    unknown={"pid": "not_visible"},
)
HOST_PROCESS = Owner(
    pid=None,
    host_pid=914222,
    start=None,
    memory=int(7.2 * GIB),
    evidence="hidden",
    kind="other",
    unknown={"pid": "not_visible", "command": "not_visible"},
)

HOST = Host(
    cpu_count=16,
    cpu_used=6.2,
    memory=HostMemory(limit=90 * GIB, used=int(38.1 * GIB), high=86 * GIB),
    oom_kills=0,
    disks=(
        Disk(path="/", total=30 * GIB, free=int(12.4 * GIB), inodes_free=3_000_000, role="system"),
        Disk(
            path="/root/autodl-tmp", total=200 * GIB, free=int(7.5 * GIB), inodes_free=9_000_000, role="data"
        ),
        Disk(path="/root/autodl-fs", total=200 * GIB, free=int(151 * GIB), inodes_free=None, role="shared"),
    ),
    shm=SharedMemory(total=45 * GIB, free=int(43.8 * GIB)),
    platform="autodl",
    gpu_mode="gpu",
)

PROGRESS = Progress(
    stage="train",
    step=380,
    total=500,
    fraction=0.76,
    eta=1026,
    eta_low=990,
    eta_high=1110,
    eta_working=EtaWorking(
        steps_left=120,
        seconds_per_step=8.0,
        evals_left=2,
        seconds_per_eval=31.2,
        saves_left=1,
        seconds_per_save=3.8,
    ),
    seconds_per_step=8.0,
    samples_per_second=2.0,
    tokens_per_second=4051.0,
    effective_batch=16,
    epoch=2.28,
    loss=1.2345,
    eval_loss=1.301,
    last_checkpoint=350,
    seen=("start", "import", "dataset", "tokenize", "load", "prepare", "train", "eval", "save"),
    source="bar",
    age=2.1,
)


MEMBERS = (
    Member(48210, 8860555, "wrapper", "S", "llamafactory-cli"),
    Member(48222, 8860567, "agent", "S", "torchrun"),
    Member(48230, 8860575, "rank", "R", "python"),
    Member(48231, 8860576, "rank", "R", "python"),
    Member(48240, 8860585, "data_worker", "S", "python"),
    Member(48241, 8860586, "data_worker", "S", "python"),
)

RUNNING = Job(
    id=JOB,
    kind="training",
    state="running",
    ending=None,
    exit_code=None,
    failure=None,
    keeper=True,
    main_pid=48210,
    members=MEMBERS,
    config="/root/LLaMA-Factory/train.yaml",
    output_dir="/root/autodl-tmp/saves/qwen2.5-7b/lora/sft",
    started_at=NOW - 4980,
    ended_at=None,
    gpus=(CUDA_0, CUDA_1),
    peak_memory={CUDA_0: int(21.8 * GIB), CUDA_1: int(20.9 * GIB)},
    ports=(45933,),
    progress=PROGRESS,
    command=("llamafactory-cli", "train", "/root/LLaMA-Factory/train.yaml"),
    cwd="/root/LLaMA-Factory",
    folder=f"/root/autodl-tmp/.llamaherd/{JOB}",
)
LOADING = replace(
    RUNNING,
    id="1130-1703-full",
    progress=Progress(
        stage="load", seen=("start", "load"), age=75.0, unknown={"eta": "not_yet", "step": "not_yet"}
    ),
    started_at=NOW - 90,
    output_dir=None,
)
FAILED = replace(
    RUNNING,
    id=OTHER_JOB,
    state="ended",
    ending="failed",
    exit_code=1,
    keeper=False,
    main_pid=None,
    members=(),
    ports=(),
    failure=Failure(
        kind="cuda_oom",
        stage="backward",
        rank=1,
        message="torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 1 has a total"
        " capacity of 23.64 GiB of which 1.06 GiB is free.",
        allocation=Allocation(bytes=2 * GIB),
    ),
    started_at=NOW - 28_000,
    ended_at=NOW - 27_100,
    progress=replace(
        PROGRESS, stage="ended", step=37, fraction=0.074, eta=None, eta_working=None, last_checkpoint=None
    ),
)
FINISHED = replace(
    FAILED,
    id="1129-2210-lora",
    ending="finished",
    exit_code=0,
    failure=None,
    started_at=NOW - 68_000,
    ended_at=NOW - 61_000,
    progress=replace(
        PROGRESS, stage="ended", step=500, fraction=1.0, eta=None, eta_working=None, last_checkpoint=500
    ),
)
UNTRAINED = replace(
    FINISHED,
    id="1129-2201-lora",
    ending="untrained",
    progress=None,
    started_at=NOW - 69_000,
    ended_at=NOW - 68_950,
)
SERVICE = replace(
    RUNNING,
    id="1130-1650-webui",
    kind="service",
    main_pid=3311,
    members=(Member(3311, 7_000_000, "service", "S", "llamafactory-cli"),),
    config=None,
    output_dir=None,
    gpus=(CUDA_0,),
    peak_memory={},
    ports=(7860,),
    progress=None,
    command=("llamafactory-cli", "webui"),
    started_at=NOW - 840,
)
FOREIGN = replace(
    RUNNING,
    id="51000:8812345",
    keeper=False,
    main_pid=51000,
    members=(Member(51000, 8812345, "main", "R", "llamafactory-cli"),),
    gpus=(CUDA_1,),
    progress=None,
    folder=None,
    unknown={"progress": "missing_file"},
    started_at=NOW - 600,
)

STOPPED_REPORT = StopReport(
    requested_at=NOW - 30,
    kind="stop",
    steps=(
        LadderStep("wait_save", 0.0, 3.2, (), 6),
        LadderStep("interrupt", 3.2, 8.9, (48222,), 2),
        LadderStep("terminate", 8.9, 9.6, (48240, 48241), 0),
    ),
    seconds=9.6,
)
STUCK_REPORT = StopReport(
    requested_at=NOW - 70,
    kind="stop",
    steps=(
        LadderStep("interrupt", 0.0, 35.0, (48222,), 6),
        LadderStep("terminate", 35.0, 45.0, (48210, 48222, 48230, 48231, 48240, 48241), 2),
        LadderStep("kill", 45.0, 65.0, (48230, 48231), 1),
    ),
    left=(Member(48231, 8860576, "rank", "D", "python -u launcher.py train.yaml", "uvm_gpu_retain"),),
    ports_open=(45933,),
    devices_held=(1,),
    seconds=65.0,
)
STOPPED = replace(
    FAILED,
    id=JOB,
    ending="stopped",
    exit_code=-2,
    failure=None,
    started_at=NOW - 4980,
    ended_at=NOW - 20,
    progress=replace(PROGRESS, stage="ended", eta=None, eta_working=None),
    stop=STOPPED_REPORT,
)
STUCK = replace(
    RUNNING,
    state="stuck",
    members=STUCK_REPORT.left,
    stop=STUCK_REPORT,
    progress=replace(PROGRESS, eta=None, eta_working=None, age=80.0),
)

UNEXPLAINED_FINDING = Finding(
    "gpu_memory_unexplained",
    "warning",
    CUDA_0,
    {"index": 0, "memory": int(1.1 * GIB)},
)
DISK_FINDING = Finding(
    "disk_nearly_full",
    "warning",
    "/root/autodl-tmp",
    {"free": int(7.5 * GIB), "total": 200 * GIB},
)


def busy() -> Snapshot:
    """Two cards, one training on both, a WebUI, unexplained memory, a failed and a finished job."""
    return Snapshot(
        number=7,
        taken_at=NOW,
        driver=Driver(version="580.82.07", nvml="13.580.82.07", pid_regime="own_with_memory"),
        gpus=(
            gpu(0, CUDA_0, used=21.4, owners=(rank(0, 48230, 19.5), WEBUI, UNEXPLAINED)),
            replace(
                gpu(1, CUDA_1, used=20.4, owners=(rank(1, 48231, 20.4),)),
                utilization=1.0,
                power=312,
                temperature=71,
            ),
        ),
        host=HOST,
        jobs=(RUNNING, FAILED, FINISHED),
        foreign=(),
        findings=(UNEXPLAINED_FINDING, DISK_FINDING),
        ages={"gpu": 0.4, "host": 0.2},
    )


def without_driver(code: DriverErrorCode = "library_missing", detail: str = "") -> Snapshot:
    """A container on a machine without an NVIDIA driver, one training on the CPU."""
    return Snapshot(
        number=1,
        taken_at=NOW,
        driver=Driver(pid_regime="no_gpu", error=DriverError(code, detail)),
        gpus=(),
        host=replace(
            HOST,
            cpu_count=2,
            cpu_used=None,
            memory=HostMemory(limit=None, used=3 * GIB, high=None),
            disks=HOST.disks[:1],
            shm=SharedMemory(total=64 * MIB, free=64 * MIB),
            platform="container",
            gpu_mode="unknown",
            unknown={"cpu_used": "not_yet"},
        ),
        jobs=(replace(LOADING, gpus=(), peak_memory={}),),
        foreign=(),
        findings=(
            Finding("driver_missing", "info"),
            Finding("shm_small", "advice", "/dev/shm", {"total": 64 * MIB}, (Action("check"),)),
        ),
    )


def no_gpu_mode() -> Snapshot:
    """AutoDL's no-GPU mode: half a core, 2 GB."""
    return replace(
        without_driver("no_device"),
        host=replace(
            HOST,
            cpu_count=0.5,
            cpu_used=0.1,
            memory=HostMemory(limit=2 * GIB, used=int(0.7 * GIB), high=None),
            disks=HOST.disks[:2],
            gpu_mode="none",
        ),
        jobs=(),
        findings=(Finding("no_gpu_mode", "info"),),
    )


def stuck() -> Snapshot:
    """A stop that could not end a rank, on a card that does not answer any more."""
    hidden = replace(HOST_PROCESS, memory=int(7.2 * GIB))
    return replace(
        busy(),
        gpus=(
            replace(
                gpu(0, CUDA_0, used=7.2, owners=(hidden,)),
                power=None,
                power_limit=None,
                unknown={"power": "not_supported"},
            ),
            lost_gpu(1, CUDA_1),
        ),
        jobs=(STUCK,),
        foreign=(FOREIGN,),
        findings=(
            Finding("job_stuck", "danger", JOB, {"pids": "48231"}),
            Finding("gpu_lost", "danger", CUDA_1, {"index": 1}),
        ),
    )


EVIL = "\x1b]0;owned\x07\x1b[2J\x1b[31m\u202eevil\u2066\r\n\x00" + "长" * 300 + "\udcff"


def hostile() -> Snapshot:
    """Every text from outside tries to break the terminal or to show a secret."""
    owner = replace(
        rank(0, 48230, 19.5),
        user=EVIL,
        command=("python", "--hf_hub_token", "hf_" + "Ab1" * 12, EVIL, "api_key=sk-" + "a1B2" * 8),
    )
    job = replace(
        FAILED,
        config=EVIL,
        output_dir="https://me:pw@host/" + EVIL,
        failure=Failure("other", None, None, "HF_TOKEN=hf_" + "Ab1" * 12 + EVIL),
    )
    return replace(
        busy(),
        driver=Driver(version=EVIL, nvml=EVIL, pid_regime="own_with_memory"),
        gpus=(replace(gpu(0, CUDA_0, owners=(owner,)), name=EVIL),),
        host=replace(HOST, disks=(replace(HOST.disks[0], path=EVIL),)),
        jobs=(job, replace(STUCK, members=(replace(STUCK.members[0], command=EVIL, wchan=EVIL),))),
        findings=(
            Finding("disk_nearly_full", "warning", EVIL, {"free": 1, "total": 2}),
            Finding("new_code", "info", EVIL),
        ),
    )
