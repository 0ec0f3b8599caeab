import ctypes
import os
from pathlib import Path

import pytest

from tui.llamafactory.tail import HEAD, READ_LIMIT, TAIL, LogTail, Piece

BLOCK = 1 << 16


def free(path: Path, start: int, length: int) -> None:
    """Free a part of a file in place, as the keeper of a big log does."""
    punch_and_keep_size = 3
    file = os.open(path, os.O_RDWR)
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        done = libc.fallocate(file, punch_and_keep_size, ctypes.c_long(start), ctypes.c_long(length))
        if done != 0:
            pytest.skip("this file system cannot free a part of a file")
    finally:
        os.close(file)


def test_only_what_is_new(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_bytes(b"one\n")
    with LogTail(log) as tail:
        assert tail.read() == Piece(b"one\n")
        assert tail.read() == Piece(b"")
        with log.open("ab") as file:
            file.write(b"two")
        assert tail.read() == Piece(b"two")
        assert not tail.missing


def test_a_log_that_comes_later_and_goes(tmp_path: Path) -> None:
    log = tmp_path / "none" / "train.log"
    with LogTail(log) as tail:
        assert tail.read() == Piece(b"")
        assert tail.missing
        assert tail.changed_at is None
        log.parent.mkdir()
        log.write_bytes(b"one\n")
        assert tail.read() == Piece(b"one\n")
        with log.open("ab") as file:
            log.unlink()
            file.write(b"still open\n")
            file.flush()
            assert tail.read() == Piece(b"still open\n"), "a deleted file that is written to is still read"
        assert tail.read() == Piece(b"")
        assert tail.missing


def test_a_replaced_log_is_read_to_its_end_first(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_bytes(b"old ")
    with LogTail(log) as tail:
        tail.read()
        with log.open("ab") as file:
            file.write(b"end")
        log.rename(tmp_path / "train.log.1")
        log.write_bytes(b"new")
        assert tail.read() == Piece(b"end")
        assert tail.read() == Piece(b"new", gap=True, restarted=True)
        assert tail.read() == Piece(b"")


def test_a_truncated_log_begins_anew(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_bytes(b"a long beginning\n")
    with LogTail(log) as tail:
        tail.read()
        log.write_bytes(b"short\n")
        assert tail.read() == Piece(b"short\n", gap=True, restarted=True)


def test_a_hole_is_skipped_and_told(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_bytes(b"a" * BLOCK + b"b" * 4 * BLOCK + b"c" * BLOCK)
    free(log, BLOCK, 4 * BLOCK)
    with LogTail(log) as tail:
        assert tail.read() == Piece(b"a" * BLOCK)
        assert tail.read() == Piece(b"c" * BLOCK, gap=True)
        assert tail.read() == Piece(b"")


def test_a_reader_that_the_hole_overtook(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_bytes(b"a" * BLOCK)
    with LogTail(log) as tail:
        tail.read()
        with log.open("ab") as file:
            file.write(b"b" * 4 * BLOCK + b"c" * BLOCK)
        free(log, 0, 5 * BLOCK)
        assert tail.read() == Piece(b"c" * BLOCK, gap=True)


def test_one_read_is_bounded(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_bytes(b"x" * (READ_LIMIT + 10))
    with LogTail(log) as tail:
        assert len(tail.read().data) == READ_LIMIT
        assert len(tail.read().data) == 10


def test_a_big_log_opened_late_is_read_at_its_ends(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    with log.open("wb") as file:
        file.write(b"h" * HEAD)
        file.seek(500 << 20)  # the middle costs no disk
        file.write(b"t" * TAIL)
    with LogTail(log) as tail:
        pieces = list(tail.start_late())
        assert b"".join(piece.data for piece in pieces) == b"h" * HEAD + b"t" * TAIL
        assert [piece.gap for piece in pieces] == [False, True]
        with log.open("ab") as file:
            file.write(b"live")
        assert tail.read() == Piece(b"live")


def test_a_small_log_opened_late_is_read_whole(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_bytes(b"all")
    with LogTail(log) as tail:
        assert list(tail.start_late()) == [Piece(b"all")]
        assert tail.read() == Piece(b"")


def test_what_is_no_file_is_an_error(tmp_path: Path) -> None:
    with LogTail(tmp_path) as tail, pytest.raises(OSError, match="not a regular file"):
        tail.read()
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with LogTail(fifo) as tail, pytest.raises(OSError, match="not a regular file"):
        tail.read()
