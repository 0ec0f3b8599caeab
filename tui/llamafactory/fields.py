"""The settings that a LLaMA-Factory takes, read from its source: no version of it has to be known.

A training config is parsed into five dataclasses, the third of which inherits from one of transformers.
Their fields are read from the syntax trees of seven files, in about 25 ms; importing them takes seconds.
"""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

from tui.llamafactory.installed import find_package, is_file

Kind = Literal["whole", "number", "flag", "word", "other"]
"""What a setting holds: a whole number, any number, true or false, one word of a fixed list, or what
cannot be told from its annotation (text, lists, either of several).
"""

_GROUPS = (
    "ModelArguments",
    "DataArguments",
    "TrainingArguments",
    "FinetuningArguments",
    "GeneratingArguments",
)
_INHERITED = "Seq2SeqTrainingArguments"
_OWN_FILES = ("model_args.py", "data_args.py", "training_args.py", "finetuning_args.py", "generating_args.py")
_TRANSFORMERS_FILES = ("training_args_seq2seq.py", "training_args.py")
_FILE_LIMIT = 1 << 20
_WORDS = re.compile(r"\b(?:Literal|\w*Strategy|SchedulerType|OptimizerNames|QuantizationMethod|EngineName)\b")
_SIMPLE: Mapping[str, Kind] = {"int": "whole", "float": "number", "bool": "flag"}


@dataclass(frozen=True, slots=True)
class _Class:
    fields: Mapping[str, Kind]
    bases: tuple[str, ...]


def read_fields(sites: Sequence[Path]) -> dict[str, Kind] | None:
    """Every setting of the LLaMA-Factory in these site folders, with its kind; ``None`` if its source or
    that of transformers is not there or is laid out in another way.
    """
    package = find_package(sites)
    transformers = next(
        (site / "transformers" for site in sites if is_file(site / "transformers" / "training_args.py")), None
    )
    if package is None or transformers is None:
        return None
    inherited, own = transformers_fields(transformers), llamafactory_fields(package)
    return {**inherited, **own} if inherited and own else None


def llamafactory_fields(package: Path) -> dict[str, Kind]:
    """The settings that LLaMA-Factory itself adds; empty if they cannot be read."""
    return _collect(_GROUPS, _classes([package / "hparams" / name for name in _OWN_FILES]))


def transformers_fields(package: Path) -> dict[str, Kind]:
    """The settings that come from transformers; empty if they cannot be read."""
    return _collect((_INHERITED,), _classes([package / name for name in _TRANSFORMERS_FILES]))


def _collect(names: Sequence[str], classes: Mapping[str, _Class]) -> dict[str, Kind]:
    """Fields of classes and of all that they inherit from, as far as ``classes`` goes; nothing if one of
    the classes themselves is not there.
    """
    if any(name not in classes for name in names):
        return {}
    found: dict[str, Kind] = {}
    waiting, seen = list(names), set[str]()
    while waiting:
        name = waiting.pop()
        if name in classes and name not in seen:
            seen.add(name)
            found = {**classes[name].fields, **found}
            waiting.extend(classes[name].bases)
    return found


def _classes(paths: Sequence[Path]) -> dict[str, _Class]:
    found: dict[str, _Class] = {}
    for path in paths:
        try:
            status = path.stat()
        except OSError:
            continue
        found.update(_parsed(str(path), status.st_size, status.st_mtime_ns))
    return found


@lru_cache(maxsize=64)
def _parsed(path: str, size: int, changed: int) -> Mapping[str, _Class]:
    if size > _FILE_LIMIT:
        return {}
    try:
        tree = ast.parse(Path(path).read_bytes())
    except (OSError, ValueError, SyntaxError, RecursionError):
        return {}
    # ``if …: Base = A else: Base = B``: the last one is the ordinary case.
    aliases = {
        target.id: node.value.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    return {node.name: _class(node, aliases) for node in tree.body if isinstance(node, ast.ClassDef)}


def _class(node: ast.ClassDef, aliases: Mapping[str, str]) -> _Class:
    bases = tuple(aliases.get(base.id, base.id) for base in node.bases if isinstance(base, ast.Name))
    return _Class(dict(_fields(node)), bases)


def _fields(node: ast.ClassDef) -> Iterator[tuple[str, Kind]]:
    for item in node.body:
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
            annotation = ast.unparse(item.annotation).strip("'\"")
            if not annotation.startswith("ClassVar") and not _is_internal(item.value):
                yield item.target.id, _kind(annotation)


def _is_internal(value: ast.expr | None) -> bool:
    """Whether this is ``field(init=False)``, which no config can set."""
    return isinstance(value, ast.Call) and any(
        word.arg == "init" and isinstance(word.value, ast.Constant) and word.value.value is False
        for word in value.keywords
    )


def _kind(annotation: str) -> Kind:
    optional = re.fullmatch(r"Optional\[(.*)\]|(.*?)\s*\|\s*None", annotation)
    inner = annotation if optional is None else (optional[1] or optional[2])
    if inner in _SIMPLE:
        return _SIMPLE[inner]
    return "word" if _WORDS.search(inner) else "other"
