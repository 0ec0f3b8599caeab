"""Rows of a data file: counted, and read one by one where that is cheap; always within a deadline.

The suffix decides, as in LLaMA-Factory: ``.json`` and ``.jsonl`` are one kind, a list or one object a
line. Large lists are counted by their brackets, piece by piece, so that no file is too large to open.
"""

import csv
import json
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tui.facts.unknown import UnknownReason
from tui.llamafactory.parquet import parquet_rows

Row = dict[str, object]

SUFFIXES = frozenset({"arrow", "csv", "json", "jsonl", "parquet", "txt"})
"""What LLaMA-Factory loads from a file."""

_LOADED_LIMIT = 64 << 20  # a list up to this size is loaded whole, some 400 MB for a moment
_LINE_LIMIT = 16 << 20
_PIECE = 1 << 20
_LOOK_AT_CLOCK = 256
_TOKEN = re.compile(rb'"|[\[{]|[\]}]')
_STRING_END = re.compile(rb'[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)


class RowsError(Exception):
    """The rows cannot be counted; ``reason`` says why."""

    def __init__(self, reason: UnknownReason) -> None:
        super().__init__(reason)
        self.reason: UnknownReason = reason


@dataclass(frozen=True, slots=True)
class FileRows:
    """``kept``: how many of the first ``limit`` rows pass the test; ``None``: they were not looked into."""

    rows: int
    kept: int | None


class Deadline:
    """A moment on the monotonic clock that must not be passed."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._end = clock() + seconds

    def check(self) -> None:
        """Raises: RowsError: ``timed_out``."""
        if self._clock() > self._end:
            raise RowsError("timed_out")


def count_file(
    path: Path, keeps: Callable[[Row], bool] | None, limit: int | None, deadline: Deadline
) -> FileRows:
    """The rows of one data file.

    Args:
        path: The file.
        keeps: Whether a row is one to train on; ``None``: do not look into rows.
        limit: Only so many rows are tested; all are counted.
        deadline: For the whole.

    Raises:
        RowsError: why the rows are unknown.
    """
    try:
        rows = _rows_of(path, deadline) if keeps is not None else None
        if rows is None:
            return FileRows(_count(path, deadline), None)
        return _tested(rows, keeps or bool, limit, deadline)
    except FileNotFoundError as error:
        raise RowsError("missing_file") from error
    except PermissionError as error:
        raise RowsError("no_permission") from error
    except (OSError, ValueError, RecursionError, csv.Error) as error:
        raise RowsError("unreadable_file") from error


def _tested(
    rows: Iterator[Row], keeps: Callable[[Row], bool], limit: int | None, deadline: Deadline
) -> FileRows:
    count = kept = 0
    for row in rows:
        if limit is None or count < limit:
            kept += keeps(row)
        count += 1
        if count % _LOOK_AT_CLOCK == 0:
            deadline.check()
    return FileRows(count, kept)


def _rows_of(path: Path, deadline: Deadline) -> Iterator[Row] | None:
    """The rows one by one; ``None`` where only counting is cheap."""
    suffix = path.suffix[1:]
    if suffix == "csv":
        return _csv_rows(path)
    if suffix not in {"json", "jsonl"}:
        return None
    if not _is_list(path):
        return _json_lines(path)
    if path.stat().st_size > _LOADED_LIMIT:
        return None
    value = json.loads(path.read_bytes())
    deadline.check()
    return (row if isinstance(row, dict) else {} for row in value)


def _count(path: Path, deadline: Deadline) -> int:
    suffix = path.suffix[1:]
    if suffix == "parquet":
        return parquet_rows(path)
    if suffix == "txt":
        return sum(1 for _ in _lines(path, deadline, blank=True))
    if suffix == "csv":
        return sum(1 for _ in _csv_rows(path))
    if suffix not in {"json", "jsonl"}:
        raise RowsError("not_supported")
    if not _is_list(path):
        return sum(1 for _ in _lines(path, deadline))
    return _count_list(path, deadline)


def _is_list(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4096).lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"[")


def _json_lines(path: Path) -> Iterator[Row]:
    with path.open("rb") as file:
        for line in iter(lambda: file.readline(_LINE_LIMIT), b""):
            if not line.isspace():
                row = json.loads(line)
                yield row if isinstance(row, dict) else {}


def _csv_rows(path: Path) -> Iterator[Row]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        yield from csv.DictReader(file)


def _lines(path: Path, deadline: Deadline, *, blank: bool = False) -> Iterator[None]:
    """Once for every line, without the blank ones unless they count; a line may be of any length."""
    with path.open("rb") as file:
        filled = False
        for seen, piece in enumerate(iter(lambda: file.readline(_PIECE), b"")):
            filled = filled or blank or not piece.isspace()
            if piece.endswith(b"\n"):
                if filled:
                    yield None
                filled = False
            if seen % _LOOK_AT_CLOCK == 0:
                deadline.check()
        if filled:
            yield None


def _count_list(path: Path, deadline: Deadline) -> int:
    """The objects directly inside the outermost list, found by their brackets outside of strings."""
    rows = depth = 0
    in_string = False
    rest = b""
    with path.open("rb") as file:
        for piece in iter(lambda: file.read(_PIECE), b""):
            deadline.check()
            data, position = rest + piece, 0
            rest = b""
            while position < len(data):
                if in_string:
                    end = _STRING_END.match(data, position)
                    if end is None:
                        # Only an escape that is cut in two has to wait for the next piece.
                        rest = b"\\" if _ends_in_escape(data, position) else b""
                        break
                    in_string, position = False, end.end()
                    continue
                token = _TOKEN.search(data, position)
                if token is None:
                    break
                position = token.end()
                mark = token[0]
                if mark == b'"':
                    in_string = True
                elif mark in b"[{":
                    rows += mark == b"{" and depth == 1
                    depth += 1
                else:
                    depth -= 1
    if depth != 0 or in_string:
        raise RowsError("unreadable_file")
    return rows


def _ends_in_escape(data: bytes, start: int) -> bool:
    tail = data[start:]
    return (len(tail) - len(tail.rstrip(b"\\"))) % 2 == 1
