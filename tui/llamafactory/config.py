"""Training configs: read, overridden, written as the copy that LLaMA-Factory gets.

The user's file is never written. The copy is always YAML: LLaMA-Factory 0.9.5 fails on any ``.json``.
It must mean to LLaMA-Factory exactly what the file with the overrides would have meant, so the rules of
OmegaConf are followed, which reads both there.
"""

import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from tui.facts.errors import EXIT_USAGE, LlamaherdError
from tui.facts.secrets import MASK, is_secret_name, mask_text
from tui.llamafactory.argv import CONFIG_SUFFIXES
from tui.llamafactory.text_file import FILE_LIMIT, TextFileError, read_text_file
from tui.llamafactory.yaml_text import (
    Document,
    Key,
    Value,
    YamlError,
    dump_yaml,
    first_beyond_limits,
    parse_yaml,
)

K = TypeVar("K", bound=Key)

_DEFAULT_DATASET_DIR = "data"
_NOT_A_FOLDER = ("ONLINE", "REMOTE:")
_MISSING = "???"  # OmegaConf's mark for a value that is still to come; it replaces nothing

# The names of LLaMA-Factory's settings; OmegaConf would also take brackets and escapes, which none needs.
_OVERRIDE = re.compile(r"([A-Za-z_][\w-]*(?:\.[A-Za-z_][\w-]*){0,9})=(.*)", re.DOTALL | re.ASCII)
_OVERRIDE_LIMIT = 10_000
_SHOWN = 200
_FLOAT_BITS = 1023


@dataclass(frozen=True, slots=True)
class TrainingConfig:
    """A training config with its overrides.

    ``path`` is the user's file, or the folder of a command that needs none. ``cwd`` is the folder that
    LLaMA-Factory runs in; relative paths mean it. ``lines`` tells where each key stands in the file (none
    for JSON and for overridden keys).
    """

    values: Mapping[str, Value]
    path: Path
    cwd: Path | None = None
    lines: Mapping[str, int] = field(default_factory=dict)

    @property
    def stage(self) -> str | None:
        """``pt``, ``sft``, ``rm``, ``ppo``, ``dpo``, ``kto``; as written."""
        return self.text("stage")

    @property
    def do_train(self) -> bool | None:
        """Whether it trains at all; absent means no."""
        return self.flag("do_train")

    @property
    def max_steps(self) -> int | None:
        """The step to stop at, above any number of epochs; -1 means none."""
        return self.whole("max_steps")

    @property
    def logging_steps(self) -> float | None:
        """Steps between two log lines, or below 1 a fraction of all steps."""
        return self.number("logging_steps")

    @property
    def save_steps(self) -> float | None:
        """Steps between two saves, or below 1 a fraction of all steps."""
        return self.number("save_steps")

    @property
    def eval_steps(self) -> float | None:
        """Steps between two evaluations, or below 1 a fraction of all steps."""
        return self.number("eval_steps")

    @property
    def output_dir(self) -> Path | None:
        """Absolute once resolved; ``~`` is the home folder here and only here, as in transformers."""
        written = self.text("output_dir")
        # Unlike Path.expanduser, this leaves the ~ of an unknown user as it is.
        return self._placed(os.path.expanduser(written)) if written else None  # noqa: PTH111

    @property
    def dataset_dir(self) -> Path | None:
        """The folder of ``dataset_info.json``; ``None`` where the data set comes from a hub."""
        written = self.values.get("dataset_dir", _DEFAULT_DATASET_DIR)
        if not isinstance(written, str) or not written or written.startswith(_NOT_A_FOLDER):
            return None
        return self._placed(written)

    @property
    def deepspeed(self) -> Path | None:
        """The DeepSpeed file; ``None`` also where its settings are written out in the config."""
        written = self.text("deepspeed")
        return self._placed(written) if written else None

    def text(self, key: str) -> str | None:
        """The value if it is text."""
        value = self.values.get(key)
        return value if isinstance(value, str) else None

    def flag(self, key: str) -> bool | None:
        """The value if it is true or false."""
        value = self.values.get(key)
        return value if isinstance(value, bool) else None

    def number(self, key: str) -> float | None:
        """The value if it is a number; text that looks like one is not, nor what no float can hold."""
        value = self.values.get(key)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        return value if isinstance(value, float) or value.bit_length() <= _FLOAT_BITS else None

    def whole(self, key: str) -> int | None:
        """The value if it is a whole number."""
        value = self.number(key)
        return int(value) if value is not None and float(value).is_integer() else None

    def masked(self) -> dict[str, Value]:
        """The values for showing: secrets are hidden, by the name of their key and by their shape."""
        return {key: _masked(value, is_secret_name(key)) for key, value in self.values.items()}

    def shown(self) -> "TrainingConfig":
        """The same config with its secrets hidden."""
        return replace(self, values=self.masked())

    def _placed(self, written: str) -> Path | None:
        if "\0" in written:
            return None
        return self.cwd / written if self.cwd is not None else Path(written)


def load_config(path: Path) -> TrainingConfig:
    """Read a ``.yaml``, ``.yml`` or ``.json`` config.

    Raises:
        LlamaherdError: ``config_missing`` (path), ``config_unreadable`` (path, and why: ``suffix`` or
            ``not_a_file``, or the system's detail), ``config_too_large`` (path, limit in bytes),
            ``config_invalid`` (path, line, column, detail), or ``config_not_mapping`` (path).
    """
    text = _read(path)
    try:
        document = _parse_json(text) if path.suffix == ".json" else parse_yaml(text)
    except YamlError as error:
        raise _invalid(path, error) from error
    if not isinstance(document.value, dict):
        raise LlamaherdError("config_not_mapping", path=str(path))
    values: dict[str, Value] = {}
    for key, value in document.value.items():
        if not isinstance(key, str):
            raise _invalid(path, YamlError(f"the key {key} is not a name", document.lines.get(str(key))))
        values[key] = value
    return TrainingConfig(values, path, lines=document.lines)


