"""Any bytes, in any pieces: no exception, the same facts, linear time.

``LLAMAHERD_EXAMPLES=200000`` asks for more examples than a usual test run has time for.
"""

import os
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.training_logs import PLAN_BLOCK, bar, facts_of

from tui.facts.training import RunLog
from tui.llamafactory.console import FRAGMENT_LIMIT, ConsoleParser

EXAMPLES = int(os.environ.get("LLAMAHERD_EXAMPLES", "300"))

NASTY = [
    b"Traceback (most recent call last):\n",
    b'  File "a.py", line 1, in training_step\n',
    b"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n",
    b"[rank1]: KeyboardInterrupt\n",
    b"***** eval metrics *****\n  eval_runtime = 0:00:02.80\n",
    b"{'loss': '1e999', 'epoch': 'nan'}\n",
    b"{'eval_loss': 1, 'eval_runtime': -inf, 'epoch': 1}\n",
    b"[INFO|x] 2026-99-99 99:99:99 >> \n***** Running Evaluation *****\n",
    b"[INFO|x] 9999-12-31 23:59:59,999 >> Saving model checkpoint to a/checkpoint-999999999999\n",
    b"  5%|#| 5/100 [99:99<?, ?it/s]\x1b[A",
    b" 5%|#| 999999999999/100 [::::<?, ?it/s]",
    b"Root Cause (first observed failure):\n  rank      : 1 (x)\n  exitcode  : -9 (pid: 1)\n",
    PLAN_BLOCK,
    bar(5, 10),
    bar(7, 3),
    b"\r",
    b"\n",
    b"\0",
    b"\x1b[",
    b"1%|" * 50,
]
bytes_of_any_kind = st.lists(st.one_of(st.sampled_from(NASTY), st.binary(max_size=40)), max_size=30)


@given(bytes_of_any_kind, st.lists(st.integers(1, 50), min_size=1, max_size=8))
@settings(max_examples=EXAMPLES, deadline=None)
def test_any_bytes_in_any_pieces(parts: list[bytes], sizes: list[int]) -> None:
    data = b"".join(parts)
    parser = ConsoleParser()
    start = index = 0
    while start < len(data):
        size = sizes[index % len(sizes)]
        parser.feed(data[start : start + size], 3.0)
        assert isinstance(parser.facts(), RunLog)
        start, index = start + size, index + 1
    # repr, since nan is not equal to itself
    assert repr(parser.facts()) == repr(facts_of(data, at=3.0))


@pytest.mark.parametrize(
    "unit",
    [b"1", b"9%|", b"9%|x", b"['", b"{'a': ", b"[INFO|", b"[INFO|a] b", b">> ", b"\x1b[", b"1/", b"a.", b"'"],
)
def test_time_is_linear_in_the_bytes(unit: bytes) -> None:
    """A line of 64 KiB of one kind: a pattern that tries every start against every end takes minutes."""
    parser = ConsoleParser()
    began = time.process_time()
    parser.feed(unit * (FRAGMENT_LIMIT // len(unit)) + b"\n", 0.0)
    assert parser.facts().step is None
    assert time.process_time() - began < 5.0
