"""Reading a small text file that a person named, whatever it turns out to be."""

import stat
from pathlib import Path
from typing import Literal

FILE_LIMIT = 1 << 20
"""Bytes; a training config has a few thousand."""

Problem = Literal["missing", "not_a_file", "unreadable", "too_large", "not_utf8"]


class TextFileError(Exception):
    """The file gives no text. ``line`` is where it stops being UTF-8, ``detail`` the system's word."""

    def __init__(self, problem: Problem, *, detail: str | None = None, line: int | None = None) -> None:
        super().__init__(problem)
        self.problem: Problem = problem
        self.detail = detail
        self.line = line


def read_text_file(path: Path, limit: int = FILE_LIMIT) -> str:
    """The text of a UTF-8 file of at most ``limit`` bytes, without its byte order mark.

    A pipe or a device would never end, so only a regular file is read.

    Raises:
        TextFileError: there is no such text.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise TextFileError("not_a_file")
        with path.open("rb") as file:
            data = file.read(limit + 1)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise TextFileError("missing") from error
    except OSError as error:
        raise TextFileError("unreadable", detail=error.strerror) from error
    except ValueError as error:  # a NUL in the name
        raise TextFileError("missing") from error
    if len(data) > limit:
        raise TextFileError("too_large")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise TextFileError("not_utf8", line=data.count(b"\n", 0, error.start) + 1) from error
