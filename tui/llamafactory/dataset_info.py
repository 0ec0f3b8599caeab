"""The data sets that a config names, as ``dataset_info.json`` and the files beside it have them.

The order of the origins and the file types are LLaMA-Factory's (``data/parser.py``, ``data/loader.py``).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tui.llamafactory.json_file import JsonFileError, JsonProblem, read_json_file, text_in

INFO_FILE = "dataset_info.json"

Origin = Literal["file", "hub", "script", "cloud"]
DatasetProblem = Literal["undefined", "malformed", "file_missing", "file_type", "mixed_types", "empty"]

_HUB_KEYS = ("hf_hub_url", "ms_hub_url", "om_hub_url")
_TYPES = {
    "arrow": "arrow",
    "csv": "csv",
    "json": "json",
    "jsonl": "json",
    "parquet": "parquet",
    "txt": "text",
}
_LIMIT = 8 << 20
_FILES = 10_000


@dataclass(frozen=True, slots=True)
class Dataset:
    """One data set. ``path`` is its file or folder, ``size`` the bytes of it; ``ranking``: it holds pairs
    of a better and a worse answer, which the stages rm and dpo need and no other takes.
    """

    name: str
    problem: DatasetProblem | None = None
    origin: Origin = "file"
    path: str | None = None
    size: int | None = None
    ranking: bool = False


@dataclass(frozen=True, slots=True)
class DatasetInfo:
    """What the folder of data sets says. ``names``: everything it defines."""

    path: str
    problem: JsonProblem | None = None
    line: int | None = None
    names: tuple[str, ...] = ()
    datasets: tuple[Dataset, ...] = ()


def read_datasets(folder: Path, names: Sequence[str]) -> DatasetInfo:
    """Look up data sets by name. Never raises for what the files hold."""
    path = folder / INFO_FILE
    try:
        document = read_json_file(path, _LIMIT)
    except JsonFileError as error:
        return DatasetInfo(str(path), error.problem, error.line)
    datasets = tuple(_dataset(folder, name, document) for name in names)
    return DatasetInfo(str(path), names=tuple(document), datasets=datasets)


def _dataset(folder: Path, name: str, document: Mapping[str, object]) -> Dataset:
    if name not in document:
        return Dataset(name, "undefined")
    entry = document[name]
    if not isinstance(entry, dict):
        return Dataset(name, "malformed")
    ranking = entry.get("ranking") is True
    if any(key in entry for key in _HUB_KEYS):
        return Dataset(name, origin="hub", ranking=ranking)
    if "script_url" in entry:
        return Dataset(name, origin="script", ranking=ranking)
    if "cloud_file_name" in entry:
        return Dataset(name, origin="cloud", ranking=ranking)
    written = text_in(entry, "file_name")
    if not written or "\0" in written:
        return Dataset(name, "malformed", ranking=ranking)
    return _file(name, folder / written, ranking=ranking)


def _file(name: str, path: Path, *, ranking: bool) -> Dataset:
    try:
        if path.is_dir():
            files = [file for file, _ in zip(sorted(path.iterdir()), range(_FILES), strict=False)]
        elif path.is_file():
            files = [path]
        else:
            return Dataset(name, "file_missing", path=str(path), ranking=ranking)
        size = sum(file.stat().st_size for file in files)
    except OSError:
        return Dataset(name, "file_missing", path=str(path), ranking=ranking)
    types = {_TYPES.get(file.suffix[1:]) for file in files}
    problem: DatasetProblem | None = None
    if not size:
        problem = "empty"
    elif types == {None}:
        problem = "file_type"
    elif len(types) > 1:
        problem = "mixed_types"
    return Dataset(name, problem, path=str(path), size=size, ranking=ranking)
