"""What torch's caching allocator keeps from the driver, by playing its rules on paper.

A card shows what the allocator holds, not what the tensors need: a freed block is kept and given again
only to what fits into it. With batches of many lengths the large blocks of shorter ones stay behind,
unused. The rules are those of torch's native CUDA allocator (2.x, default settings): sizes in steps of
512 bytes; small blocks from segments of 2 MiB, middle ones from 20 MiB, large ones in segments of their
own; the smallest free block that fits is taken and split; neighbours merge; when the card is full, all
wholly free segments are given back first. With ``expandable`` segments one segment grows in place.
"""

from bisect import bisect_left, insort

_ROUND = 512
_MIB = 1 << 20
_SMALL, _SMALL_SEGMENT = _MIB, 2 * _MIB
_MIDDLE, _MIDDLE_SEGMENT = 10 * _MIB, 20 * _MIB
_LARGE_STEP = 2 * _MIB


class OutOfMemoryError(Exception):
    """The card is full, also after everything unused was given back."""


class Block:
    """A piece of a segment, linked to its neighbours there."""

    __slots__ = ("after", "before", "free", "number", "pool", "size")

    def __init__(self, size: int, pool: int, number: int) -> None:
        self.size = size
        self.pool = pool
        self.number = number
        self.free = False
        self.before: Block | None = None
        self.after: Block | None = None


class Allocator:
    """``limit`` is what the card can give, in bytes; ``None``: as much as is asked for."""

    def __init__(self, limit: int | None = None, *, expandable: bool = False) -> None:
        self.reserved = 0
        self.allocated = 0
        self.peak_reserved = 0
        self._limit = limit
        self._expandable = expandable
        self._made = 0
        self._ends: list[Block | None] = [None, None]  # the last block of each growing segment
        self._free: list[list[tuple[int, int]]] = [[], []]  # (size, number) of free blocks, per pool
        self._blocks: dict[int, Block] = {}

    def allocate(self, size: int) -> Block:
        """A block for ``size`` bytes.

        Raises:
            OutOfMemoryError: the limit is reached.
        """
        size = max(_ROUND, -(-size // _ROUND) * _ROUND)
        pool = 0 if size <= _SMALL else 1
        block = self._fitting(size, pool) or self._new_segment(size, pool)
        rest = block.size - size
        if rest >= _ROUND if pool == 0 else rest > _SMALL:
            self._split(block, size)
        block.free = False
        self.allocated += block.size
        return block

    def free(self, block: Block) -> None:
        """Give a block back to the allocator, which keeps it."""
        self.allocated -= block.size
        block.free = True
        for neighbour in (block.before, block.after):
            if neighbour is not None and neighbour.free:
                self._forget(neighbour)
                block = self._merge(block, neighbour)
        self._remember(block)

    def _fitting(self, size: int, pool: int) -> Block | None:
        free = self._free[pool]
        position = bisect_left(free, (size, 0))
        if position == len(free):
            return None
        _, number = free.pop(position)
        return self._blocks[number]

    def _new_segment(self, size: int, pool: int) -> Block:
        end = self._ends[pool]
        if self._expandable and end is not None and end.free:
            # What is free at the end is used; only what is missing is added.
            self._forget(end)
            grown = -(-(size - end.size) // _LARGE_STEP) * _LARGE_STEP
            self._take(grown)
            end.size += grown
            return end
        if size <= _SMALL:
            segment = _SMALL_SEGMENT
        elif size < _MIDDLE:
            segment = _MIDDLE_SEGMENT
        else:
            segment = -(-size // _LARGE_STEP) * _LARGE_STEP
        self._take(segment)
        block = self._make(segment, pool)
        if self._expandable:
            block.before = end
            if end is not None:
                end.after = block
            self._ends[pool] = block
        return block

    def _take(self, size: int) -> None:
        if self._limit is not None and self.reserved + size > self._limit:
            self._give_back()
            if self.reserved + size > self._limit:
                raise OutOfMemoryError
        self.reserved += size
        self.peak_reserved = max(self.peak_reserved, self.reserved)

    def _give_back(self) -> None:
        for pool in (0, 1):
            for _, number in list(self._free[pool]):
                block = self._blocks[number]
                if block.before is None and block.after is None:
                    self._forget(block)
                    del self._blocks[number]
                    self.reserved -= block.size
                    if self._ends[pool] is block:
                        self._ends[pool] = None

    def _split(self, block: Block, size: int) -> None:
        rest = self._make(block.size - size, block.pool)
        rest.before, rest.after = block, block.after
        if block.after is not None:
            block.after.before = rest
        block.after = rest
        block.size = size
        if self._ends[block.pool] is block:
            self._ends[block.pool] = rest
        rest.free = True
        self._remember(rest)

    def _merge(self, block: Block, neighbour: Block) -> Block:
        first, second = (neighbour, block) if block.before is neighbour else (block, neighbour)
        first.size += second.size
        first.after = second.after
        if second.after is not None:
            second.after.before = first
        if self._ends[first.pool] is second:
            self._ends[first.pool] = first
        del self._blocks[second.number]
        first.free = True
        return first

    def _make(self, size: int, pool: int) -> Block:
        self._made += 1
        block = Block(size, pool, self._made)
        self._blocks[self._made] = block
        return block

    def _remember(self, block: Block) -> None:
        insort(self._free[block.pool], (block.size, block.number))

    def _forget(self, block: Block) -> None:
        free = self._free[block.pool]
        del free[bisect_left(free, (block.size, block.number))]
