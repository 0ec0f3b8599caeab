"""Which cards a process may use, as CUDA reads its environment."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from support.samples import gpu

from tui.facts.machine import Gpu, GpuDetail
from tui.insight.visible_devices import card_of_rank, visible_cards

UUIDS = ("GPU-aaaa1111", "GPU-aaaa2222", "GPU-bbbb3333", "GPU-cccc4444")
GPUS = tuple(gpu(index, uuid) for index, uuid in enumerate(UUIDS))
MIXED = (*GPUS[:3], replace(GPUS[3], name="NVIDIA A100"))
CUT = (
    replace(GPUS[0], detail=GpuDetail(mig=True, instances=("MIG-1-a", "MIG-1-b"))),
    replace(GPUS[1], detail=GpuDetail(mig=True, instances=("MIG-2-a",))),
)


def numbers(environment: Mapping[str, str], gpus: tuple[Gpu, ...] = GPUS) -> list[int] | None:
    cards = visible_cards(environment, gpus)
    return None if cards is None else [UUIDS.index(uuid) for uuid in cards]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", [0]),
        ("2,0", [2, 0]),
        (" 1 , 3 ", [1, 3]),
        ("GPU-bbbb3333", [2]),
        ("GPU-bb,GPU-aaaa1", [2, 0]),
        ("", []),
        ("-1", []),
        ("NoDevFiles", []),
        ("0,-1,2", [0]),
        ("0,9,2", [0]),
        ("1,1", []),
        ("1,GPU-aaaa2222", []),
        ("GPU-aaaa", []),
        ("0,x", [0]),
        ("²", []),
        ("9" * 5000, []),
    ],
)
def test_a_list_names_cards_up_to_the_first_entry_that_names_none(text: str, expected: list[int]) -> None:
    assert numbers({"CUDA_VISIBLE_DEVICES": text}) == expected


def test_without_a_list_all_cards_are_visible() -> None:
    assert numbers({}) == [0, 1, 2, 3]
    assert numbers({}, tuple(reversed(GPUS))) == [0, 1, 2, 3]


def test_indexes_of_different_cards_need_the_order_of_the_bus() -> None:
    assert numbers({"CUDA_VISIBLE_DEVICES": "3"}, MIXED) is None
    assert numbers({"CUDA_VISIBLE_DEVICES": "3", "CUDA_DEVICE_ORDER": "FASTEST_FIRST"}, MIXED) is None
    assert numbers({"CUDA_VISIBLE_DEVICES": "3", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}, MIXED) == [3]
    assert numbers({"CUDA_VISIBLE_DEVICES": "GPU-cccc"}, MIXED) == [3]


def test_an_instance_names_the_card_that_it_is_cut_from() -> None:
    assert numbers({"CUDA_VISIBLE_DEVICES": "MIG-2-a"}, CUT) == [1]
    assert numbers({"CUDA_VISIBLE_DEVICES": "MIG-1-b,MIG-1-a"}, CUT) == [0]
    assert numbers({"CUDA_VISIBLE_DEVICES": "MIG-1-a,MIG-1-a"}, CUT) == []
    assert numbers({"CUDA_VISIBLE_DEVICES": "MIG-9"}, CUT) == []


@pytest.mark.parametrize(
    ("rank", "expected"), [("0", UUIDS[2]), ("1", UUIDS[0]), ("2", None), ("x", None), ("", None)]
)
def test_a_rank_works_on_the_card_of_its_number(rank: str, expected: str | None) -> None:
    environment = {"CUDA_VISIBLE_DEVICES": "2,0", "LOCAL_RANK": rank}
    assert card_of_rank(environment, GPUS) == expected


def test_a_process_without_a_rank_has_no_card_of_its_own() -> None:
    assert card_of_rank({}, GPUS) is None
