"""YAML as LLaMA-Factory reads it, in both directions, against hostile text."""

import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.llamafactory.yaml_text import Value, YamlError, dump_yaml, parse_yaml

plain_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.text(max_size=12), plain_values, max_size=6))
def test_what_is_written_reads_back_as_the_same(values: dict[str, Value]) -> None:
    read = parse_yaml(dump_yaml(values)).value
    assert read == values
    assert repr(read) == repr(values), "1, 1.0 and True are equal in Python and not the same here"


@given(st.text(max_size=200))
def test_any_text_is_a_document_or_an_error_with_a_place(text: str) -> None:
    error = error_of(text)
    if error is not None:
        assert error.problem
        assert error.line is None or 1 <= error.line <= len(text) + 2


def error_of(text: str) -> YamlError | None:
    try:
        parse_yaml(text)
    except YamlError as error:
        return error
    return None


def test_not_a_number_survives() -> None:
    read = parse_yaml(dump_yaml({"a": math.nan})).value
    assert isinstance(read, dict)
    assert isinstance(read["a"], float)
    assert math.isnan(read["a"])


def test_a_shared_part_is_written_out_twice() -> None:
    parsed = parse_yaml("x: &a {k: [1]}\ny: *a\n")
    assert isinstance(parsed.value, dict)
    assert dump_yaml({"x": parsed.value["x"], "y": parsed.value["y"]}) == "x:\n  k:\n  - 1\ny:\n  k:\n  - 1\n"


def test_keys_are_found_again_in_the_file() -> None:
    parsed = parse_yaml("# head\nstage: sft\n\nmodel: {path: x}\n'quoted': 1\n")
    assert parsed.lines == {"stage": 2, "model": 4, "quoted": 5}
    assert parse_yaml("- 1").lines == {}
    assert parse_yaml("# nothing").value is None


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("stage: sft\nlr 1e-4\nepochs: 3\n", 2, 1),
        ("stage: sft\n\tlr: 1\n", 2, 1),
        ("a: 1\nb: 2\na: 3\n", 3, 1),
        ("a: [1, 2\nb: 3\n", 2, 2),
        ("x: 1\na: 'open\n\n\n", 2, 4),
        ("a: *nowhere\n", 1, 4),
        ("a: 1\n---\nb: 2\n", 2, 1),
        ("a: 1\nb: !!python/object/apply:os.system ['true']\n", 2, 4),
        ("a: !!binary aGk=\n", 1, 4),
        ("a: !!int ''\n", 1, 4),
        ("a: !!float ''\n", 1, 4),
        ("a: !!bool maybe\n", 1, 4),
        ("x: 1\na: " + "9" * 5000 + "\n", 2, 4),
        ("a: {[1]: 2}\n", 1, 5),
        ("a: 1\n~: 2\n", 1, 1),
        ('a: "\\ud83d"\n', 1, 4),
    ],
)
def test_an_error_names_the_place(text: str, line: int, column: int) -> None:
    with pytest.raises(YamlError) as caught:
        parse_yaml(text)
    assert (caught.value.line, caught.value.column) == (line, column)


def test_a_character_that_yaml_forbids() -> None:
    with pytest.raises(YamlError) as caught:
        parse_yaml("a: 1\nb: \x00\n")
    assert caught.value.line == 2


def bomb(first: str, later: str) -> str:
    """Nine lines that stand for a billion values: each uses the one before nine times."""
    lines = [first]
    for last, this in zip("abcdefgh", "bcdefghi", strict=True):
        lines.append(later.format(this=this, nine=", ".join([f"*{last}"] * 9)))
    return "\n".join(lines)


ALIASES = bomb("a: &a [x, x, x, x, x, x, x, x, x]", "{this}: &{this} [{nine}]")
MERGES = bomb("a: &a {x: 1, y: 2}", "{this}: &{this} {{<<: [{nine}]}}")


def test_aliases_and_merges_are_understood_while_they_stay_small() -> None:
    parse_yaml("\n".join(ALIASES.splitlines()[:3]))
    assert parse_yaml("\n".join(MERGES.splitlines()[:3])).value == {
        name: {"x": 1, "y": 2} for name in ("a", "b", "c")
    }


@pytest.mark.parametrize(
    "text",
    [
        ALIASES,
        MERGES,
        "a: &a [*a]\n",
        "a: &a {b: *a}\n",
        "[" * 100_000,
        "{a: " * 100_000,
        "- " * 100_000,
        "? " * 100_000,
        "a: [" + "1, " * 20_000 + "]",
        "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, 200)),
        "'" * 300_001,
        "a: |\n" + " \n" * 300_000 + "\tb",
    ],
    ids=["aliases", "merges", "itself", "itself-in-a-mapping", "brackets", "braces", "dashes", "questions",
         "many", "alias-depth", "quotes", "blank-lines"],
)  # fmt: skip
def test_hostile_text_ends_soon_and_in_an_error(text: str) -> None:
    began = time.process_time()
    with pytest.raises(YamlError):
        parse_yaml(text)
    assert time.process_time() - began < 10
