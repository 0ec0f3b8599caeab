import pytest
from support.training_logs import facts_of, log_bytes

from tui.facts.training import Told

HEAD = b"[INFO|2026-11-29 14:44:00] llamafactory.x:144 >> "


def told(*messages: str) -> Told:
    return facts_of(b"".join(HEAD + message.encode() + b"\n" for message in messages)).told


def test_a_recorded_run() -> None:
    found = facts_of(log_bytes("v4-torchrun-2rank")).told
    assert (found.world_size, found.compute_dtype, found.finetuning) == (2, "float32", "lora")
    assert (found.gradient_checkpointing, found.attention, found.liger) == (True, "sdpa", False)
    assert (found.quantization, found.output_dir) == (0, "saves/ddp")


@pytest.mark.parametrize(
    ("message", "field", "value"),
    [
        ("Quantizing model to 4 bit with bitsandbytes.", "quantization", 4),
        ("Loading 8-bit GPTQ-quantized model.", "quantization", 8),
        ("Using FlashAttention-2 for faster training and inference.", "attention", "fa2"),
        ("FlashAttention-2 is not installed, use eager attention.", "attention", "eager"),
        ("Liger kernel has been applied to the model.", "liger", True),
        ("Fine-tuning method: DoRA", "finetuning", "dora"),
        ("DeepSpeed ZeRO3 detected, remaining trainable params in float32.", "zero_stage", 3),
        (
            (
                "Process rank: 0, world size: 4, device: cuda:0, distributed training: True, "
                "compute dtype: torch.bfloat16"
            ),
            "compute_dtype",
            "bfloat16",
        ),
    ],
)
def test_settings(message: str, field: str, value: object) -> None:
    assert getattr(told(message), field) == value


@pytest.mark.parametrize(
    ("line", "tracker"),
    [
        (
            b"swanlab: \xf0\x9f\x9a\x80 View run at https://swanlab.cn/@me/p/runs/abc",
            "https://swanlab.cn/@me/p/runs/abc",
        ),
        (b"wandb: View run sft-7b at: https://wandb.ai/me/p/runs/1", "https://wandb.ai/me/p/runs/1"),
        (b"wandb: Run data is saved locally in /root/wandb/run-1", "/root/wandb/run-1"),
        (b"wandb: \x1b[33mWARNING\x1b[0m nothing", None),
    ],
)
def test_where_the_tracker_is(line: bytes, tracker: str | None) -> None:
    assert facts_of(line + b"\n").told.tracker == tracker


def test_events_are_counted() -> None:
    log = (
        b"[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536\n" * 3
        + b"[WARNING|2026-11-29 14:44:00] llamafactory.d:1 >> Dropped lengthy example with length 9 > 8.\n"
        + b"[W CUDACachingAllocator.cpp:1] Warning: memory allocation of 2 GiB failed, retrying\n"
        + b"an alloc that is nothing\n"
    )
    assert facts_of(log).told.events == {"fp16_overflow": 3, "dropped_sample": 1, "allocation_retry": 1}


def test_a_new_run_in_the_same_log_starts_anew() -> None:
    rank = "Process rank: 0, world size: 1, device: cpu, distributed training: False, compute dtype: None"
    found = told(rank, "Liger kernel has been applied to the model.", rank)
    assert found.liger is None
