"""Ranges of versions, and where LLaMA-Factory states them."""

from pathlib import Path

import pytest

from tui.llamafactory.requirements import (
    Requirement,
    basic_requirements,
    option_requirements,
    template_names,
)


@pytest.mark.parametrize(
    ("bounds", "version", "fits"),
    [
        ("", "0.0.1", True),
        (">=4.55.0,<=5.6.0", "5.6.0", True),
        (">=4.55.0,<=5.6.0", "5.6.2", False),
        (">=4.55.0,<=5.6.0", "4.54.9", False),
        (">=2.4", "2.13.0+cpu", True),
        ("<=0.16.9", "0.16.10", False),
        ("!=4.57.0", "4.57.0", False),
        ("!=4.57.0", "4.57.1", True),
        ("==1.0", "1.0.0", True),
        ("~=1.4", "1.9", True),
        ("~=1.4", "2.0", False),
        (">1", "1.0.1", True),
        ("<2", "1.9.9", True),
        (">=1.0", "1.0rc1", True),
        ("@ https://example.org", "1", True),
    ],
)
def test_ranges(bounds: str, version: str, fits: bool) -> None:
    assert Requirement("x", bounds).allows(version) is fits


def test_they_are_read_from_the_source(tmp_path: Path) -> None:
    for folder in ("extras", "hparams", "data"):
        (tmp_path / folder).mkdir()
    (tmp_path / "extras" / "misc.py").write_text(
        'def check_dependencies() -> None:\n    check_version("transformers>=4.55.0, <=5.6.0")\n'
        '\n\ndef other():\n    check_version("modelscope>=1.14.0", mandatory=True)\n'
    )
    (tmp_path / "hparams" / "parser.py").write_text('check_version("deepspeed", mandatory=True)\n')
    (tmp_path / "data" / "template.py").write_text('register_template(\n    name="qwen3",\n)\n')
    assert basic_requirements(tmp_path) == (Requirement("transformers", ">=4.55.0,<=5.6.0"),)
    assert option_requirements(tmp_path) == (Requirement("deepspeed"),)
    assert template_names(tmp_path) == {"qwen3"}


def test_nothing_is_read_from_nothing(tmp_path: Path) -> None:
    assert basic_requirements(tmp_path) == ()
    assert option_requirements(tmp_path) == ()
    assert template_names(tmp_path) == frozenset()


def test_the_lists_of_a_source_tree(tmp_path: Path) -> None:
    package = tmp_path / "src" / "llamafactory"
    package.mkdir(parents=True)
    lists = tmp_path / "requirements"
    lists.mkdir()
    (lists / "deepspeed.txt").write_text("deepspeed>=0.10.0,<=0.18.4\n")
    (lists / "metrics.txt").write_text("# a comment\nnltk\njieba  # words\n-r other.txt\n")
    assert option_requirements(package) == (
        Requirement("deepspeed", ">=0.10.0,<=0.18.4"),
        Requirement("nltk"),
        Requirement("jieba"),
    )
