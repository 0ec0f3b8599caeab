"""DeepSpeed files."""

import json
from pathlib import Path

from tui.llamafactory.deepspeed import Deepspeed, deepspeed_of, read_deepspeed


def test_what_decides(tmp_path: Path) -> None:
    path = tmp_path / "ds.json"
    document = {
        "train_micro_batch_size_per_gpu": "auto",
        "gradient_accumulation_steps": 4,
        "zero_optimization": {
            "stage": 3,
            "offload_optimizer": {"device": "cpu"},
            "offload_param": {"device": "none"},
            "stage3_gather_16bit_weights_on_model_save": True,
        },
    }
    path.write_text(json.dumps(document))
    assert read_deepspeed(path) == Deepspeed(
        str(path),
        stage=3,
        offload_optimizer=True,
        gathers=True,
        fixed={"gradient_accumulation_steps": 4},
    )


def test_odd_documents_say_nothing() -> None:
    assert deepspeed_of({}) == Deepspeed(None)
    odd = {"zero_optimization": {"stage": "3", "offload_param": True}, "train_batch_size": True}
    assert deepspeed_of(odd) == Deepspeed(None)
    assert deepspeed_of({"zero_optimization": []}) == Deepspeed(None)


def test_files_that_are_none(tmp_path: Path) -> None:
    path = tmp_path / "ds.json"
    assert read_deepspeed(path).problem == "missing"
    path.write_text('{\n "a": 1,\n b}')
    assert (read_deepspeed(path).problem, read_deepspeed(path).line) == ("not_json", 3)
    path.write_bytes(b"\0" * (2 << 20))
    assert read_deepspeed(path).problem == "too_large"
