from dataclasses import replace

import pytest
from support.training_logs import facts_of, log_bytes

from tui.facts.job import ExitStatus, JobRecord, LadderStep, StopReport
from tui.facts.training import Failure, FailureKind, OutputFacts, Plan, RunLog
from tui.insight.ending import ending

START, END = 1000.0, 2000.0
OK, ERROR = ExitStatus(code=0), ExitStatus(code=1)

RECORD = JobRecord(
    id="j",
    nonce="n",
    kind="training",
    command=("llamafactory-cli", "train", "x.yaml"),
    cwd="/",
    environment={},
    config=None,
    config_hash=None,
    output_dir="out",
    gpus=(),
    created_at=START,
    state="ended",
    started_at=START,
    ended_at=END,
    exit=OK,
)
TRAINED = RunLog(stage="final_eval", seen=("start", "train"), plan=Plan(total_steps=90), step=90)
HALF = replace(TRAINED, stage="train", step=40)
DONE = OutputFacts(
    "out",
    True,
    global_step=90,
    max_steps=90,
    all_results_at=1900.0,
    eval_results_at=1950.0,
    trainer_state_at=1900.0,
    weights_at=1900.0,
)
ABORTED = replace(DONE, global_step=40)
OLD = OutputFacts(
    "out",
    True,
    global_step=90,
    max_steps=90,
    all_results_at=500.0,
    eval_results_at=500.0,
    trainer_state_at=500.0,
    weights_at=500.0,
)
EMPTY = OutputFacts("out", True)


def stopped(kind: str = "stop", at: float = 1990.0, *, acted: bool = True) -> StopReport:
    steps = (LadderStep("interrupt", 0.0, 1.0, (7,)),) if acted else ()
    return StopReport(requested_at=at, kind=kind, steps=steps)  # type: ignore[arg-type]  # a literal


def test_files_prove_that_a_run_finished() -> None:
    assert ending(RECORD, TRAINED, DONE) == ("finished", None)
    assert ending(RECORD, RunLog(), DONE) == ("finished", None), "without a readable log"
    assert ending(replace(RECORD, exit=None), TRAINED, DONE) == ("finished", None)
    assert ending(replace(RECORD, state="lost", exit=None), TRAINED, DONE) == ("finished", None)


def test_a_crash_while_leaving_does_not_unmake_a_finished_run() -> None:
    crashed = replace(RECORD, exit=ExitStatus(signal=11))
    assert ending(crashed, TRAINED, DONE) == ("finished", None)
    before_evaluation = replace(DONE, eval_results_at=500.0)
    log = replace(TRAINED, began_at=START)
    result, failure = ending(crashed, log, before_evaluation)
    assert (result, failure and failure.message) == ("failed", "SIGSEGV")


def test_a_failure_in_the_final_evaluation_is_one() -> None:
    log = facts_of(log_bytes("v4-oom-final-eval"))
    output = replace(DONE, global_step=6, max_steps=6, eval_results_at=None)
    result, failure = ending(replace(RECORD, exit=ERROR), log, output)
    assert result == "failed"
    assert failure is not None
    assert (failure.kind, failure.stage) == ("cuda_oom", "final_eval")


@pytest.mark.parametrize(
    ("name", "kind", "stage"),
    [
        ("v4-oom-load", "cuda_oom", "load"),
        ("v4-oom-optimizer", "cuda_oom", "optimizer"),
        ("v4-2rank-oom", "cuda_oom", "forward"),
        ("v4-disk-full", "disk", "forward"),
        ("v4-config-unknown-key", "config", "import"),
    ],
)
def test_a_recorded_failure(name: str, kind: FailureKind, stage: str) -> None:
    result, failure = ending(replace(RECORD, exit=ERROR), facts_of(log_bytes(name)), EMPTY)
    assert result == "failed"
    assert failure is not None
    assert (failure.kind, failure.stage) == (kind, stage)


@pytest.mark.parametrize("status", [ExitStatus(signal=9), ExitStatus(code=-9), ExitStatus(code=137)])
def test_who_sent_sigkill_is_told_by_the_kernel_alone(status: ExitStatus) -> None:
    killed = replace(RECORD, exit=status, oom_kills_start=2, oom_kills_end=2)
    assert ending(killed, HALF, EMPTY) == ("failed", Failure("killed", "train", None, "SIGKILL"))
    out_of_memory = replace(killed, oom_kills_end=3)
    assert ending(out_of_memory, HALF, EMPTY) == ("failed", Failure("host_oom", "train", None, "SIGKILL"))
    unknown = replace(killed, oom_kills_start=None)
    assert ending(unknown, HALF, EMPTY) == ("failed", Failure("killed", "train", None, "SIGKILL"))


