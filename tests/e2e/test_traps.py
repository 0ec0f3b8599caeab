"""Every trap that a preflight names is one: real LLaMA-Factory falls into it.

One process of LLaMA-Factory is fed all configs, since its import alone takes seconds.
"""

import json
import os
import shutil
import socket
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from support.real_llamafactory import RealLlamaFactory, run_environment

from tui.facts.finding import Finding
from tui.operate.check import check
from tui.operate.launch import StartRequest
from tui.operate.settings import Settings

HERE = Path(__file__).parent
STEPS = 2

pytestmark = pytest.mark.e2e


def nothing(project: Path) -> None:
    """Most traps are in the config alone."""


@dataclass(frozen=True)
class Trap:
    """``finding`` is what the preflight calls it; ``says`` a part of what LLaMA-Factory says, ``None``
    where it says nothing and goes on.
    """

    finding: str
    says: str | None
    values: Mapping[str, object] = field(default_factory=dict)
    prepare: Callable[[Path], None] = nothing
    text: str = ""
    blocks: bool = True


def own_model(project: Path) -> Path:
    """A copy of the model that may be damaged."""
    link = project / "tiny-qwen3"
    real = link.resolve()
    link.unlink()
    shutil.copytree(real, link)
    return link


def shard(project: Path) -> Path:
    return sorted(own_model(project).glob("*.safetensors"))[-1]


def truncate_shard(project: Path) -> None:
    path = shard(project)
    os.truncate(path, path.stat().st_size - 64)


def set_tokenizer_class(project: Path) -> None:
    path = own_model(project) / "tokenizer_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"tokenizer_class": "TokenizersBackend"}))


def break_model_config(project: Path) -> None:
    (own_model(project) / "config.json").write_text("{")


def remove_tokenizer(project: Path) -> None:
    for path in own_model(project).glob("*token*"):
        path.unlink()


def make_adapter(project: Path) -> None:
    (project / "adapter").mkdir()
    (project / "adapter" / "adapter_config.json").write_text(
        json.dumps(
            {"peft_type": "LORA", "base_model_name_or_path": "tiny-qwen3", "target_modules": ["q_proj"]}
        )
    )


def dataset_info(entry: object) -> Callable[[Path], None]:
    def write(project: Path) -> None:
        (project / "data" / "dataset_info.json").write_text(json.dumps({"sums": entry}))

    return write


def write(file: str, text: str) -> Callable[[Path], None]:
    def prepare(project: Path) -> None:
        (project / file).write_text(text)

    return prepare


def leave_weights(project: Path) -> None:
    (project / "out").mkdir()
    (project / "out" / "adapter_model.safetensors").write_bytes(b"")


def leave_half_a_checkpoint(project: Path) -> None:
    (project / "out" / "checkpoint-7").mkdir(parents=True)


