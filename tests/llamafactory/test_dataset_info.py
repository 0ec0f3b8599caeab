"""Data sets by their names."""

import json
from pathlib import Path

import pytest

from tui.llamafactory.dataset_info import DatasetProblem, read_datasets


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "rows.json").write_text("[1]")
    (tmp_path / "rows.bin").write_text("x")
    (tmp_path / "empty.jsonl").write_text("")
    for name in ("many", "mixed", "void"):
        (tmp_path / name).mkdir()
    (tmp_path / "many" / "a.jsonl").write_text("{}")
    (tmp_path / "many" / "b.json").write_text("[]")
    (tmp_path / "mixed" / "a.json").write_text("[]")
    (tmp_path / "mixed" / "b.csv").write_text("a")
    entries = {
        name: {"file_name": name} for name in ("rows.json", "rows.bin", "empty.jsonl", "many", "mixed")
    }
    entries |= {"void": {"file_name": "void"}, "gone": {"file_name": "gone.json"}, "no-file": {}}
    more = {"text": "x", "hub": {"hf_hub_url": "a/b"}, "pairs": {"file_name": "rows.json", "ranking": True}}
    (tmp_path / "dataset_info.json").write_text(json.dumps({**entries, **more}))
    return tmp_path


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("rows.json", None),
        ("many", None),
        ("pairs", None),
        ("hub", None),
        ("rows.bin", "file_type"),
        ("mixed", "mixed_types"),
        ("empty.jsonl", "empty"),
        ("void", "empty"),
        ("gone", "file_missing"),
        ("no-file", "malformed"),
        ("text", "malformed"),
        ("zzz", "undefined"),
    ],
)
def test_each_kind_of_entry(data: Path, name: str, problem: DatasetProblem | None) -> None:
    (dataset,) = read_datasets(data, [name]).datasets
    assert dataset.problem == problem


def test_what_else_is_told(data: Path) -> None:
    info = read_datasets(data, ["pairs", "hub"])
    assert [dataset.ranking for dataset in info.datasets] == [True, False]
    assert [dataset.origin for dataset in info.datasets] == ["file", "hub"]
    assert info.datasets[0].size == 3
    assert "many" in info.names


def test_a_file_that_is_none(tmp_path: Path) -> None:
    assert read_datasets(tmp_path, ["a"]).problem == "missing"
    path = tmp_path / "dataset_info.json"
    path.write_text("{\n  'a'")
    assert (read_datasets(tmp_path, ["a"]).problem, read_datasets(tmp_path, ["a"]).line) == ("not_json", 2)
    path.write_text("[]")
    assert read_datasets(tmp_path, ["a"]).problem == "not_mapping"
    path.write_bytes(b"\xff\xfe")
    assert read_datasets(tmp_path, ["a"]).problem == "not_utf8"
    path.write_text("[" * 100_000)
    assert read_datasets(tmp_path, ["a"]).problem == "not_json"
    path.unlink()
    path.mkdir()
    assert read_datasets(tmp_path, ["a"]).problem == "not_a_file"
