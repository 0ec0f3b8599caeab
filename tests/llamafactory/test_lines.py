import pytest
from support.training_logs import PLAN_BLOCK, bar, facts_of


def test_the_watchdog_of_nccl_without_a_traceback() -> None:
    line = (
        b"\n[rank1]:[E1129 14:44:06.123456789 ProcessGroupNCCL.cpp:616] [Rank 1] Watchdog caught collective "
        b"operation timeout: WorkNCCL(SeqNum=1, OpType=ALLREDUCE, NumelIn=1, Timeout(ms)=1800000) "
        b"ran for 1800328 milliseconds before timing out.\n"
    )
    failure = facts_of(PLAN_BLOCK + bar(0, 0) + line).failure
    assert failure is not None
    assert (failure.kind, failure.rank, failure.stage) == ("nccl", 1, "train")
    heartbeat = (
        b"[rank0]:[F1129 ProcessGroupNCCL.cpp:1557] [PG ID 0 PG GUID 0(default_pg) Rank 0] "
        b"Heartbeat monitor timed out! Process will be terminated after dumping debug info.\n"
    )
    later = facts_of(heartbeat).failure
    assert later is not None
    assert (later.kind, later.rank) == ("nccl", 0)


def test_a_service_whose_port_is_taken() -> None:
    line = (
        b"ERROR:    [Errno 98] error while attempting to bind on address ('0.0.0.0', 8000): address in use\n"
    )
    failure = facts_of(line).failure
    assert failure is not None
    assert failure.kind == "port"


def test_the_early_word_of_torchrun_names_the_killed_rank() -> None:
    """The summary may never come: the agent can be gone before it is written."""
    line = (
        b"\nE1129 17:20:08.990000 13693 torch/distributed/elastic/multiprocessing/api.py:1002] "
        b"failed (exitcode: -9) local_rank: 1 (pid: 13696) of binary: /a/python\n"
    )
    failure = facts_of(PLAN_BLOCK + bar(4, 8) + line).failure
    assert failure is not None
    assert (failure.kind, failure.rank) == ("killed", 1)


def test_a_death_signal_to_the_agent_is_a_stop() -> None:
    line = (
        b"\nW1129 14:58:47.335000 27978 torch/distributed/elastic/agent/server/api.py:753] "
        b"Received 15 death signal, shutting down workers\n"
    )
    facts = facts_of(PLAN_BLOCK + bar(4, 8) + line)
    assert facts.interrupted
    assert facts.failure is None


@pytest.mark.parametrize(
    ("line", "step"),
    [
        ("Continuing training from global step 40", 40),
        ("Continuing training from global step 1,040", 1040),
        ("Resuming training from checkpoint with epoch 3 and global step 240", 240),
        ("Continuing training from epoch 0", 0),
    ],
)
def test_where_a_run_resumes(line: str, step: int) -> None:
    record = f"[INFO|trainer.py:2551] 2026-11-29 14:44:06,472 >>   {line}\n".encode()
    assert facts_of(PLAN_BLOCK + record).resume_step == step


def test_the_plan_ends_with_its_block() -> None:
    evaluation = (
        b"[INFO|trainer.py:4643] 2026-11-29 14:45:13,908 >> \n***** Running Evaluation *****\n"
        b"[INFO|trainer.py:4645] 2026-11-29 14:45:13,908 >>   Num examples = 20\n"
    )
    assert facts_of(PLAN_BLOCK + bar(0, 0) + evaluation).plan.examples == 4000


def test_an_evaluation_alone_is_a_final_one() -> None:
    evaluation = b"[INFO|trainer.py:4643] 2026-11-29 14:45:13,908 >> \n***** Running Prediction *****\n"
    facts = facts_of(evaluation + bar(3, 1, total=20))
    assert facts.stage == "final_eval"
    assert facts.step is None
    assert facts.bar is not None
    assert (facts.bar.kind, facts.bar.done, facts.bar.total) == ("eval", 3, 20)


def test_a_save_names_a_step_that_the_bar_has_not_shown() -> None:
    saving = (
        b"[INFO|trainer.py:4309] 2026-11-29 14:45:18,775 >> Saving model checkpoint to out/checkpoint-20\n"
    )
    facts = facts_of(PLAN_BLOCK + bar(0, 0) + bar(17, 34) + saving)
    assert (facts.stage, facts.step) == ("save", 20)
    assert facts.saves[0].step == 20
    assert facts.saves[0].began is not None
    assert facts_of(PLAN_BLOCK + bar(0, 0) + bar(17, 34) + saving + bar(21, 48)).stage == "train"


def test_warnings_are_kept_once() -> None:
    line = b"[WARNING|a.py:1] 2026-11-29 14:45:18,775 >> careful\n"
    assert facts_of(line * 3).warnings == ("careful",)


def test_the_first_clock_text_is_when_the_run_began() -> None:
    began = facts_of(PLAN_BLOCK).began_at
    assert began is not None
    later = facts_of(PLAN_BLOCK + PLAN_BLOCK.replace(b"14:44", b"14:45")).began_at
    assert later == began
