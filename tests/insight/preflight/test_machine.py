"""Cards, precision, processes, memory, disks, ports."""

from dataclasses import replace
from typing import Any

import pytest
from support.preflight import GIB, blockers, facts, found, gpu
from support.samples import RUNNING

from tui.facts.machine import HostMemory, Owner, SharedMemory
from tui.facts.weights import ModelFacts
from tui.insight.preflight.facts import Machine, Place, PreflightFacts
from tui.insight.preflight.machine import has_no_bf16
from tui.llamafactory.deepspeed import Deepspeed
from tui.llamafactory.model_folder import ModelFolder


def on(values: dict[str, Any] | None = None, **changes: Any) -> PreflightFacts:
    planned = facts(values)
    return replace(planned, machine=replace(planned.machine, **changes))


def model(size: int) -> ModelFolder:
    return ModelFolder("/m", True, has_tokenizer=True, facts=ModelFacts("/m", "m", file_bytes=size))


@pytest.mark.parametrize(
    ("name", "old"),
    [
        ("Tesla V100-PCIE-32GB", True),
        ("Tesla T4", True),
        ("Tesla P40", True),
        ("NVIDIA GeForce RTX 2080 Ti", True),
        ("NVIDIA GeForce GTX 1080", True),
        ("NVIDIA TITAN RTX", True),
        ("Quadro RTX 6000", True),
        ("NVIDIA GeForce RTX 3090", False),
        ("NVIDIA GeForce RTX 4090 D", False),
        ("NVIDIA RTX 6000 Ada Generation", False),
        ("NVIDIA RTX A5000", False),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", False),
        ("NVIDIA A100-SXM4-80GB", False),
        ("NVIDIA H200", False),
        ("NVIDIA L40S", False),
        ("NVIDIA H20", False),
    ],
)
def test_cards_without_bf16(name: str, old: bool) -> None:
    assert has_no_bf16(name) is old


def test_bf16_against_the_card() -> None:
    finding = found(on(gpus=(gpu("Tesla V100-PCIE-32GB"),)))["no_bf16"]
    assert (finding.level, finding.blocks) == ("danger", False)
    assert "no_bf16" in blockers(on({"bf16": None, "pure_bf16": True}, gpus=(gpu("Tesla T4"),)))
    assert "no_bf16" not in found(on({"bf16": None, "fp16": True}, gpus=(gpu("Tesla T4"),)))
    assert found(facts({"bf16": None}))["full_precision"].level == "advice"


def test_memory_that_is_held_is_named_with_its_holders() -> None:
    owner = Owner(7, None, 1, 3 * GIB, "exact", "chat")
    held = found(on(gpus=(gpu(used=3 * GIB, owners=(owner,)),)))["card_memory_held"]
    assert held.evidence["owners"] == "chat 7"
    assert held.evidence["free"] == 21 * GIB
    assert "card_memory_hidden" in found(on(gpus=(gpu(used=3 * GIB),)))
    assert found(on(gpus=(gpu(used=GIB // 4),))) == {}


def test_another_run_on_the_card() -> None:
    running = replace(RUNNING, id="other", gpus=("GPU-0",))
    assert found(on(jobs=(running,)))["card_in_use"].evidence["jobs"] == "other"
    assert "card_in_use" not in found(on(jobs=(replace(running, state="ended"),)))


def test_a_card_that_fails_blocks() -> None:
    assert blockers(on(gpus=(gpu(state="lost"),))) == {"card_failing"}


def test_torchrun_without_a_card_starts_nothing() -> None:
    planned = replace(facts(torchrun=True, processes=0), machine=Machine(0))
    assert blockers(planned) == {"torchrun_without_card"}


def test_more_processes_than_cards() -> None:
    assert blockers(facts(torchrun=True, processes=2)) == {"processes_beyond_cards"}
    assert blockers(facts({"use_cpu": True}, torchrun=True, processes=2)) == set()
    planned = replace(facts(torchrun=True, processes=2), machine=Machine(2))
    assert found(planned)["launch_by_torchrun"].level == "info"


def test_a_count_that_cannot_be_told() -> None:
    planned = facts(torchrun=True, processes=None, environ={"NPROC_PER_NODE": "auto"})
    assert found(planned)["process_count_unclear"].evidence["value"] == "auto"


def test_no_card_is_said_unless_meant() -> None:
    assert found(on(cards=0, gpus=()))["no_card"].level == "warning"
    assert "no_card" not in found(on({"use_cpu": True}, cards=0, gpus=()))


def test_data_loaders_need_shared_memory() -> None:
    small = SharedMemory(64 << 20, 64 << 20)
    assert "shm_too_small" in found(on({"dataloader_num_workers": 4}, shm=small))
    assert "shm_too_small" not in found(on({"dataloader_num_workers": 1}, shm=small))


def test_workers_against_cpus_and_memory() -> None:
    assert "too_many_workers" in found(on({"preprocessing_num_workers": 16}, cpus=4.0))
    assert "too_many_workers" not in found(on({"preprocessing_num_workers": 8}, cpus=4.0))
    little = HostMemory(10 * GIB, 4 * GIB, None)
    assert "workers_need_memory" in found(on({"preprocessing_num_workers": 8}, memory=little))
    assert "workers_need_memory" not in found(on({"preprocessing_num_workers": 4}, memory=little))


def test_offloading_needs_host_memory() -> None:
    offload = Deepspeed("/x/ds.json", stage=2, offload_optimizer=True)
    full = {"finetuning_type": "full"}
    assert "offload_needs_memory" in found(facts(full, deepspeed=offload, model=model(16 * GIB)))
    assert "offload_needs_memory" not in found(facts(full, deepspeed=offload, model=model(2 * GIB)))
    assert "offload_needs_memory" not in found(facts(deepspeed=offload, model=model(16 * GIB)))


def test_room_for_checkpoints() -> None:
    full = {"finetuning_type": "full", "save_total_limit": 1}
    near = Place("/out", 20 * GIB)
    assert "disk_too_small" in blockers(facts(full, output_place=near, model=model(4 * GIB)))
    finding = found(facts(full, output_place=Place("/out", 40 * GIB), model=model(4 * GIB)))["disk_too_small"]
    assert (finding.blocks, finding.evidence["needed"]) == (False, 56 * GIB)
    assert "disk_too_small" not in found(
        facts(full, output_place=Place("/out", 60 * GIB), model=model(4 * GIB))
    )
    assert "disk_too_small" in found(facts(output_place=Place("/out", GIB)))
    never = {**full, "save_strategy": "no"}
    assert "disk_too_small" not in found(facts(never, output_place=near, model=model(4 * GIB)))
    saving = {**full, "save_only_model": True}
    assert "disk_too_small" not in found(facts(saving, output_place=near, model=model(4 * GIB)))


def test_a_port_that_is_taken() -> None:
    planned = facts(torchrun=True, environ={"MASTER_PORT": "29500"})
    taken = replace(planned, machine=replace(planned.machine, ports_taken=frozenset({29500})))
    assert blockers(taken) == {"port_taken"}
    assert blockers(planned) == set()
    assert blockers(replace(taken, torchrun=False)) == set()
    second = {"MASTER_PORT": "29500", "NODE_RANK": "1", "MASTER_ADDR": "10.0.0.1"}
    assert blockers(replace(taken, environ=second)) == set()


def test_a_space_tears_torchruns_command_apart() -> None:
    assert blockers(facts(torchrun=True, words=("/a b/llamafactory",))) == {"space_in_path"}
    assert blockers(facts(words=("/a b/llamafactory",))) == set()
