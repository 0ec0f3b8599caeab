"""``check``, and what ``start`` does with it."""

import json
import time
from pathlib import Path

import pytest
from support.command_line import Herd
from support.stand_in_trainer import write_config

SECRET = "hf_" + "Ab1" * 12


def test_a_sound_config_can_start(herd: Herd, project: Path) -> None:
    config = write_config(project, template="default")
    said = herd.run("check", "train.yaml", cwd=project)
    assert said.returncode == 0, said.stderr
    assert said.stdout.startswith("It can start")
    assert str(config) in said.stdout
    assert "llamafactory-cli train" in said.stdout


def test_its_document(herd: Herd, project: Path) -> None:
    write_config(project)
    document = herd.document(
        "check", "train.yaml", cwd=project, variables={"FORCE_TORCHRUN": "1", "NPROC_PER_NODE": "2"}
    )
    assert {"schema", "findings", "steps", "memory", "command"} <= document.keys()
    assert (document["torchrun"], document["processes"]) == (True, 2)
    assert document["environment"]["NPROC_PER_NODE"] == "2"
    assert "launch_by_torchrun" in {finding["code"] for finding in document["findings"]}
    assert document["output_dir"] == str(project / "out")


def test_what_blocks_gives_1_and_is_said(herd: Herd, project: Path) -> None:
    write_config(project, fp16="true", bf16="true")
    said = herd.run("check", "train.yaml", cwd=project)
    assert said.returncode == 1
    assert "fp16: true and bf16: true cannot be used together" in said.stdout
    document = json.loads(herd.run("check", "--json", "train.yaml", cwd=project).stdout)
    assert [finding["code"] for finding in document["findings"] if finding["blocks"]] == ["values_conflict"]


def test_it_speaks_chinese(herd: Herd, project: Path) -> None:
    write_config(project, fp16="true", bf16="true")
    said = herd.run("check", "--lang", "zh", "train.yaml", cwd=project)
    assert "fp16: true 和 bf16: true 不能同时使用" in said.stdout


def test_start_refuses_it_and_starts_nothing(herd: Herd, project: Path) -> None:
    write_config(project, fp16="true", bf16="true")
    said = herd.run("start", "train.yaml", cwd=project)
    assert said.returncode == 1
    assert said.stdout == ""
    assert "cannot be used together" in said.stderr
    refused = herd.run("start", "--json", "train.yaml", cwd=project)
    error = json.loads(refused.stdout)["error"]
    assert (refused.returncode, error["code"]) == (1, "start_blocked")
    assert "cannot be used together" in error["message"]
    assert herd.document("jobs")["jobs"] == []


def test_start_warns_and_starts(herd: Herd, project: Path) -> None:
    write_config(project, max_steps=4, val_size=0.1)
    said = herd.run("start", "train.yaml", cwd=project)
    assert said.returncode == 0, said.stderr
    assert "val_size" in said.stderr
    assert herd.wait_for_end(said.stdout.strip())["exit_code"] == 0


def test_unchecked_starts_all_the_same(herd: Herd, project: Path) -> None:
    write_config(project, max_steps=4, fp16="true", bf16="true")
    said = herd.run("start", "--unchecked", "train.yaml", cwd=project)
    assert said.returncode == 0, said.stderr
    herd.wait_for_end(said.stdout.strip())


def test_a_trial_leaves_the_real_output_alone(herd: Herd, project: Path) -> None:
    config = write_config(project)
    before = config.read_bytes()
    job = herd.start("train.yaml", "--trial", "3", cwd=project)
    ended = herd.wait_for_end(job)
    assert ended["output_dir"] == str(project / "out-trial-1")
    assert ended["progress"]["total"] == 3
    assert not (project / "out").exists()
    assert config.read_bytes() == before


@pytest.mark.parametrize(
    "words", [["--trial", "0"], ["--trial", "x"], ["--trial", "3", "--", "llamafactory-cli", "train"]]
)
def test_a_trial_that_makes_no_sense(herd: Herd, project: Path, words: list[str]) -> None:
    config = [] if "--" in words else ["train.yaml"]
    assert herd.run("start", *config, *words, cwd=project).returncode == 2


def test_secrets_show_nowhere(herd: Herd, project: Path) -> None:
    write_config(
        project, hf_hub_token=SECRET, swanlab_api_key=SECRET, lora_rank=f'"{SECRET}"', run_name=SECRET
    )
    words = ("train.yaml", f"ms_hub_token={SECRET}", "template=" + SECRET)
    for command in (["check"], ["check", "--json"], ["start"], ["start", "--json"], ["start", "--dry-run"]):
        said = herd.run(*command, *words, cwd=project)
        assert SECRET not in said.stdout + said.stderr, command


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"a: " + b"x" * (10 << 20), "config_too_large"),
        (b"\x00\xff\xfe\x89PNG" * 1000, "config_invalid"),
        (
            b"a: &a [x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\n"
            + b"".join(
                b"%c: &%c [%s]\n" % (letter + 1, letter + 1, b",".join([b"*%c" % letter] * 9))
                for letter in range(98, 110)
            ),
            "config_invalid",
        ),
        (b"- a list\n", "config_not_mapping"),
        (b"", "config_not_mapping"),
        (b"a: [" * 3000, "config_invalid"),
    ],
    ids=["10 MB", "binary", "exploding aliases", "list", "empty", "deep"],
)
def test_files_that_are_no_config(herd: Herd, project: Path, content: bytes, code: str) -> None:
    (project / "train.yaml").write_bytes(content)
    began = time.monotonic()
    said = herd.run("check", "--json", "train.yaml", cwd=project)
    assert time.monotonic() - began < 20
    assert said.returncode == 1
    assert json.loads(said.stdout)["error"]["code"] == code
    assert "Traceback" not in said.stderr


@pytest.mark.parametrize("stage", ["pt", "rm", "ppo", "dpo", "kto", "zzz"])
def test_a_config_of_another_stage_is_findings(herd: Herd, project: Path, stage: str) -> None:
    write_config(project, stage=stage)
    said = herd.run("check", "--json", "train.yaml", cwd=project)
    assert said.returncode in (0, 1)
    assert "findings" in json.loads(said.stdout)


def test_a_damaged_model_is_findings(herd: Herd, project: Path) -> None:
    model = project / "model"
    model.mkdir()
    (model / "config.json").write_text("{}")
    (model / "model.safetensors.index.json").write_text(
        json.dumps({"weight_map": {"a": "one.safetensors", "b": "two.safetensors"}})
    )
    (model / "one.safetensors").write_bytes(b"\xff" * 7)
    write_config(project, model_name_or_path="model")
    said = herd.run("check", "--json", "train.yaml", cwd=project)
    codes = {finding["code"] for finding in json.loads(said.stdout)["findings"]}
    assert {"shards_missing", "weights_truncated", "tokenizer_missing"} <= codes
    assert "Traceback" not in said.stderr
