"""A read that never answers."""

import os
import time
from pathlib import Path

from tui.jobs.deadline import within


def test_an_answer_in_time_and_one_that_never_comes(tmp_path: Path) -> None:
    assert within(5.0, lambda: "answer") == "answer"
    assert within(5.0, lambda: None) is None
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    began = time.monotonic()
    assert within(0.1, fifo.read_bytes) is None
    assert time.monotonic() - began < 10
    with fifo.open("wb"):  # let the reader go
        pass
