"""The middle of a log is given back while somebody goes on writing it."""

import errno
import os
from pathlib import Path

import pytest

from tui.jobs import logcap
from tui.jobs.logcap import LogCap

KIB = 1024


def test_the_beginning_and_the_end_stay_and_the_middle_is_given_back(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    cap = LogCap(path, head=64 * KIB, tail=256 * KIB, slack=128 * KIB)
    assert cap.enforce() == 0
    line = b"%07d\n"
    with path.open("ab", buffering=0) as log:
        number = 0
        for _ in range(20):
            log.write(b"".join(line % (number + i) for i in range(16 * KIB)))
            number += 16 * KIB
            cap.enforce()
            assert path.stat().st_blocks * 512 <= (64 + 256 + 128 + 128 + 8) * KIB
    data = path.read_bytes()
    assert len(data) == 8 * number
    assert data[: 64 * KIB] == b"".join(line % i for i in range(8 * KIB))
    assert data[-256 * KIB :] == b"".join(line % i for i in range(number - 32 * KIB, number))
    assert set(data[64 * KIB : 2 << 20]) == {0}


def test_a_small_log_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_bytes(b"x" * (300 * KIB))
    assert LogCap(path, head=64 * KIB, tail=256 * KIB, slack=128 * KIB).enforce() == 0
    assert path.read_bytes() == b"x" * (300 * KIB)


def test_a_file_system_without_holes_is_asked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "train.log"
    path.write_bytes(b"x" * (2 << 20))
    asked: list[int] = []

    def refuse(descriptor: int, offset: int, length: int) -> None:
        asked.append(length)
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))

    monkeypatch.setattr(logcap, "punch_hole", refuse)
    cap = LogCap(path, head=KIB, tail=KIB, slack=KIB)
    assert (cap.enforce(), cap.enforce(), len(asked)) == (0, 0, 1)
    assert not cap.supported
