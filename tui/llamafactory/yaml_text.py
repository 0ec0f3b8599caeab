"""YAML as LLaMA-Factory reads it, with bounds against hostile text.

LLaMA-Factory loads its configs with OmegaConf, whose rules differ from PyYAML's safe loader: ``1e-4`` is
a number, dates are text, a key may occur once. Both directions share those rules here, so that what is
written means the same when it is read there. Only plain values exist: no tags that make objects.
"""

import re
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import yaml

Key: TypeAlias = str | int | float | bool
Value: TypeAlias = "str | int | float | bool | list[Value] | dict[Key, Value] | None"

T = TypeVar("T")

_DEPTH_LIMIT = 50
_NODE_LIMIT = 10_000  # OmegaConf's own limit, aliases expanded
_PROBLEM_LIMIT = 200

_TAG = "tag:yaml.org,2002:"
_PLAIN_TAGS = tuple(f"{_TAG}{name}" for name in ("null", "bool", "int", "float", "str", "seq", "map"))

# OmegaConf's pattern of a float: with it ``1e-4`` is a number, as in YAML 1.2 and unlike YAML 1.1.
_FLOAT = re.compile(
    r"""^(?:
        [-+]?[0-9]+(?:_[0-9]+)*\.[0-9_]*(?:[eE][-+]?[0-9]+)?
      | [-+]?[0-9]+(?:_[0-9]+)*(?:[eE][-+]?[0-9]+)
      | \.[0-9]+(?:_[0-9]+)*(?:[eE][-+][0-9]+)?
      | [-+]?[0-9]+(?:_[0-9]+)*(?::[0-5]?[0-9])+\.[0-9_]*
      | [-+]?\.(?:inf|Inf|INF)
      | \.(?:nan|NaN|NAN)
    )$""",
    re.VERBOSE,
)

_LINE_BREAK = re.compile("[\n\r\x85\u2028\u2029]")


class YamlError(ValueError):
    """The text is not YAML that LLaMA-Factory would accept. ``line`` and ``column`` count from 1."""

    def __init__(self, problem: str, line: int | None = None, column: int | None = None) -> None:
        super().__init__(problem)
        self.problem = problem[:_PROBLEM_LIMIT]
        self.line = line
        self.column = column


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed text. ``lines`` tells where each key of the outermost mapping stands (from 1)."""

    value: Value
    lines: Mapping[str, int]


def parse_yaml(text: str) -> Document:
    """Parse one document.

    Raises:
        YamlError: broken syntax, a repeated key, a tag that would make an object, or a text that is
            nested or grows through aliases beyond the limits.
    """
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        if node is None:
            return Document(None, {})
        beyond = first_beyond_limits(node, _children)
        if beyond is not None:
            raise _refusal("too large or too deep once its aliases are written out", beyond.start_mark)
        lines = _key_lines(node)
        return Document(loader.construct_document(node), lines)
    except yaml.MarkedYAMLError as error:
        # A quote that is not closed is noticed at the end of the text; what helps is where it opens.
        scanning = error.context_mark if (error.context or "").startswith("while scanning") else None
        mark = scanning or error.problem_mark or error.context_mark
        problem = error.problem or error.context or "cannot be understood"
        raise YamlError(problem, *_position(mark)) from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise YamlError(f"character {error.character!r} is not allowed", line) from error


def dump_yaml(values: Mapping[str, Value], *, sort_keys: bool = False) -> str:
    """The values as YAML text that reads back as the same values, here and in LLaMA-Factory."""
    return yaml.dump(
        dict(values),
        Dumper=_Dumper,
        sort_keys=sort_keys,
        allow_unicode=True,
        default_flow_style=False,
        width=10_000,
    )


def first_beyond_limits(root: T, children: Callable[[T], Iterable[T]]) -> T | None:
    """The first part of a tree that is too deep or one too many; ``None`` if the tree is fine.

    Shared parts count wherever they are used, so nine lines that stand for a billion values are seen
    after ten thousand steps, and a part that contains itself is too deep.
    """
    left = [(root, 1)]
    for _ in range(_NODE_LIMIT):
        if not left:
            return None
        part, level = left.pop()
        if level > _DEPTH_LIMIT:
            return part
        left.extend((child, level + 1) for child in children(part))
    return left[-1][0] if left else None


class _Loader(yaml.SafeLoader):
    """The pure Python loader: libyaml's recursion is not bounded, and its messages differ."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = 0
        self._nodes = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        self._depth += 1
        self._nodes += 1
        if self._depth > _DEPTH_LIMIT:
            raise _refusal("nested too deeply", parent.start_mark if parent else None)
        if self._nodes > _NODE_LIMIT:
            raise _refusal("too many values", parent.start_mark if parent else None)
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, object]:
        seen: set[str] = set()
        for key, _ in node.value:
            if key.tag != f"{_TAG}str":
                continue
            if key.value in seen:
                raise _refusal(f"the key {key.value[:60]} occurs twice", key.start_mark)
            seen.add(key.value)
        mapping = super().construct_mapping(node, deep=deep)
        if any(not isinstance(key, str | int | float) for key in mapping):
            raise _refusal("a key must be text or a number", node.start_mark)
        return mapping

    def construct_object(self, node: yaml.Node, deep: bool = False) -> object:
        try:
            value = super().construct_object(node, deep=deep)
            if isinstance(value, str):
                value.encode()  # half a surrogate pair cannot be, and LLaMA-Factory's loader refuses it
        except (ValueError, LookupError, OverflowError) as error:
            raise _refusal("a value that cannot be read", node.start_mark) from error
        return value


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: object) -> bool:
        return True

    def represent_text(self, text: str) -> yaml.ScalarNode:
        """Text with a line break of any kind is escaped: PyYAML folds it, and U+0085 is lost."""
        style = '"' if _LINE_BREAK.search(text) else None
        return self.represent_scalar(f"{_TAG}str", text, style=style)


def _omegaconf_resolvers() -> dict[str, list[tuple[str, re.Pattern[str]]]]:
    """First letter of a plain word to the tags it may have, tried in order."""
    resolvers = {
        letter: [(tag, pattern) for tag, pattern in candidates if tag != f"{_TAG}timestamp"]
        for letter, candidates in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    for letter in "-+0123456789.":
        resolvers.setdefault(letter, []).append((f"{_TAG}float", _FLOAT))
    return resolvers


_Loader.yaml_implicit_resolvers = _omegaconf_resolvers()
_Dumper.yaml_implicit_resolvers = _omegaconf_resolvers()
_Dumper.add_representer(str, _Dumper.represent_text)
_Loader.yaml_constructors = {
    **{tag: yaml.SafeLoader.yaml_constructors[tag] for tag in _PLAIN_TAGS},
    None: yaml.SafeLoader.construct_undefined,
}


def _children(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.SequenceNode):
        return list(node.value)
    if isinstance(node, yaml.MappingNode):
        return [part for pair in node.value for part in pair]
    return []


def _key_lines(node: yaml.Node) -> dict[str, int]:
    if not isinstance(node, yaml.MappingNode):
        return {}
    return {str(key.value): key.start_mark.line + 1 for key, _ in node.value}


def _refusal(problem: str, mark: yaml.Mark | None) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(None, None, problem, mark)


def _position(mark: yaml.Mark | None) -> tuple[int | None, int | None]:
    return (None, None) if mark is None else (mark.line + 1, mark.column + 1)
