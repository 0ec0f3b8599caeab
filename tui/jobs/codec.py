"""Frozen dataclasses to JSON and back, strictly, with the standard library only (the keeper uses it)."""

import json
import types
from collections.abc import Mapping
from dataclasses import MISSING, asdict, fields, is_dataclass
from functools import cache
from typing import Any, Literal, Union, cast, get_args, get_origin, get_type_hints

from tui.facts.job import JOB_SCHEMA, JobRecord


class MalformedError(ValueError):
    """The document is not what it should be; the text says where, and what was expected."""


def record_to_json(record: JobRecord) -> bytes:
    """``job.json``: one ASCII line, so that no encoding of a path or argument can break it."""
    return json.dumps(asdict(record), ensure_ascii=True, separators=(",", ":")).encode("ascii") + b"\n"


def record_from_json(data: bytes) -> JobRecord:
    """The record in ``job.json``.

    Raises:
        MalformedError: no JSON, another schema number, or a field that is missing, unknown or of the
            wrong shape.
    """
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise MalformedError(f"not JSON: {error}") from None
    if isinstance(document, dict) and document.get("schema") != JOB_SCHEMA:
        raise MalformedError(f"schema {document.get('schema')!r:.40}, not {JOB_SCHEMA}")
    return cast("JobRecord", _decode(JobRecord, document, "record"))


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _decode(kind: Any, value: object, where: str) -> object:  # noqa: ANN401  # a type expression
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return _decode_optional(arguments, value, where)
    if origin is Literal:
        if isinstance(value, str) and value in arguments:
            return value
    elif origin is tuple:
        if isinstance(value, list):
            return tuple(_decode(arguments[0], item, f"{where}[{i}]") for i, item in enumerate(value))
    elif origin is Mapping:
        if isinstance(value, dict):
            return {key: _decode(arguments[1], item, f"{where}.{key}") for key, item in value.items()}
    elif is_dataclass(kind):
        if isinstance(value, dict) and isinstance(kind, type):
            return _decode_fields(kind, value, where)
    elif type(value) is kind:
        return value
    elif kind is float and type(value) is int:
        return float(value)
    raise MalformedError(f"{where}: {kind!r:.60} expected, got {value!r:.40}")


def _decode_optional(kinds: tuple[Any, ...], value: object, where: str) -> object:
    if value is None and type(None) in kinds:
        return None
    (kind,) = (kind for kind in kinds if kind is not type(None))
    return _decode(kind, value, where)


def _decode_fields(kind: type, value: dict[str, object], where: str) -> object:
    known = {field.name: field for field in fields(kind)}
    unknown = value.keys() - known.keys()
    if unknown:
        raise MalformedError(f"{where}: unknown field {min(unknown)!r:.40}")
    for name, field in known.items():
        if name not in value and field.default is MISSING and field.default_factory is MISSING:
            raise MalformedError(f"{where}: field {name!r} missing")
    hints = _hints(kind)
    return kind(**{name: _decode(hints[name], item, f"{where}.{name}") for name, item in value.items()})
