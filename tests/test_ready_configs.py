"""The configs that come along: known settings only, explained, and nothing that stands in their way."""

import json
from pathlib import Path

import pytest
from support.fake_prefix import add_distribution, make_prefix, site_of

from tui.llamafactory.config import load_config
from tui.llamafactory.deepspeed import deepspeed_of
from tui.llamafactory.known_settings import newest_settings
from tui.operate.check import check
from tui.operate.launch import StartRequest, find_configs, shipped_configs
from tui.operate.settings import Settings

READY = sorted(path for path in shipped_configs().glob("*.yaml") if not path.name.startswith("settings."))
PACKAGES = {"bitsandbytes": "0.48.1", "deepspeed": "0.16.9", "liger_kernel": "0.6", "matplotlib": "3.9"}


def test_there_is_one_for_each_of_the_usual_wishes() -> None:
    assert [path.stem for path in READY] == [
        "long_context",
        "lora_sft_baseline",
        "lora_small_memory",
        "qlora",
        "resume",
        "short_trial",
        "zero2",
        "zero2_offload",
        "zero3",
    ]
    assert set(READY) <= set(find_configs(Path("/nowhere")))


@pytest.mark.parametrize("path", READY, ids=lambda path: path.stem)
def test_it_has_known_settings_only_and_says_what_it_is(path: Path) -> None:
    assert set(load_config(path).values) <= set(newest_settings())
    english, chinese, *_rest = path.read_text("utf-8").splitlines()
    assert english.startswith("# ")
    assert english.isascii()
    assert chinese.startswith("# ")
    assert not chinese.isascii()


@pytest.mark.parametrize("path", READY, ids=lambda path: path.stem)
def test_nothing_stands_in_its_way(path: Path, tmp_path: Path) -> None:
    site = site_of(make_prefix(tmp_path / ".venv"))
    for name, version in PACKAGES.items():
        add_distribution(site, name, version)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "rows.json").write_text("[1]")
    names = ("keywords_train", "keywords_validation")
    info = {name: {"file_name": "rows.json"} for name in names}
    (tmp_path / "data" / "dataset_info.json").write_text(json.dumps(info))
    environ = {"PATH": "/usr/bin", "HOME": str(tmp_path), "CUDA_VISIBLE_DEVICES": "0"}
    if path.stem.startswith("zero"):
        environ["FORCE_TORCHRUN"] = "1"
    found = check(StartRequest(tmp_path, path), Settings(), environ, None)
    expected = {"resume_missing"} if path.stem == "resume" else set()
    assert {finding.code for finding in found.blockers} == expected
    assert not {finding.code for finding in found.findings} & {
        "eval_batch_default",
        "eval_never",
        "save_never",
    }


@pytest.mark.parametrize(
    ("name", "stage", "offload"), [("zero2", 2, False), ("zero2_offload", 2, True), ("zero3", 3, False)]
)
def test_the_deepspeed_settings_need_no_second_file(name: str, stage: int, offload: bool) -> None:
    written = load_config(shipped_configs() / f"{name}.yaml").values["deepspeed"]
    assert isinstance(written, dict)
    deepspeed = deepspeed_of({str(key): value for key, value in written.items()})
    assert (deepspeed.stage, deepspeed.offload_optimizer) == (stage, offload)
    assert deepspeed.gathers is (stage == 3)
    assert deepspeed.fixed == {}


def test_the_small_memory_variant_takes_as_many_samples_a_step() -> None:
    def effective(name: str) -> int:
        config = load_config(shipped_configs() / f"{name}.yaml")
        batch, times = (
            config.whole("per_device_train_batch_size"),
            config.whole("gradient_accumulation_steps"),
        )
        return (batch or 0) * (times or 0)

    assert effective("lora_small_memory") == effective("lora_sft_baseline") == 32
