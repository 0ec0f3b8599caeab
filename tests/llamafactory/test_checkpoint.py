import json
from pathlib import Path

from tui.llamafactory.output import read_output


def state(folder: Path, *names: str, empty: str | None = None) -> bool:
    """Whether a checkpoint that holds these files counts as complete."""
    checkpoint = folder / "checkpoint-10"
    for name in names:
        path = checkpoint / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"" if name == empty else b"x")
    (checkpoint / "trainer_state.json").write_text(json.dumps({"global_step": 10, "max_steps": 20}))
    return read_output(folder).checkpoints[0].complete


def test_a_plain_checkpoint(tmp_path: Path) -> None:
    assert state(tmp_path, "adapter_model.safetensors", "optimizer.pt")


def test_weights_that_a_full_disk_left_empty(tmp_path: Path) -> None:
    assert not state(tmp_path, "adapter_model.safetensors", empty="adapter_model.safetensors")


def test_deepspeed_names_its_shards_last(tmp_path: Path) -> None:
    shard = "global_step10/bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt"
    assert not state(tmp_path, shard, "adapter_model.safetensors")
    (tmp_path / "checkpoint-10" / "latest").write_text("global_step9")
    assert not state(tmp_path, shard), "the name of another step"
    (tmp_path / "checkpoint-10" / "latest").write_text("global_step10")
    assert state(tmp_path, shard)


def test_fsdp_writes_its_metadata_last(tmp_path: Path) -> None:
    shards = ("pytorch_model_fsdp_0/__0_0.distcp", "optimizer_0/__0_0.distcp", "optimizer_0/.metadata")
    assert not state(tmp_path, *shards)
    assert state(tmp_path, *shards, "pytorch_model_fsdp_0/.metadata")


def test_a_just_in_time_checkpoint_carries_its_mark(tmp_path: Path) -> None:
    assert not state(tmp_path, "adapter_model.safetensors", "checkpoint-is-incomplete.txt")
    (tmp_path / "checkpoint-10" / "checkpoint-is-incomplete.txt").unlink()
    assert state(tmp_path, "adapter_model.safetensors")


def test_sizes_count_everything_below_and_follow_no_link(tmp_path: Path) -> None:
    outside = tmp_path / "big"
    outside.write_bytes(b"x" * 5000)
    state(tmp_path, "a.safetensors", "global_step10/b.pt")
    (tmp_path / "checkpoint-10" / "link.bin").symlink_to(outside)
    assert (read_output(tmp_path).checkpoints[0].size or 0) < 100
