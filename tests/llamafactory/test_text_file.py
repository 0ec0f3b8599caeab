"""Files that a person names and that turn out to be something else."""

import os
from pathlib import Path

import pytest

from tui.llamafactory.text_file import FILE_LIMIT, TextFileError, read_text_file


def test_a_byte_order_mark_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_bytes(b"\xef\xbb\xbfstage: sft # \xe5\xbe\xae\xe8\xb0\x83\n")
    assert read_text_file(path) == "stage: sft # 微调\n"


def test_what_is_no_text_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").write_text("")
    (tmp_path / "full").write_bytes(b"x" * FILE_LIMIT)
    (tmp_path / "large").write_bytes(b"x" * (FILE_LIMIT + 1))
    (tmp_path / "gbk").write_bytes("# 第一行\n# 微调\n".encode("gbk"))
    assert len(read_text_file(tmp_path / "full")) == FILE_LIMIT
    for name, problem in {
        "pipe": "not_a_file",
        ".": "not_a_file",
        "missing": "missing",
        "file/below": "missing",
        "nul\0": "missing",
        "n" * 300: "unreadable",
        "large": "too_large",
        "gbk": "not_utf8",
    }.items():
        with pytest.raises(TextFileError) as caught:
            read_text_file(tmp_path / name)
        assert caught.value.problem == problem, name


def test_where_it_stops_being_utf8(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"one\ntwo\nthree \xff\n")
    with pytest.raises(TextFileError) as caught:
        read_text_file(tmp_path / "a")
    assert caught.value.line == 3
