"""Simulated cards around what the demo's jobs do."""

from dataclasses import replace

from support.recording import RUN, job, one_gpu, service

from tui.demo.cards import Cards
from tui.facts.training import Progress, Stage


def test_the_cards_are_the_demos_and_nothing_else_is_shown() -> None:
    machine = replace(one_gpu(), foreign=(service(),))
    dressed = Cards().dress(machine)
    assert [card.uuid for card in dressed.gpus] == ["GPU-demo-0", "GPU-demo-1"]
    assert dressed.foreign == ()
    assert dressed.findings == ()
    assert dressed.driver.error is None


def test_memory_follows_the_stage_of_the_run() -> None:
    cards = Cards()
    used = []
    stages: tuple[Stage, ...] = ("import", "load", "train")
    for stage in stages:
        picture = replace(one_gpu(), jobs=(job(progress=Progress(stage=stage)),))
        used.append(cards.dress(picture).gpus[0].memory.used or 0)
    assert used == sorted(used)
    assert used[0] < 1 << 30 < used[1]
    assert cards.dress(replace(one_gpu(), jobs=())).gpus[0].peak_memory == used[-1]


def test_the_run_is_the_owner_of_its_memory() -> None:
    owner = Cards().dress(one_gpu()).gpus[0].owners[0]
    assert (owner.pid, owner.job, owner.kind) == (4321, RUN, "train")


def test_what_is_made_up_has_no_pid() -> None:
    assert [owner.pid for owner in Cards().dress(one_gpu()).gpus[1].owners] == [None, None]


def test_the_sum_of_the_owners_is_what_is_used() -> None:
    for card in Cards().dress(one_gpu()).gpus:
        assert sum(owner.memory or 0 for owner in card.owners) == card.memory.used