def test_a_rank_that_the_kernel_killed_for_memory() -> None:
    log = facts_of(log_bytes("v4-2rank-killed"))
    record = replace(RECORD, exit=ERROR, oom_kills_start=0, oom_kills_end=1)
    _, failure = ending(record, log, EMPTY)
    assert failure is not None
    assert (failure.kind, failure.rank) == ("host_oom", 1)


@pytest.mark.parametrize(
    ("name", "kind", "rank"),
    [
        ("v4-2rank-oom", "cuda_oom", 1),
        ("v4-2rank-both-oom", "cuda_oom", 0),
        ("v4-2rank-killed", "killed", 1),
        ("v4-config-no-dataset", "config", None),
    ],
)
def test_the_root_cause_under_torchrun_is_the_rank_that_failed_first(
    name: str, kind: FailureKind, rank: int | None
) -> None:
    result, failure = ending(replace(RECORD, exit=ERROR), facts_of(log_bytes(name)), EMPTY)
    assert result == "failed"
    assert failure is not None
    assert (failure.kind, failure.rank) == (kind, rank)


@pytest.mark.parametrize("name", ["v4-torchrun-sigterm-agent", "v4-single-interrupted", "v5-sigint"])
def test_a_signal_that_somebody_else_sent_is_told_though_the_launcher_exits_with_a_code(name: str) -> None:
    result, failure = ending(replace(RECORD, exit=ERROR), facts_of(log_bytes(name)), EMPTY)
    assert result == "failed"
    assert failure is not None
    assert failure.kind == "killed"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (
            (
                "[rank0]:[E1129 14:42:17.823 ProcessGroupNCCL.cpp:629] [Rank 0] Watchdog caught collective"
                " operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE, Timeout(ms)=1800000) ran for"
                " 1800011 milliseconds before timing out.\n"
                "terminate called after throwing an instance of 'c10::DistBackendError'\n"
            ),
            "nccl",
        ),
        (
            (
                "Traceback (most recent call last):\n"
                '  File "/x/torch/distributed/elastic/agent/server/api.py", line 711, in run\n'
                "    result = self._invoke_run(role)\n"
                "torch.distributed.DistNetworkError: The server socket has failed to listen on any local"
                " network address. port: 29500, useIpv6: false, code: -98, name: EADDRINUSE, message: address"
                " already in use\n"
            ),
            "port",
        ),
    ],
)
def test_a_failure_between_the_ranks(text: str, kind: FailureKind) -> None:
    result, failure = ending(replace(RECORD, exit=ERROR), facts_of(text.encode()), EMPTY)
    assert result == "failed"
    assert failure is not None
    assert failure.kind == kind


def test_a_failure_of_another_kind_is_not_blamed_on_a_neighbours_memory() -> None:
    record = replace(RECORD, exit=ERROR, oom_kills_start=0, oom_kills_end=5)
    _, failure = ending(record, facts_of(log_bytes("v4-oom-forward")), EMPTY)
    assert failure is not None
    assert failure.kind == "cuda_oom"


def test_a_signal_without_words() -> None:
    assert ending(replace(RECORD, exit=ExitStatus(signal=15)), HALF, EMPTY) == (
        "failed",
        Failure("killed", "train", None, "SIGTERM"),
    )
    never_ran = replace(RECORD, exit=ExitStatus(code=127), error="exec: ENOENT: llamafactory-cli")
    assert ending(never_ran, RunLog(), None) == (
        "failed",
        Failure("other", "start", None, "exec: ENOENT: llamafactory-cli"),
    )


@pytest.mark.parametrize("name", ["v4-single-interrupted", "v4-torchrun-sigterm-agent", "v5-sigint"])
def test_a_stop_is_no_failure(name: str) -> None:
    record = replace(RECORD, exit=ERROR, stop=stopped())
    assert ending(record, facts_of(log_bytes(name)), EMPTY) == ("stopped", None)


