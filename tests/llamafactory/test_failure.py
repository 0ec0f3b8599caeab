import pytest

from tui.facts.training import Stage
from tui.llamafactory.failure import RootCause, Trouble, failure_of, judge, stage_of
from tui.llamafactory.tracebacks import Raised

OOM = Raised(None, "torch.OutOfMemoryError", "CUDA out of memory. Tried to allocate 20.00 MiB.")
LOOP = ("run_sft", "train", "_inner_training_loop")


@pytest.mark.parametrize(
    ("functions", "stage"),
    [
        (("run_sft", "get_dataset", "_load_single_dataset"), "dataset"),
        (("run_sft", "get_dataset", "_get_preprocessed_dataset", "map", "forward"), "tokenize"),
        (("run_sft", "load_model", "from_pretrained", "__init__"), "load"),
        (("run_sft", "load_model", "init_adapter", "forward"), "load"),
        (("run_sft", "__init__", "forward"), "prepare"),
        ((*LOOP, "prepare", "_prepare_deepspeed", "initialize", "__init__"), "prepare"),
        ((*LOOP, "training_step", "compute_loss", "forward", "checkpoint", "forward"), "forward"),
        ((*LOOP, "training_step", "compute_loss", "forward", "ForCausalLMLoss"), "loss"),
        ((*LOOP, "training_step", "backward", "checkpoint", "backward", "forward"), "backward"),
        ((*LOOP, "_run_epoch", "training_step", "backward", "step", "_take_model_step"), "optimizer"),
        ((*LOOP, "_run_epoch", "step", "wrapper", "_init_group"), "optimizer"),
        ((*LOOP, "_maybe_log_save_evaluate", "_evaluate", "prediction_step", "compute_loss"), "eval"),
        ((*LOOP, "_maybe_log_save_evaluate", "_save_checkpoint", "save_model"), "save"),
        (("run_sft", "save_model"), "save"),
        (("run_sft", "evaluate", "evaluation_loop", "compute_loss", "cross_entropy"), "final_eval"),
        (("run_sft", "predict", "forward"), "final_eval"),
        (LOOP, "train"),
        (("main", "launch", "__init__", "forward"), None),
        (("run_sft",), None),
        ((), None),
    ],
)
def test_the_stage_that_functions_prove(functions: tuple[str, ...], stage: Stage | None) -> None:
    assert stage_of(functions) == stage


@pytest.mark.parametrize(
    ("name", "message", "kind"),
    [
        ("torch.cuda.OutOfMemoryError", "x", "cuda_oom"),
        ("RuntimeError", "CUDA out of memory. Tried to allocate 1 GiB (GPU 0; 24 GiB total)", "cuda_oom"),
        ("RuntimeError", "CUDA error: out of memory", "cuda_oom"),
        ("RuntimeError", "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate", "cuda_oom"),
        ("RuntimeError", "NCCL Error 1: unhandled cuda error ... 'out of memory'", "cuda_oom"),
        ("torch.distributed.DistBackendError", "NCCL error in: x.cpp, unhandled system error", "nccl"),
        ("RuntimeError", "[gloo/tcp/pair.cc:553] Connection closed by peer [127.0.0.1]:1", "nccl"),
        ("MemoryError", "", "host_oom"),
        ("RuntimeError", "DefaultCPUAllocator: can't allocate memory", "host_oom"),
        ("RuntimeError", "DataLoader worker (pid 7) is killed by signal: Bus error.", "host_oom"),
        ("RuntimeError", "DataLoader worker (pid 7) is killed by signal: Killed.", "killed"),
        ("RuntimeError", "DataLoader worker (pid(s) 7, 8) exited unexpectedly", "killed"),
        ("RuntimeError", "One of the subprocesses has abruptly died during map operation.", "killed"),
        ("OSError", "[Errno 28] No space left on device: 'a'", "disk"),
        ("RuntimeError", "PytorchStreamWriter failed writing file data/1", "disk"),
        ("OSError", "[Errno 98] Address already in use", "port"),
        ("torch.distributed.DistNetworkError", "EADDRINUSE ... address already in use", "port"),
        ("OSError", "Cannot find empty port in range: 7860-7860.", "port"),
        ("RuntimeError", "something else", "other"),
    ],
)
def test_kinds(name: str, message: str, kind: str) -> None:
    failure = failure_of(Raised(0, name, message, LOOP), "train")
    assert failure.kind == kind
    assert failure.stage == "train"
    assert failure.rank == 0