TRAPS: dict[str, Trap] = {
    "misspelt": Trap("key_misspelt", "not used by the HfArgumentParser: ['lora_rnak']", {"lora_rnak": 8}),
    "renamed": Trap("key_misspelt", "not used by", {"evaluation_strategy": "steps"}),
    "unknown": Trap("key_unknown", "not used by", {"zzzzzz": 1}),
    "newer": Trap("key_of_other_release", "not used by", {"enable_jit_checkpoint": True}),
    "text-rank": Trap("number_as_text", "'<=' not supported", {"lora_rank": "8"}),
    "text-batch": Trap("number_as_text", "batch_size", {"per_device_train_batch_size": "1"}),
    "text-rate": Trap(
        "number_as_text", "'float' and 'str'", {"learning_rate": None}, text='learning_rate: "5e-5"\n'
    ),
    "unquoted-no": Trap(
        "word_became_flag", "False is not a valid IntervalStrategy", text="eval_strategy: no\n"
    ),
    "unquoted-off": Trap("word_became_flag", "is not a valid SaveStrategy", text="save_strategy: off\n"),
    "quoted-no": Trap("flag_as_text", None, {"packing": "no"}),
    "stage": Trap("value_wrong", "Unknown task", {"stage": "sftt"}),
    "method": Trap("value_wrong", "Invalid fine-tuning method", {"finetuning_type": "qlora"}),
    "bits": Trap("value_wrong", "only accepts 4-bit or 8-bit", {"quantization_bit": 3}),
    "batch-0": Trap("value_wrong", "batch_size", {"per_device_train_batch_size": 0}),
    "accumulation-0": Trap("value_wrong", "ZeroDivisionError", {"gradient_accumulation_steps": 0}),
    "no-model": Trap("value_needed", "Please provide `model_name_or_path`", {"model_name_or_path": None}),
    "no-dataset": Trap("value_needed", "Please specify dataset", {"dataset": None}),
    "idle": Trap("nothing_to_do", None, {"do_train": None}),
    "no-eval-data": Trap("value_needed", "eval_dataset", {"eval_strategy": "steps", "eval_steps": 1}),
    "endless": Trap("value_needed", "specify `max_steps`", {"streaming": True, "max_steps": None}),
    "ppo": Trap("value_needed", "`reward_model` is necessary", {"stage": "ppo"}),
    "predict": Trap("value_needed", "predict_with_generate", {"do_predict": True, "val_size": 0.1}),
    "best": Trap("value_needed", "load_best_model_at_end", {"load_best_model_at_end": True}),
    "best-steps": Trap(
        "value_wrong",
        "round multiple",
        {
            "load_best_model_at_end": True,
            "eval_strategy": "steps",
            "eval_steps": 2,
            "save_steps": 3,
            "val_size": 0.1,
        },
    ),
    "precisions": Trap("values_conflict", "At most one of fp16 and bf16", {"fp16": True, "bf16": True}),
    "neat": Trap("values_conflict", "`neat_packing`", {"neat_packing": True, "stage": "dpo"}),
    "quantized-full": Trap(
        "values_conflict", "only compatible with the LoRA", {"quantization_bit": 4, "finetuning_type": "full"}
    ),
    "adapter-full": Trap(
        "values_conflict",
        "only valid for the LoRA",
        {"adapter_name_or_path": "adapter", "finetuning_type": "full"},
        make_adapter,
    ),
    "two-evals": Trap(
        "values_conflict", "Cannot specify `val_size`", {"val_size": 0.1, "eval_dataset": "sums"}
    ),
    "samples": Trap(
        "values_conflict", "`max_samples` is incompatible", {"streaming": True, "max_samples": 5}
    ),
    "galore": Trap("values_conflict", "Cannot use LoRA with GaLore", {"use_galore": True}),
    "history": Trap("values_conflict", "`mask_history`", {"mask_history": True, "train_on_prompt": True}),
    "model-gone": Trap(
        "model_missing", "Repo id must be in the form", {"model_name_or_path": "/nowhere/model"}
    ),
    "model-offline": Trap(
        "model_not_cached_offline", "couldn't connect", {"model_name_or_path": "Qwen/Qwen3-0.6B"}
    ),
    "no-config": Trap("model_unreadable", "not a valid JSON file", prepare=break_model_config),
    "shard-gone": Trap("shards_missing", "model-0000", prepare=lambda project: shard(project).unlink()),
    "shard-short": Trap("weights_truncated", "SafetensorError", prepare=truncate_shard),
    "no-tokenizer": Trap("tokenizer_missing", "tokenizer", prepare=remove_tokenizer),
    "too-new": Trap("model_too_new", "TokenizersBackend", prepare=set_tokenizer_class),
    "adapter-gone": Trap("adapter_missing", "adapter_config.json", {"adapter_name_or_path": "./nowhere"}),
    "adapter-empty": Trap(
        "weights_missing",
        "Cannot find the requested files",
        {"adapter_name_or_path": "adapter"},
        make_adapter,
    ),
    "data-gone": Trap(
        "dataset_info_missing",
        "Cannot open",
        prepare=lambda project: (project / "data" / "dataset_info.json").unlink(),
    ),
    "data-broken": Trap(
        "dataset_info_unreadable", "Cannot open", prepare=write("data/dataset_info.json", '{"sums": {')
    ),
    "data-misspelt": Trap("dataset_misspelt", "Undefined dataset sumz", {"dataset": "sumz"}),
    "data-undefined": Trap("dataset_undefined", "Undefined dataset", {"dataset": "zzzzzz"}),
    "data-malformed": Trap("dataset_malformed", "file_name", prepare=dataset_info({"columns": {}})),
    "file-gone": Trap("dataset_file_missing", "not found", prepare=dataset_info({"file_name": "gone.json"})),
    "file-type": Trap(
        "dataset_file_type", "Allowed file types", prepare=dataset_info({"file_name": "../train.yaml"})
    ),
    "file-empty": Trap("dataset_empty", "DatasetGenerationError", prepare=write("data/sums.json", "")),
    "not-ranking": Trap("dataset_not_for_stage", "not applicable in the current", {"stage": "dpo"}),
    "template": Trap("template_misspelt", "Template qwen33 does not exist", {"template": "qwen33"}),
    "liger": Trap("package_missing", "liger-kernel", {"enable_liger_kernel": True}),
    "bnb": Trap("package_missing", "bitsandbytes>=0.39.0", {"quantization_bit": 4}),
    "swanlab": Trap("package_missing", "swanlab", {"use_swanlab": True}),
    "wandb": Trap("package_missing", "wandb", {"report_to": "wandb"}),
    "deepspeed": Trap("package_missing", "deepspeed", {"deepspeed": "ds.json"}),
    "resume-gone": Trap(
        "resume_missing", "Can't find a valid checkpoint", {"resume_from_checkpoint": "nowhere"}
    ),
    "refused": Trap("output_refused", "already exists and is not empty", prepare=leave_weights),
    "half-saved": Trap("checkpoint_incomplete", "checkpoint-7", prepare=leave_half_a_checkpoint),
    "half-named": Trap(
        "resume_incomplete",
        "checkpoint",
        {"resume_from_checkpoint": "out/checkpoint-7"},
        leave_half_a_checkpoint,
    ),
}


