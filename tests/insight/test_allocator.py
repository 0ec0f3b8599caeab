"""The rules of torch's caching allocator, played on paper."""

import random

import pytest

from tui.insight.allocator import Allocator, Block, OutOfMemoryError

MIB = 1 << 20


def test_a_small_block_takes_a_segment_of_two_mebibytes() -> None:
    allocator = Allocator()
    block = allocator.allocate(1)
    assert (block.size, allocator.allocated, allocator.reserved) == (512, 512, 2 * MIB)


@pytest.mark.parametrize(
    ("size", "reserved"),
    [
        (MIB, 2 * MIB),
        (MIB + 1, 20 * MIB),
        (10 * MIB - 512, 20 * MIB),
        (10 * MIB, 10 * MIB),
        (11 * MIB, 12 * MIB),
    ],
)
def test_segments_by_size(size: int, reserved: int) -> None:
    allocator = Allocator()
    allocator.allocate(size)
    assert allocator.reserved == reserved


def test_what_is_freed_is_kept_and_given_again() -> None:
    allocator = Allocator()
    allocator.free(allocator.allocate(100 * MIB))
    assert (allocator.allocated, allocator.reserved) == (0, 100 * MIB)
    allocator.allocate(60 * MIB)
    allocator.allocate(40 * MIB)
    assert allocator.reserved == 100 * MIB


def test_the_smallest_that_fits_is_taken() -> None:
    allocator = Allocator()
    large, small = allocator.allocate(100 * MIB), allocator.allocate(50 * MIB)
    allocator.free(large)
    allocator.free(small)
    assert allocator.allocate(50 * MIB) is small
    allocator.allocate(100 * MIB)
    assert allocator.reserved == 150 * MIB


def test_neighbours_merge() -> None:
    allocator = Allocator()
    allocator.free(allocator.allocate(100 * MIB))
    parts = [allocator.allocate(25 * MIB) for _ in range(4)]
    for part in (parts[1], parts[3], parts[2], parts[0]):
        allocator.free(part)
    allocator.allocate(100 * MIB)
    assert allocator.reserved == 100 * MIB


def test_growing_batches_leave_their_shorter_blocks_behind() -> None:
    allocator = Allocator()
    for size in (100, 150, 200):
        allocator.free(allocator.allocate(size * MIB))
    assert allocator.reserved == 450 * MIB
    longest_first = Allocator()
    for size in (200, 150, 100):
        longest_first.free(longest_first.allocate(size * MIB))
    assert longest_first.reserved == 200 * MIB


def test_expandable_segments_grow_in_place() -> None:
    allocator = Allocator(expandable=True)
    for size in (100, 150, 200):
        allocator.free(allocator.allocate(size * MIB))
    assert allocator.reserved == 200 * MIB


def test_a_full_card_gives_back_what_is_wholly_free() -> None:
    allocator = Allocator(limit=300 * MIB)
    for size in (100, 150, 200):
        allocator.free(allocator.allocate(size * MIB))
    assert allocator.peak_reserved == 250 * MIB
    assert allocator.reserved == 200 * MIB


def test_a_card_that_is_really_full_says_so() -> None:
    allocator = Allocator(limit=100 * MIB)
    allocator.allocate(80 * MIB)
    with pytest.raises(OutOfMemoryError):
        allocator.allocate(30 * MIB)


@pytest.mark.parametrize("expandable", [False, True])
def test_the_books_balance_whatever_happens(expandable: bool) -> None:
    chance = random.Random(7)
    allocator = Allocator(expandable=expandable)
    live: list[Block] = []
    for _ in range(3000):
        if live and chance.random() < 0.5:
            allocator.free(live.pop(chance.randrange(len(live))))
        else:
            live.append(
                allocator.allocate(chance.choice([300, 5000, 3 * MIB, 30 * MIB]) * chance.randint(1, 3))
            )
        assert allocator.allocated == sum(block.size for block in live)
        assert allocator.reserved >= allocator.allocated
    for block in live:
        allocator.free(block)
    assert allocator.allocated == 0
