"""What is worth reading of very many fragments that arrived at once.

Nearly all of a long log is bars and loss records that repeat each other. Read a thousand at a time they
still tell speed and curve; read all, a reader that opens a big log late, or follows a fast one, is busy.
What follows a record (the bar that tells its step) and whatever is neither of the two always stays.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby

_BARS = 512
_RECORDS = 1024
_LAST = 2


def worth_reading(fragments: Sequence[bytes]) -> Iterator[bytes]:
    """The fragments without most of the repeating ones where they are many, in their order."""
    if len(fragments) <= _BARS:
        yield from fragments
        return
    for repeats, group in groupby(fragments, _repeats):
        run = list(group)
        yield from _thinned(run) if repeats and len(run) > _BARS else run


def _repeats(fragment: bytes) -> bool:
    """A training bar without any other text, or the record of a finite loss."""
    if fragment[3:5] == b"%|":
        return fragment.endswith((b"it/s]", b"s/it]"))
    return fragment.startswith(b"{'loss'") and b"nan" not in fragment and b"inf" not in fragment


def _thinned(run: list[bytes]) -> list[bytes]:
    records = [index for index, fragment in enumerate(run) if fragment.startswith(b"{")]
    kept = {*range(0, len(run), len(run) // _BARS), *range(len(run) - _LAST, len(run))}
    kept.difference_update(records)
    for index in records[:: len(records) // _RECORDS + 1]:
        kept.update((index, index + 1))
    return [run[index] for index in sorted(kept) if index < len(run)]
