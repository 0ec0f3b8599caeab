"""Reading a JSON file that describes something: a model, an adapter, data sets, DeepSpeed."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from tui.llamafactory.text_file import FILE_LIMIT, Problem, TextFileError, read_text_file

JsonProblem = Literal[Problem, "not_json", "not_mapping"]


class JsonFileError(Exception):
    """The file gives no JSON object; ``line`` is where it stops being JSON or UTF-8."""

    def __init__(self, problem: JsonProblem, line: int | None = None) -> None:
        super().__init__(problem)
        self.problem: JsonProblem = problem
        self.line = line


def read_json_file(path: Path, limit: int = FILE_LIMIT) -> Mapping[str, object]:
    """The JSON object in a file of at most ``limit`` bytes.

    Raises:
        JsonFileError: there is none.
    """
    try:
        return parse_json_object(read_text_file(path, limit))
    except TextFileError as error:
        raise JsonFileError(error.problem, error.line) from error


def parse_json_object(text: str | bytes) -> Mapping[str, object]:
    """The JSON object that a text is.

    Raises:
        JsonFileError: it is none.
    """
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise JsonFileError("not_json", error.lineno) from error
    except (ValueError, RecursionError) as error:
        raise JsonFileError("not_json") from error
    if not isinstance(document, dict):
        raise JsonFileError("not_mapping")
    return document


def mapping_in(document: Mapping[str, object], key: str) -> Mapping[str, object]:
    """An inner object; an empty one where there is none."""
    inner = document.get(key)
    return inner if isinstance(inner, dict) else {}


def text_in(document: Mapping[str, object], key: str) -> str | None:
    """An inner text, if it is one."""
    inner = document.get(key)
    return inner if isinstance(inner, str) else None
