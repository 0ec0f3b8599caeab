"""Rows of data sets: what LLaMA-Factory would load, and what it would drop."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from tui.facts.steps import DatasetRows
from tui.llamafactory.config import TrainingConfig
from tui.llamafactory.dataset_files import Deadline, FileRows, RowsError, count_file
from tui.llamafactory.datasets import count_rows, dataset_names, row_test

ROW = {"instruction": "a", "input": "", "output": "b"}
LIST_LIMIT = 64 << 20


def rows_of(folder: Path, entry: object, **values: Any) -> DatasetRows:
    (folder / "dataset_info.json").write_text(json.dumps({"x": entry}))
    config = TrainingConfig({"dataset": "x", "dataset_dir": ".", **values}, folder / "t.yaml", cwd=folder)
    (rows,) = count_rows(config)
    return rows


def count(path: Path) -> FileRows:
    return count_file(path, None, None, Deadline(20))


@pytest.mark.parametrize(
    ("name", "text", "rows"),
    [
        ("a.json", json.dumps([ROW] * 3), 3),
        ("a.json", json.dumps([ROW] * 3, indent=2), 3),
        ("a.json", "\ufeff" + json.dumps([ROW]), 1),
        ("a.json", "[]", 0),
        ("a.json", json.dumps(ROW) + "\n" + json.dumps(ROW), 2),
        ("a.jsonl", json.dumps(ROW) + "\n\n  \n" + json.dumps(ROW) + "\n", 2),
        ("a.jsonl", "", 0),
        ("a.csv", 'instruction,output\na,"b\n\nc"\nd,e\n', 2),
        ("a.txt", "one\n\nthree", 3),
    ],
)
def test_rows_of_every_kind_of_file(tmp_path: Path, name: str, text: str, rows: int) -> None:
    (tmp_path / name).write_text(text)
    assert count(tmp_path / name).rows == rows


@pytest.mark.parametrize("indent", [None, 1])
def test_brackets_and_quotes_inside_strings_do_not_count(tmp_path: Path, indent: int | None) -> None:
    odd = ["}{][", '"', "\\", '\\"{', "\\\\", "line\nbreak {", "汉字{"]
    rows = [{"instruction": text, "output": {"deep": [{"er": text}]}} for text in odd] * 50
    path = tmp_path / "a.json"
    path.write_text(json.dumps(rows, indent=indent, ensure_ascii=False))
    assert count(path).rows == len(rows)


def test_a_piece_may_end_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps([{"a": '\\"{[', "b": ["}", {"c": "\\\\"}]}] * 4))
    for size in range(1, 40):
        monkeypatch.setattr("tui.llamafactory.dataset_files._PIECE", size)
        assert count(path).rows == 4, size


@pytest.mark.parametrize("text", ["[{", '[{"a": "b', "[[]]]", "[1, 2"])
def test_a_list_that_does_not_end_is_unreadable(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(RowsError) as error:
        count(tmp_path / "a.json")
    assert error.value.reason == "unreadable_file"


def test_counting_ends_with_its_time(tmp_path: Path) -> None:
    path = tmp_path / "huge.json"
    with path.open("wb") as file:
        file.write(b"[")
        file.truncate(10_000_000_000)  # a hole: it takes no room and would be read for minutes
    began = time.monotonic()
    with pytest.raises(RowsError) as error:
        count_file(path, lambda _row: True, None, Deadline(0.3))
    assert error.value.reason == "timed_out"
    assert time.monotonic() - began < 5


def test_a_huge_data_set_is_unknown_with_its_reason(tmp_path: Path) -> None:
    path = tmp_path / "huge.jsonl"
    with path.open("wb") as file:
        file.truncate(10_000_000_000)
    (tmp_path / "dataset_info.json").write_text(json.dumps({"x": {"file_name": "huge.jsonl"}}))
    config = TrainingConfig({"dataset": "x", "dataset_dir": "."}, tmp_path / "t.yaml", cwd=tmp_path)
    (rows,) = count_rows(config, deadline=Deadline(0.2))
    assert rows.rows is None
    assert rows.unknown["rows"] in {"timed_out", "unreadable_file"}


def test_rows_that_would_be_dropped_are_counted(tmp_path: Path) -> None:
    bad: list[dict[str, object]] = [{"instruction": "a"}, {"instruction": "a", "output": None}]
    (tmp_path / "a.json").write_text(json.dumps([ROW] * 5 + bad))
    assert rows_of(tmp_path, {"file_name": "a.json"}) == DatasetRows("x", 7, 5, str(tmp_path / "a.json"))
    assert rows_of(tmp_path, {"file_name": "a.json"}, stage="pt").usable == 7
    assert rows_of(tmp_path, {"file_name": "a.json"}, max_samples=5).usable == 5
    assert rows_of(tmp_path, {"file_name": "a.json", "num_samples": 9}).usable is None


def test_names_that_are_given_replace_all_defaults(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps([ROW]))
    entry = {"file_name": "a.json", "columns": {"prompt": "instruction"}}
    assert rows_of(tmp_path, entry).usable == 0


TURNS = [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}]


@pytest.mark.parametrize(
    ("messages", "kept"),
    [
        (TURNS, True),
        ([{"from": "system", "value": "s"}, *TURNS], True),
        (TURNS[:1], False),
        (TURNS[::-1], False),
        ([], False),
        (None, False),
        (["a", "b"], False),
        ([{"from": "human"}, {"from": "function_call"}], True),
    ],
)
def test_conversations_that_are_kept(messages: object, kept: bool) -> None:
    test = row_test({"formatting": "sharegpt"}, "sft")
    assert test is not None
    assert test({"conversations": messages}) is kept


def test_preferences_need_both_answers() -> None:
    columns = {"prompt": "p", "chosen": "c", "rejected": "r"}
    test = row_test({"ranking": True, "columns": columns}, "dpo")
    assert test is not None
    assert test({"p": "x", "c": "y", "r": "z"})
    assert not test({"p": "x", "c": "y", "r": None})


def test_other_formats_are_not_judged() -> None:
    assert row_test({"formatting": "openai"}, "sft") is None


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ({"file_name": "none.json"}, "missing_file"),
        ({"file_name": "a.xlsx"}, "not_supported"),
        ({"hf_hub_url": "a/b"}, "not_visible"),
        ({"file_name": 3}, "not_reported"),
        ({}, "not_reported"),
        ([], "not_reported"),
        ({"file_name": "broken.json"}, "unreadable_file"),
        ({"file_name": "broken.parquet"}, "unreadable_file"),
        ({"file_name": "a.arrow"}, "not_supported"),
        ({"file_name": "empty"}, "missing_file"),
    ],
)
def test_what_cannot_be_counted_has_its_reason(tmp_path: Path, entry: object, reason: str) -> None:
    (tmp_path / "empty").mkdir()
    for name in ("a.xlsx", "broken.json", "broken.parquet", "a.arrow"):
        (tmp_path / name).write_text("[{")
    assert rows_of(tmp_path, entry).unknown == {"rows": reason}


def test_a_folder_counts_all_its_files(tmp_path: Path) -> None:
    (tmp_path / "many").mkdir()
    for number in range(3):
        (tmp_path / "many" / f"{number}.jsonl").write_text(json.dumps(ROW) + "\n")
    assert rows_of(tmp_path, {"file_name": "many"}).rows == 3


@pytest.mark.parametrize("text", [None, "[]", "{", "null"])
def test_without_the_list_of_data_sets_nothing_is_known(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "dataset_info.json").write_text(text)
    config = TrainingConfig({"dataset": "x", "dataset_dir": "."}, tmp_path / "t.yaml", cwd=tmp_path)
    (rows,) = count_rows(config)
    assert rows.unknown["rows"] == ("missing_file" if text is None else "unreadable_file")


def test_a_hub_as_the_folder_is_not_asked(tmp_path: Path) -> None:
    config = TrainingConfig({"dataset": "x,y", "dataset_dir": "ONLINE"}, tmp_path / "t.yaml", cwd=tmp_path)
    assert [rows.unknown["rows"] for rows in count_rows(config)] == ["not_visible"] * 2


def test_names_are_a_list_or_text() -> None:
    assert dataset_names(TrainingConfig({"dataset": " a, b,"}, Path("x"))) == ("a", "b")
    assert dataset_names(TrainingConfig({"dataset": ["a", 3, "b"]}, Path("x"))) == ("a", "b")
    assert dataset_names(TrainingConfig({}, Path("x"))) == ()