def test_a_mistake_in_the_configuration_is_one_by_its_place() -> None:
    wrong_key = Raised(None, "ValueError", "Some keys are not used", ("get_train_args",))
    in_training = Raised(None, "ValueError", "x", LOOP)
    assert failure_of(wrong_key, "dataset").kind == "config"
    assert failure_of(Raised(None, "FileNotFoundError", "x.yaml"), "import").kind == "config"
    assert failure_of(in_training, "train").kind == "other"


def test_the_allocation_in_bytes() -> None:
    allocation = failure_of(OOM, "train").allocation
    assert allocation is not None
    assert allocation.bytes == 20 << 20


def troubles(*raised: Raised, stage: Stage = "train") -> list[Trouble]:
    return [Trouble(one, stage) for one in raised]


STOP = Raised(None, "KeyboardInterrupt", "")
PEER_GONE = Raised(0, "RuntimeError", "Connection closed by peer")


def test_what_comes_first_decides_between_stop_and_failure() -> None:
    assert judge(troubles(STOP, PEER_GONE), None, "train") == (None, True)
    failure, interrupted = judge(troubles(OOM, STOP), None, "train")
    assert failure is not None
    assert failure.kind == "cuda_oom"
    assert not interrupted


def test_a_broken_connection_counts_least() -> None:
    out_of_memory = Raised(1, OOM.name, OOM.message, LOOP)
    failure, _ = judge(troubles(PEER_GONE, out_of_memory), None, "train")
    assert failure is not None
    assert (failure.kind, failure.rank) == ("cuda_oom", 1)


def test_the_rank_of_the_root_cause_is_taken() -> None:
    of_rank_0 = Raised(0, "ValueError", "later")
    of_rank_1 = Raised(1, "KeyError", "first")
    failure, _ = judge(troubles(of_rank_0, of_rank_1), RootCause(1, 1), "train")
    assert failure is not None
    assert (failure.rank, failure.message) == (1, "KeyError: first")
    unmarked, _ = judge(troubles(Raised(None, "KeyError", "x")), RootCause(3, 1), "train")
    assert unmarked is not None
    assert unmarked.rank == 3


def test_a_killed_rank_is_not_what_its_peers_saw() -> None:
    failure, _ = judge(troubles(PEER_GONE), RootCause(1, -9), "train")
    assert failure is not None
    assert (failure.kind, failure.rank) == ("killed", 1)


def test_ranks_that_were_asked_to_end_are_no_failure() -> None:
    assert judge([], RootCause(0, -15), "train") == (None, True)


def test_the_watchdog_of_nccl_aborts_its_process() -> None:
    watchdog = Raised(0, "ProcessGroupNCCL", "Watchdog caught collective operation timeout: WorkNCCL(...)")
    failure, _ = judge(troubles(watchdog, stage="tokenize"), RootCause(0, -6), "tokenize")
    assert failure is not None
    assert (failure.kind, failure.stage, failure.rank) == ("nccl", "tokenize", 0)


def test_the_clearer_exception_of_a_chain_is_the_cause() -> None:
    full = Raised(None, "OSError", "[Errno 28] No space left on device")
    failure, _ = judge(troubles(full, Raised(None, "RuntimeError", "Cannot save")), None, "save")
    assert failure is not None
    assert failure.kind == "disk"