def test_a_stop_that_came_after_the_end_is_none() -> None:
    late = replace(RECORD, exit=ERROR, stop=stopped(at=END + 0.5))
    assert ending(late, HALF, EMPTY)[0] == "failed"
    in_time = replace(RECORD, exit=ERROR, stop=stopped(at=END - 0.001))
    assert ending(in_time, HALF, EMPTY)[0] == "stopped"
    without_effect = replace(RECORD, exit=ERROR, stop=stopped(acted=False))
    assert ending(without_effect, HALF, EMPTY)[0] == "failed"
    taken_back = replace(RECORD, stop=stopped("cancel"))
    assert ending(taken_back, TRAINED, DONE)[0] == "finished"


def test_a_run_that_finished_before_the_stop_reached_it_finished() -> None:
    assert ending(replace(RECORD, stop=stopped()), TRAINED, DONE) == ("finished", None)
    assert ending(replace(RECORD, stop=stopped(), exit=ERROR), TRAINED, DONE) == ("stopped", None)


def test_a_stop_that_kept_the_weights() -> None:
    keeping = replace(RECORD, stop=stopped("keep_weights"))
    assert ending(keeping, HALF, ABORTED) == ("stopped_saved", None)
    assert ending(keeping, HALF, replace(ABORTED, weights_at=500.0)) == ("stopped", None)
    assert ending(keeping, HALF, None) == ("stopped", None)
    plain = replace(RECORD, stop=stopped())
    assert ending(plain, HALF, ABORTED) == ("stopped", None)


def test_weights_that_were_not_trained_are_not_kept_ones() -> None:
    keeping = replace(RECORD, stop=stopped("keep_weights"))
    at_step_0 = replace(HALF, step=0)
    assert ending(keeping, at_step_0, replace(ABORTED, global_step=0)) == ("stopped", None)


def test_exit_code_0_that_trained_nothing() -> None:
    assert ending(RECORD, RunLog(), EMPTY) == ("untrained", None)
    assert ending(RECORD, RunLog(), OLD) == ("untrained", None), "usage was printed"
    again = facts_of(log_bytes("v4-finished-again"))
    rewritten = replace(DONE, global_step=136, max_steps=136)
    assert ending(RECORD, again, rewritten) == ("untrained", None)


def test_exit_code_0_before_the_last_step() -> None:
    assert ending(RECORD, HALF, ABORTED) == ("partial", None)
    assert ending(RECORD, RunLog(), ABORTED) == ("partial", None), "the final state alone tells it"


def test_an_output_folder_that_went_away_does_not_unmake_the_training() -> None:
    gone = OutputFacts("out", exists=False, unknown={"checkpoints": "missing_file"})
    complete = replace(TRAINED, training_completed=True)
    assert ending(RECORD, complete, gone) == ("finished", None)
    assert ending(RECORD, complete, None) == ("finished", None)
    assert ending(RECORD, HALF, gone) == ("partial", None)
    locked = OutputFacts("out", exists=False, unknown={"checkpoints": "no_permission"})
    assert ending(RECORD, RunLog(), locked) == ("unknown", None)


def test_an_evaluation_alone_finishes_without_steps() -> None:
    log = RunLog(stage="final_eval", seen=("start", "load", "final_eval"))
    assert ending(RECORD, log, OutputFacts("o", True, all_results_at=1900.0)) == ("finished", None)


def test_what_nothing_proves_is_unknown() -> None:
    lost = replace(RECORD, state="lost", exit=None)
    assert ending(lost, HALF, EMPTY) == ("unknown", None)
    assert ending(replace(RECORD, exit=None), HALF, OLD) == ("unknown", None)
    assert ending(replace(RECORD, exit=None, stop=stopped()), HALF, OLD) == ("stopped", None)
    assert ending(replace(RECORD, state="running", exit=None), TRAINED, DONE) == ("unknown", None)
    assert ending(RECORD, RunLog(), None) == ("unknown", None), "no output folder is known"


def test_services() -> None:
    service = replace(RECORD, kind="service", output_dir=None)
    assert ending(service, RunLog(), None) == ("finished", None)
    assert ending(replace(service, stop=stopped(), exit=ExitStatus(signal=2)), RunLog(), None) == (
        "stopped",
        None,
    )
    port_taken = b"ERROR:    [Errno 98] error while attempting to bind on address ('0.0.0.0', 8000): in use\n"
    result, failure = ending(replace(service, exit=ERROR), facts_of(port_taken), None)
    assert result == "failed"
    assert failure is not None
    assert failure.kind == "port"