def apply_overrides(config: TrainingConfig, overrides: Sequence[str]) -> TrainingConfig:
    """The config with ``key=value`` and ``outer.inner=value`` merged in, the last one winning.

    A value is read as YAML; no value means null. A mapping is merged into a mapping; a list, and any
    other value, replaces. A list never replaces a mapping, nor a mapping a list.

    Raises:
        LlamaherdError: ``override_invalid`` with ``override`` (masked) and ``detail``.
    """
    change: dict[str, Value] = {}
    values = dict(config.values)
    for text in overrides:
        try:
            change = _merged(change, _parse_override(text))
            values = _merged(config.values, change)
        except _ShapeMismatchError as error:
            raise _bad_override(text, str(error)) from error
    lines = {key: line for key, line in config.lines.items() if key not in change}
    return replace(config, values=values, lines=lines)


def resolve(config: TrainingConfig, cwd: Path) -> TrainingConfig:
    """The config as used in ``cwd``. The values keep their relative paths: LLaMA-Factory runs there."""
    return replace(config, cwd=cwd.absolute())


def dump(config: TrainingConfig) -> str:
    """The copy that is handed to LLaMA-Factory, as YAML text. It holds secrets unmasked."""
    return dump_yaml(config.values)


def config_hash(config: TrainingConfig) -> str:
    """SHA-256 of the settings, in hexadecimal; the order of the keys does not matter."""
    return hashlib.sha256(dump_yaml(config.values, sort_keys=True).encode()).hexdigest()


class _ShapeMismatchError(ValueError):
    """A list met a mapping, which OmegaConf refuses to merge."""


def _merged(base: Mapping[K, Value], change: Mapping[K, Value]) -> dict[K, Value]:
    result = dict(base)
    for key, value in change.items():
        old = base.get(key)
        if value == _MISSING and key in base:
            continue
        if isinstance(old, dict) and isinstance(value, dict):
            result[key] = _merged(old, value)
        elif isinstance(old, dict | list) and isinstance(value, dict | list) and type(old) is not type(value):
            raise _ShapeMismatchError(f"{key}: a list and a mapping cannot be merged")
        else:
            result[key] = value
    return result


def _parse_override(text: str) -> dict[str, Value]:
    match = _OVERRIDE.fullmatch(text)
    if match is None or len(text) > _OVERRIDE_LIMIT:
        raise _bad_override(text, "not key=value")
    try:
        value = parse_yaml(match[2]).value
    except YamlError as error:
        raise _bad_override(text, error.problem) from error
    first, *inner = match[1].split(".")
    for name in reversed(inner):
        value = {name: value}
    return {first: value}


def _parse_json(text: str) -> Document:
    def mapping(pairs: list[tuple[str, Value]]) -> dict[str, Value]:
        if len({key for key, _ in pairs}) != len(pairs):
            raise YamlError("a key occurs twice")
        return dict(pairs)

    try:
        value: Value = json.loads(text, object_pairs_hook=mapping)
        json.dumps(value, ensure_ascii=False).encode()  # half a surrogate pair cannot be written
    except json.JSONDecodeError as error:
        raise YamlError(error.msg, error.lineno, error.colno) from error
    except RecursionError as error:
        raise YamlError("nested too deeply") from error
    except ValueError as error:
        raise error if isinstance(error, YamlError) else YamlError("a value that cannot be read") from error
    if first_beyond_limits(value, _parts) is not None:
        raise YamlError("too large or nested too deeply")
    return Document(value, {})


def _parts(value: Value) -> list[Value]:
    if isinstance(value, dict):
        return [*value.keys(), *value.values()]
    return value if isinstance(value, list) else []


def _read(path: Path) -> str:
    if path.suffix not in CONFIG_SUFFIXES:
        raise LlamaherdError("config_unreadable", path=str(path), why="suffix")
    try:
        return read_text_file(path)
    except TextFileError as error:
        raise _file_error(path, error) from error


def _file_error(path: Path, error: TextFileError) -> LlamaherdError:
    if error.problem == "missing":
        return LlamaherdError("config_missing", path=str(path))
    if error.problem == "too_large":
        return LlamaherdError("config_too_large", path=str(path), limit=FILE_LIMIT)
    if error.problem == "not_utf8":
        return _invalid(path, YamlError("not UTF-8 text", error.line))
    if error.detail:
        return LlamaherdError("config_unreadable", path=str(path), detail=error.detail)
    return LlamaherdError("config_unreadable", path=str(path), why=error.problem)


def _masked(value: Value, secret: bool) -> Value:
    if isinstance(value, dict):
        return {key: _masked(each, secret or is_secret_name(str(key))) for key, each in value.items()}
    if isinstance(value, list):
        return [_masked(each, secret) for each in value]
    if isinstance(value, bool) or value is None:
        return value
    if secret:
        return MASK
    return mask_text(value) if isinstance(value, str) else value


def _invalid(path: Path, error: YamlError) -> LlamaherdError:
    return LlamaherdError(
        "config_invalid", path=str(path), line=error.line, column=error.column, detail=error.problem
    )


def _bad_override(text: str, problem: str) -> LlamaherdError:
    shown = mask_text(text[:_SHOWN])
    return LlamaherdError("override_invalid", exit_code=EXIT_USAGE, override=shown, detail=problem)
