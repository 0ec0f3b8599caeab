"""The data sets of a training: which files they are, how many rows they have, which rows are dropped.

The rules are those of LLaMA-Factory: ``dataset_info.json`` names the file, ``num_samples`` draws that many
rows, ``max_samples`` takes the first ones, and rows without an answer are dropped when they are tokenized.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tui.facts.steps import DatasetRows
from tui.facts.unknown import UnknownReason
from tui.llamafactory.config import TrainingConfig
from tui.llamafactory.dataset_files import SUFFIXES, Deadline, Row, RowsError, count_file
from tui.llamafactory.dataset_info import INFO_FILE
from tui.llamafactory.json_file import JsonFileError, read_json_file

_INFO_LIMIT = 8 << 20
COUNT_SECONDS = 5.0
"""How long counting may take, all data sets together."""

_HUB_KEYS = ("hf_hub_url", "ms_hub_url", "om_hub_url", "script_url", "cloud_file_name")
_FILES_LIMIT = 1_000
_DEFAULT_COLUMNS = {
    "prompt": "instruction",
    "query": "input",
    "response": "output",
    "messages": "conversations",
}
_DEFAULT_TAGS = {
    "role_tag": "from",
    "content_tag": "value",
    "user_tag": "human",
    "assistant_tag": "gpt",
    "observation_tag": "observation",
    "function_tag": "function_call",
    "system_tag": "system",
}
_PREFERENCES = frozenset({"rm", "dpo"})


def dataset_names(config: TrainingConfig, key: str = "dataset") -> tuple[str, ...]:
    """The data sets that a config names: a list, or text with commas."""
    value = config.values.get(key)
    entries = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else []
    return tuple(entry.strip() for entry in entries if isinstance(entry, str) and entry.strip())


def count_rows(
    config: TrainingConfig, key: str = "dataset", deadline: Deadline | None = None
) -> tuple[DatasetRows, ...]:
    """The rows of each data set named under ``key``; what cannot be counted has its reason."""
    deadline = deadline or Deadline(COUNT_SECONDS)
    names = dataset_names(config, key)
    folder = config.dataset_dir
    if folder is None:
        return tuple(DatasetRows(name, None, unknown={"rows": "not_visible"}) for name in names)
    try:
        info = _read_info(folder)
    except RowsError as error:
        return tuple(DatasetRows(name, None, unknown={"rows": error.reason}) for name in names)
    return tuple(_dataset_rows(name, info.get(name), folder, config, deadline) for name in names)


def _read_info(folder: Path) -> Mapping[str, object]:
    try:
        return read_json_file(folder / INFO_FILE, _INFO_LIMIT)
    except JsonFileError as error:
        raise RowsError("missing_file" if error.problem == "missing" else "unreadable_file") from error


def _dataset_rows(
    name: str, entry: object, folder: Path, config: TrainingConfig, deadline: Deadline
) -> DatasetRows:
    if not isinstance(entry, dict):
        return DatasetRows(name, None, unknown={"rows": "not_reported"})
    limit = config.whole("max_samples")
    drawn = entry.get("num_samples")
    drawn = drawn if type(drawn) is int and drawn > 0 else None
    try:
        files = _files(entry, folder)
    except RowsError as error:
        return DatasetRows(name, None, unknown={"rows": error.reason})
    keeps = row_test(entry, config.stage or "sft")
    rows, kept = 0, 0
    checked = keeps is not None
    try:
        for path in files:
            left = None if limit is None or drawn is not None else max(0, limit - rows)
            found = count_file(path, keeps, left, deadline)
            rows += found.rows
            kept += found.kept or 0
            checked = checked and found.kept is not None
    except RowsError as error:
        return DatasetRows(name, None, path=str(files[0]), unknown={"rows": error.reason})
    total = rows if drawn is None else drawn
    taken = total if limit is None else min(total, limit)
    usable = None
    if checked and (kept == rows or drawn is None):
        usable = taken if kept == rows else kept
    return DatasetRows(name, taken, usable, path=str(files[0]))


def _files(entry: Mapping[str, object], folder: Path) -> list[Path]:
    if any(key in entry for key in _HUB_KEYS):
        raise RowsError("not_visible")
    written = entry.get("file_name")
    if not isinstance(written, str) or "\0" in written or not written:
        raise RowsError("not_reported")
    path = folder / written
    try:
        files = sorted(path.iterdir())[:_FILES_LIMIT] if path.is_dir() else [path]
    except OSError as error:
        raise RowsError("unreadable_file") from error
    if not files:
        raise RowsError("missing_file")
    if any(each.suffix[1:] not in SUFFIXES for each in files):
        raise RowsError("not_supported")
    return files


def row_test(entry: Mapping[str, object], stage: str) -> Callable[[Row], bool] | None:
    """Whether LLaMA-Factory will train on a row of this data set; ``None`` where that is not known here.

    Pre-training and PPO use prompts only and drop nothing.
    """
    if stage in {"pt", "ppo"}:
        return lambda _row: True
    columns = _names(entry, "columns", _DEFAULT_COLUMNS)
    formatting = entry.get("formatting", "alpaca")
    if formatting == "alpaca":
        return lambda row: _alpaca_row_is_kept(row, columns, stage)
    if formatting == "sharegpt":
        tags = _Tags.of(_names(entry, "tags", _DEFAULT_TAGS))
        ranking = entry.get("ranking") is True
        return lambda row: _conversation_is_kept(row, columns, tags, stage, ranking=ranking)
    return None


def _names(entry: Mapping[str, object], key: str, defaults: Mapping[str, str]) -> Mapping[str, object]:
    """Given names replace all defaults, also of those that are not given."""
    given = entry.get(key)
    return given if isinstance(given, dict) else defaults


def _alpaca_row_is_kept(row: Row, columns: Mapping[str, object], stage: str) -> bool:
    if stage in _PREFERENCES:
        return all(isinstance(_cell(row, columns, name), str) for name in ("chosen", "rejected"))
    if stage == "kto":
        return isinstance(_cell(row, columns, "kto_tag"), bool)
    return isinstance(_cell(row, columns, "response"), str)


@dataclass(frozen=True, slots=True)
class _Tags:
    role: object
    system: object
    turns: tuple[tuple[object, ...], tuple[object, ...]] = field(default=((), ()))

    @classmethod
    def of(cls, tags: Mapping[str, object]) -> "_Tags":
        asks = (tags.get("user_tag"), tags.get("observation_tag"))
        answers = (tags.get("assistant_tag"), tags.get("function_tag"))
        return cls(tags.get("role_tag"), tags.get("system_tag"), (asks, answers))


def _conversation_is_kept(
    row: Row, columns: Mapping[str, object], tags: _Tags, stage: str, *, ranking: bool
) -> bool:
    messages = _cell(row, columns, "messages")
    if not isinstance(messages, list) or not all(isinstance(message, dict) for message in messages):
        return False
    roles = [message.get(tags.role) for message in messages]
    if tags.system and roles[:1] == [tags.system]:
        roles = roles[1:]
    if not roles or any(role not in tags.turns[place % 2] for place, role in enumerate(roles)):
        return False
    if (len(roles) % 2 == 0) == ranking:
        return False
    if stage in _PREFERENCES:
        return all(isinstance(_cell(row, columns, name), dict) for name in ("chosen", "rejected"))
    return stage != "kto" or isinstance(_cell(row, columns, "kto_tag"), bool)


def _cell(row: Row, columns: Mapping[str, object], name: str) -> object:
    column = columns.get(name)
    return row.get(column) if isinstance(column, str) else None


def first_unknown(datasets: Iterable[DatasetRows]) -> UnknownReason | None:
    """Why the rows of these data sets together are unknown; ``None`` if they are known."""
    for dataset in datasets:
        if dataset.rows is None:
            return dataset.unknown.get("rows", "not_reported")
    return None


def total_rows(datasets: Sequence[DatasetRows]) -> int | None:
    """All rows together."""
    rows = [dataset.rows for dataset in datasets]
    return sum(count for count in rows if count is not None) if rows and None not in rows else None