@pytest.fixture(scope="module")
def traps(llamafactory: RealLlamaFactory, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A project per trap; its path is that of the config."""
    root = tmp_path_factory.mktemp("traps")
    configs = {}
    for name, trap in TRAPS.items():
        values: dict[str, Any] = {"max_steps": STEPS, **trap.values}
        config = llamafactory.write_project(root / name, rows=40, **values)
        config.write_text(config.read_text() + trap.text)
        trap.prepare(config.parent)
        configs[name] = config
    return configs


@pytest.fixture(scope="module")
def found(llamafactory: RealLlamaFactory, traps: dict[str, Path]) -> dict[str, tuple[Finding, ...]]:
    """What the preflight says, asked before LLaMA-Factory leaves anything in the folders."""
    environ = {"HOME": "/nowhere", "HF_HUB_OFFLINE": "1", "PATH": "/usr/bin:/bin", "CUDA_VISIBLE_DEVICES": ""}
    return {name: preflight_of(config, llamafactory, environ) for name, config in traps.items()}


@pytest.fixture(scope="module")
def said(
    llamafactory: RealLlamaFactory, traps: dict[str, Path], found: dict[str, tuple[Finding, ...]]
) -> dict[str, str | None]:
    """What LLaMA-Factory says to each."""
    with TemporaryDirectory(prefix="herd") as scratch:
        done = subprocess.run(
            [str(llamafactory.environment / "bin" / "python"), str(HERE / "spring_traps.py")],
            input=json.dumps([[str(config.parent), config.name] for config in traps.values()]),
            env=run_environment(Path(scratch)),
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
    assert done.returncode == 0, done.stderr[-4000:]
    answers: list[str | None] = json.loads(done.stdout.splitlines()[-1])
    return dict(zip(traps, answers, strict=True))


def preflight_of(
    config: Path, llamafactory: RealLlamaFactory, environ: Mapping[str, str]
) -> tuple[Finding, ...]:
    request = StartRequest(config.parent, config, environment=llamafactory.environment)
    return check(request, Settings(), environ, None).findings


@pytest.mark.parametrize("name", TRAPS)
def test_the_preflight_names_it(name: str, found: dict[str, tuple[Finding, ...]]) -> None:
    trap = TRAPS[name]
    named = {finding.code: finding.blocks for finding in found[name]}
    assert named.get(trap.finding) == trap.blocks, named


@pytest.mark.parametrize("name", TRAPS)
def test_llamafactory_falls_into_it(name: str, said: dict[str, str | None]) -> None:
    trap, answer = TRAPS[name], said[name]
    if trap.says is None:
        assert answer is None
    else:
        assert answer is not None
        assert trap.says in answer


def run_cli(
    llamafactory: RealLlamaFactory, config: Path, subcommand: str = "train", **variables: str
) -> "subprocess.CompletedProcess[str]":
    with TemporaryDirectory(prefix="herd") as scratch:
        environment = run_environment(Path(scratch)) | variables
        path = f"{llamafactory.environment / 'bin'}{os.pathsep}{environment.get('PATH', os.defpath)}"
        return subprocess.run(
            [str(llamafactory.command), subcommand, str(config)],
            cwd=config.parent,
            env=environment | {"PATH": path},
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )


TORCHRUN = {"FORCE_TORCHRUN": "1", "PATH": "/usr/bin:/bin", "HOME": "/nowhere", "CUDA_VISIBLE_DEVICES": ""}


def test_torchrun_without_a_card_fails(llamafactory: RealLlamaFactory, tmp_path: Path) -> None:
    config = llamafactory.write_project(tmp_path / "p", rows=40, max_steps=STEPS)
    codes = {finding.code for finding in preflight_of(config, llamafactory, TORCHRUN) if finding.blocks}
    assert codes == {"torchrun_without_card"}
    assert run_cli(llamafactory, config, FORCE_TORCHRUN="1").returncode == 1


def test_torchrun_tears_a_path_with_a_space_apart(llamafactory: RealLlamaFactory, tmp_path: Path) -> None:
    config = llamafactory.write_project(tmp_path / "my project", rows=40, max_steps=STEPS)
    pasted = StartRequest(
        config.parent,
        pasted=("llamafactory-cli", "train", str(config)),
        environment=llamafactory.environment,
    )
    found = check(pasted, Settings(), {**TORCHRUN, "NPROC_PER_NODE": "1"}, None)
    assert "space_in_path" in {finding.code for finding in found.blockers}
    done = run_cli(llamafactory, config, FORCE_TORCHRUN="1", NPROC_PER_NODE="1")
    assert done.returncode == 1
    assert "Please provide `model_name_or_path`" in done.stderr


def test_a_finished_folder_trains_hardly_anything_and_loses_its_results(
    llamafactory: RealLlamaFactory, tmp_path: Path
) -> None:
    project = tmp_path / "p"
    config = llamafactory.write_project(project, rows=40, max_steps=STEPS, save_steps=1)
    environ = {"HOME": "/nowhere", "PATH": "/usr/bin:/bin", "CUDA_VISIBLE_DEVICES": ""}
    assert run_cli(llamafactory, config).returncode == 0
    results = project / "out" / "train_results.json"
    before = json.loads(results.read_text())
    codes = {finding.code for finding in preflight_of(config, llamafactory, environ) if finding.blocks}
    assert codes == {"nothing_left_to_train"}
    assert run_cli(llamafactory, config).returncode == 0
    # Where the last step did not end an epoch it trains one more, beyond max_steps.
    assert json.loads((project / "out" / "trainer_state.json").read_text())["global_step"] <= STEPS + 1
    assert json.loads(results.read_text())["train_loss"] != before["train_loss"]

    fresh = llamafactory.write_project(tmp_path / "q", rows=40, max_steps=1, overwrite_output_dir=True)
    (project / "out").rename(tmp_path / "q" / "out")
    named = {finding.code for finding in preflight_of(fresh, llamafactory, environ)}
    assert "stale_checkpoints" in named
    assert run_cli(llamafactory, fresh).returncode == 0
    assert (tmp_path / "q" / "out" / "checkpoint-2").is_dir()


def test_a_service_on_a_taken_port_ends_after_loading(llamafactory: RealLlamaFactory, tmp_path: Path) -> None:
    config = llamafactory.write_project(tmp_path / "p", rows=1)
    config.write_text("model_name_or_path: tiny-qwen3\ntemplate: qwen3_nothink\n")
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = {"API_HOST": "127.0.0.1", "API_PORT": str(server.getsockname()[1])}
        pasted = ("llamafactory-cli", "api", str(config))
        request = StartRequest(config.parent, pasted=pasted, environment=llamafactory.environment)
        found = check(request, Settings(), {**TORCHRUN, "FORCE_TORCHRUN": "0", **address}, None)
        assert {finding.code for finding in found.blockers} == {"service_port_taken"}
        done = run_cli(llamafactory, config, "api", **address)
    assert done.returncode != 0
    assert "address already in use" in done.stderr
