"""Estimates against real LLaMA-Factory: what torch holds, the plan it prints, the lengths it makes."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.command_line import Herd
from support.plan_cases import load_cases, write_datasets
from support.real_llamafactory import RealLlamaFactory, run_environment

from tui.facts.memory import PartName
from tui.insight.held_memory import held_memory
from tui.llamafactory.config import load_config, resolve
from tui.llamafactory.environment import Environment, find_environment, runtime_environ
from tui.llamafactory.lengths import LengthProbe
from tui.llamafactory.setup import training_setup
from tui.llamafactory.weights import read_model
from tui.operate.estimate import measure_lengths

pytestmark = pytest.mark.e2e

HERE = Path(__file__).parent
HELD: tuple[PartName, ...] = ("weights", "adapter", "gradients", "optimizer")
TRAININGS: dict[str, dict[str, object]] = {
    "lora": {},
    "lora of 16-bit weights": {"model_name_or_path": "tiny-bf16"},
    "lora of two targets": {"lora_target": "q_proj,v_proj", "lora_rank": 16},
    "dora": {"use_dora": True},
    "lora and the output matrix": {
        "additional_target": "embed_tokens",
        "model_name_or_path": "tiny-bf16",
        "bf16": True,
    },
    "full": {"finetuning_type": "full"},
    "full of 16-bit weights": {"finetuning_type": "full", "model_name_or_path": "tiny-bf16"},
    "full in 16 bits": {"finetuning_type": "full", "model_name_or_path": "tiny-bf16", "bf16": True},
    "last layer": {"finetuning_type": "freeze", "freeze_trainable_layers": 1},
    "first layer, feed-forward only": {
        "finetuning_type": "freeze",
        "freeze_trainable_layers": -1,
        "freeze_trainable_modules": "mlp",
        "model_name_or_path": "tiny-bf16",
        "bf16": True,
    },
    "without states": {"finetuning_type": "full", "optim": "sgd"},
    "one state": {"finetuning_type": "full", "optim": "adagrad"},
}


def run_inside(
    llamafactory: RealLlamaFactory, scratch: Path, script: str, *arguments: Path
) -> "subprocess.CompletedProcess[str]":
    done = subprocess.run(
        [str(llamafactory.environment / "bin" / "python"), str(HERE / script), *map(str, arguments)],
        env=run_environment(scratch),
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done


def answers_of(path: Path) -> dict[str, dict[str, Any]]:
    return {line["name"]: line for line in map(json.loads, path.read_text().splitlines())}


def test_what_torch_holds_is_what_was_estimated(llamafactory: RealLlamaFactory, tmp_path: Path) -> None:
    config = llamafactory.write_project(tmp_path / "p", rows=8, overwrite_output_dir=True)
    base = yaml.safe_load(config.read_text())
    cases: list[dict[str, Any]] = [
        {"name": name, "cwd": str(tmp_path / "p"), "values": {**base, **values}}
        for name, values in TRAININGS.items()
    ]
    (tmp_path / "cases.json").write_text(json.dumps(cases))
    run_inside(llamafactory, tmp_path, "account_memory.py", tmp_path / "cases.json", tmp_path / "answers")
    answers = answers_of(tmp_path / "answers")
    assert answers.keys() == TRAININGS.keys()
    for case in cases:
        estimated = estimated_parts(case["values"], tmp_path / "p")
        held = {part: answers[case["name"]][part] for part in HELD}
        assert estimated == held, case["name"]


def estimated_parts(values: Mapping[str, object], folder: Path) -> dict[str, int]:
    file = folder / "case.yaml"
    file.write_text(yaml.safe_dump(dict(values)))
    config = resolve(load_config(file), folder)
    model = read_model(folder / str(values["model_name_or_path"]))
    parts = held_memory(model, training_setup(config, model, world=1)).card
    for part in parts:
        assert part.name == "framework" or part.bytes.low == part.bytes.high
    sizes = {part.name: part.bytes.low for part in parts}
    return {part: sizes.get(part, 0) for part in HELD}


def test_the_recorded_plans_are_what_llamafactory_counts(
    llamafactory: RealLlamaFactory, tmp_path: Path
) -> None:
    newest = load_cases()[0].transformers
    chosen = [case for case in load_cases() if case.ranks == 1 and case.transformers == newest][::5]
    cases = []
    for number, case in enumerate(chosen):
        folder = tmp_path / str(number)
        config = llamafactory.write_project(folder, rows=1)
        write_datasets(case, folder / "data")
        values = {**yaml.safe_load(config.read_text()), **case.values}
        kept = {key: value for key, value in values.items() if value is not None}
        cases.append({"name": case.name, "cwd": str(folder), "values": kept})
    (tmp_path / "cases.json").write_text(json.dumps(cases))
    run_inside(llamafactory, tmp_path, "read_plans.py", tmp_path / "cases.json", tmp_path / "answers")
    answers = answers_of(tmp_path / "answers")
    for case in chosen:
        assert answers[case.name].get("printed") == case.printed, answers[case.name]


@pytest.mark.parametrize("stage", ["sft", "dpo"])
def test_lengths_are_those_that_llamafactory_makes(
    llamafactory: RealLlamaFactory, tmp_path: Path, stage: str
) -> None:
    file = llamafactory.write_project(tmp_path / "p", rows=150, cutoff_len=1024, stage=stage)
    if stage == "dpo":
        preferences = next(case for case in load_cases() if case.name == "preferences")
        write_datasets(preferences, tmp_path / "p" / "data")
    environ = run_environment(tmp_path)
    environment = environment_of(llamafactory, tmp_path)
    lengths = measure_lengths(resolve(load_config(file), tmp_path / "p"), environment, environ)
    assert (lengths.problem, lengths.complete, lengths.dropped) == (None, True, 0)
    if stage == "dpo":
        assert lengths.samples == 70
        return
    script = tmp_path / "p" / "train.yaml"
    done = subprocess.run(
        [str(llamafactory.environment / "bin" / "python"), str(HERE / "read_lengths.py"), str(script)],
        cwd=tmp_path / "p",
        env=environ,
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    own = json.loads(done.stdout.splitlines()[-1])
    measured = [length for length, count in sorted(lengths.counts.items()) for _ in range(count)]
    assert measured == own


def test_a_tokenizer_that_cannot_load_is_named(llamafactory: RealLlamaFactory, tmp_path: Path) -> None:
    file = llamafactory.write_project(tmp_path / "p", rows=3)
    broken = tmp_path / "p" / "broken"
    broken.mkdir()
    (broken / "config.json").write_text((llamafactory.model / "config.json").read_text())
    (broken / "tokenizer.json").write_text("{")
    config = resolve(load_config(file), tmp_path / "p")
    values = {**config.values, "model_name_or_path": "broken"}
    environment = environment_of(llamafactory, tmp_path)
    lengths = measure_lengths(
        type(config)(values, config.path, config.cwd), environment, run_environment(tmp_path)
    )
    assert lengths.problem == "tokenizer"
    assert not lengths.counts


def environment_of(llamafactory: RealLlamaFactory, folder: Path) -> Environment:
    return find_environment(
        explicit=llamafactory.environment,
        settings=None,
        environ={},
        cwd=folder,
        own_prefix=Path(sys.prefix),
        roots=(),
    )


def test_a_list_too_large_to_load_is_not_loaded(llamafactory: RealLlamaFactory, tmp_path: Path) -> None:
    file = llamafactory.write_project(tmp_path / "p", rows=3)
    with (tmp_path / "p" / "data" / "sums.json").open("wb") as data:
        data.write(b"[")
        data.truncate(10_000_000_000)
    config = resolve(load_config(file), tmp_path / "p")
    environment = environment_of(llamafactory, tmp_path)
    lengths = measure_lengths(config, environment, run_environment(tmp_path))
    assert (lengths.problem, lengths.counts) == ("dataset_too_large", {})


def test_a_cancelled_measurement_keeps_what_it_has(llamafactory: RealLlamaFactory, tmp_path: Path) -> None:
    file = llamafactory.write_project(tmp_path / "p", rows=60_000)
    data = tmp_path / "p" / "data"
    rows = json.loads((data / "sums.json").read_text())
    (data / "sums.json").write_text("\n".join(map(json.dumps, rows)))
    environment = environment_of(llamafactory, tmp_path)
    config = resolve(load_config(file), tmp_path / "p")
    environ = runtime_environ(environment, run_environment(tmp_path), Path(sys.prefix))
    with LengthProbe(environment, config, environ) as probe:
        lengths = probe.run(lambda progress: probe.cancel() if progress.samples else None)
    assert lengths.problem == "cancelled"
    assert 0 < lengths.samples < 60_000


def test_check_tells_steps_memory_and_lengths(
    llamafactory: RealLlamaFactory, herd: Herd, tmp_path: Path
) -> None:
    file = llamafactory.write_project(tmp_path / "p", rows=100)
    document = herd.document(
        "check", file, "--env", llamafactory.environment, "--lengths", cwd=tmp_path / "p"
    )
    assert document["steps"]["total"] == {"low": 50, "high": 50}
    assert document["memory"]["needed"]["low"] > 0
    assert document["lengths"]["samples"] == 100
