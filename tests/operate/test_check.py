"""The preflight on real files."""

import json
import socket
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.fake_prefix import add_distribution, make_prefix, site_of
from support.samples import RUNNING, busy

from tui.facts.snapshot import Snapshot
from tui.operate.check import Check, check
from tui.operate.launch import StartRequest
from tui.operate.settings import Settings

ENVIRON = {"PATH": "/usr/bin:/bin", "HOME": "/nowhere", "CUDA_VISIBLE_DEVICES": ""}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A sound training, as far as it is looked at: environment, model, data, config."""
    make_prefix(tmp_path / ".venv", torch="2.6.0", transformers="4.57.1")
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text(json.dumps({"model_type": "llama"}))
    (model / "tokenizer.json").write_text("{}")
    (model / "model.safetensors").write_bytes((2).to_bytes(8, "little") + b"{}")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "rows.json").write_text("[1]")
    (tmp_path / "data" / "dataset_info.json").write_text(json.dumps({"rows": {"file_name": "rows.json"}}))
    write(tmp_path)
    return tmp_path


def write(folder: Path, **values: Any) -> Path:
    settings = {
        "model_name_or_path": "model",
        "do_train": True,
        "dataset": "rows",
        "template": "default",
        "use_cpu": True,
        "output_dir": "out",
        **values,
    }
    path = folder / "train.yaml"
    path.write_text(yaml.safe_dump({key: value for key, value in settings.items() if value is not None}))
    return path


def checked(
    project: Path, environ: Mapping[str, str] | None = None, snapshot: Snapshot | None = None, **changes: Any
) -> Check:
    request = replace(StartRequest(project, project / "train.yaml"), **changes)
    look = None if snapshot is None else lambda: snapshot
    return check(request, Settings(), {**ENVIRON, **(environ or {})}, look, project / "state")


def codes(result: Check) -> set[str]:
    return {finding.code for finding in result.findings}


def blocking(result: Check) -> set[str]:
    return {finding.code for finding in result.blockers}


def test_a_sound_training_passes(project: Path) -> None:
    assert codes(checked(project)) == set()


def test_relative_paths_mean_the_folder_of_the_run(
    project: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    found = checked(project, cwd=elsewhere, environment=project / ".venv")
    assert blocking(found) == {"dataset_info_missing"}
    assert "model_not_cached" in codes(found)


@pytest.mark.parametrize(
    ("values", "code"),
    [
        ({"model_name_or_path": "./gone"}, "model_missing"),
        ({"dataset": "rowz"}, "dataset_misspelt"),
        ({"adapter_name_or_path": "./gone"}, "adapter_missing"),
        ({"deepspeed": "gone.json"}, "deepspeed_missing"),
        ({"resume_from_checkpoint": "gone"}, "resume_missing"),
        ({"enable_liger_kernel": True}, "package_missing"),
        ({"template": None}, "template_unset"),
        ({"model_name_or_path": "org/model-7B"}, "model_not_cached"),
    ],
)
def test_what_is_named_and_not_there(project: Path, values: dict[str, Any], code: str) -> None:
    write(project, **values)
    assert code in codes(checked(project))


def test_without_an_environment_the_files_are_judged_all_the_same(project: Path) -> None:
    (project / ".venv").rename(project / "renamed")
    write(project, dataset="rowz", lora_rnak=8)
    found = checked(project)
    assert blocking(found) == {"environment_missing", "dataset_misspelt"}
    assert "key_misspelt" in codes(found)


def test_the_cache_that_the_run_would_use(project: Path) -> None:
    write(project, model_name_or_path="org/model-7B", cache_dir="cache")
    finding = next(f for f in checked(project).findings if f.code == "model_not_cached")
    assert finding.evidence["cache"] == str(project / "cache")
    assert isinstance(finding.evidence["free"], int)
    offline = checked(project, {"HF_HUB_OFFLINE": "1"})
    assert "model_not_cached_offline" in blocking(offline)


def test_a_relative_model_path_is_no_hub_name(project: Path) -> None:
    (project / "saves").mkdir()
    write(project, model_name_or_path="saves/model")
    assert "model_missing" in blocking(checked(project))


def test_deepspeed_written_out_in_the_config(project: Path) -> None:
    write(project, deepspeed={"zero_optimization": {"stage": 3}}, finetuning_type="full")
    add_distribution(site_of(project / ".venv"), "deepspeed", "0.16.9")
    found = checked(project, {"FORCE_TORCHRUN": "1", "NPROC_PER_NODE": "1"})
    assert "zero3_no_gather" in codes(found)
    assert blocking(found) == set()


def test_torchrun_without_a_card(project: Path) -> None:
    assert blocking(checked(project, {"FORCE_TORCHRUN": "1"})) == {"torchrun_without_card"}


def test_a_space_where_torchrun_would_be_torn_apart(project: Path) -> None:
    spaced = project / "a folder"
    spaced.mkdir()
    for name in (".venv", "model", "data", "train.yaml"):
        (project / name).rename(spaced / name)
    torchrun = {"FORCE_TORCHRUN": "1", "NPROC_PER_NODE": "1"}
    request = StartRequest(spaced, spaced / "train.yaml", environment=spaced / ".venv")
    assert blocking(check(request, Settings(), {**ENVIRON, **torchrun}, None)) == {"space_in_path"}
    assert codes(check(request, Settings(), ENVIRON, None)) == set()


def test_a_state_folder_with_a_space(project: Path) -> None:
    request = StartRequest(project, project / "train.yaml")
    torchrun = {"FORCE_TORCHRUN": "1", "NPROC_PER_NODE": "1"}
    found = check(request, Settings(), {**ENVIRON, **torchrun}, None, project / "my state")
    assert blocking(found) == {"space_in_path"}


def test_a_live_run_in_the_same_folder(project: Path) -> None:
    snapshot = replace(busy(), jobs=(replace(RUNNING, output_dir=str(project / "out")),), foreign=())
    assert "output_in_use" in blocking(checked(project, snapshot=snapshot))
    foreign = replace(snapshot, jobs=(), foreign=snapshot.jobs)
    assert "output_in_use" in blocking(checked(project, snapshot=foreign))


def test_cards_that_the_run_would_use(project: Path) -> None:
    write(project, use_cpu=None)
    snapshot = replace(busy(), foreign=())
    found = checked(project, {"CUDA_VISIBLE_DEVICES": "0"}, snapshot)
    assert "card_in_use" in codes(found)
    assert "card_in_use" not in codes(checked(project, {"CUDA_VISIBLE_DEVICES": "-1"}, snapshot))


def test_variables_that_steer_llamafactory_are_shown(project: Path) -> None:
    found = checked(project, {"NPROC_PER_NODE": "2", "FORCE_TORCHRUN": "1", "SECRET_TOKEN": "x"})
    assert found.variables == {"NPROC_PER_NODE": "2", "FORCE_TORCHRUN": "1", "CUDA_VISIBLE_DEVICES": ""}


def test_nothing_is_left_behind(project: Path) -> None:
    before = sorted(project.iterdir())
    checked(project)
    assert sorted(project.iterdir()) == before


def test_a_pasted_json_config_is_refused(project: Path) -> None:
    values = yaml.safe_load((project / "train.yaml").read_text())
    (project / "train.json").write_text(json.dumps(values))
    copied = checked(project, config=project / "train.json")
    assert codes(copied) == {"json_config"}
    pasted = checked(project, config=None, pasted=("llamafactory-cli", "train", "train.json"))
    assert blocking(pasted) == {"json_refused"}


def test_of_a_service_the_port_is_judged(project: Path) -> None:
    pasted = ("llamafactory-cli", "api", "infer.yaml")
    with socket.create_server(("127.0.0.1", 0)) as server:
        variables = {"API_PORT": str(server.getsockname()[1])}
        assert blocking(checked(project, variables, config=None, pasted=pasted)) == {"service_port_taken"}
    assert checked(project, variables, config=None, pasted=pasted).findings == ()
    assert checked(project, config=None, pasted=("llamafactory-cli", "webui")).findings == ()


def test_a_pasted_command_without_a_file_is_judged_too(project: Path) -> None:
    line = (
        "llamafactory-cli train --stage sft --do_train True --model_name_or_path model --dataset rowz"
        " --template default --use_cpu True --eval_strategy no --learning_rate 5e-5 --hf_hub_token s3cret"
    )
    found = checked(project, config=None, pasted=(line,))
    assert blocking(found) == {"dataset_misspelt"}
    stored = found.launch.spec.config_text or ""
    assert "rowz" in stored
    assert "s3cret" not in stored
