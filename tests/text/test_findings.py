"""Findings as sentences: evidence with its units, unknown codes shown plainly."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.catalogue import placeholders
from support.samples import EVIL, GIB

import tui
from tui.facts.finding import Finding
from tui.text.findings import FINDINGS, finding_text
from tui.text.translate import Language, set_language


def test_evidence_is_shown_with_its_unit() -> None:
    finding = Finding(
        "disk_nearly_full", "warning", "/root/autodl-tmp", {"free": 3 * GIB, "total": 200 * GIB}
    )
    message, advice = finding_text(finding)
    assert message == "/root/autodl-tmp has 3.0 GiB free of 200.0 GiB."
    assert advice.startswith("A checkpoint that does not fit")
    set_language("zh")
    assert finding_text(finding)[0] == "/root/autodl-tmp 可用 3.0 GiB，共 200.0 GiB。"


def test_unknown_evidence_is_a_dash_and_not_a_zero() -> None:
    assert (
        "- free"
        in finding_text(Finding("disk_nearly_full", "warning", "/", {"free": None, "total": None}))[0]
    )


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_finding_has_a_sentence(language: Language) -> None:
    set_language(language)
    for code, words in FINDINGS.items():
        names = placeholders(words.message) | placeholders(words.advice)
        assert set(words.shown_as) <= names, code
        message, advice = finding_text(Finding(code, "info", "job-1", dict.fromkeys(names - {"subject"}, 1)))
        assert "{" not in message + advice
        assert message


def made_findings() -> Iterator[tuple[str, str]]:
    """Where in the source a finding is made, and its code."""
    for file in sorted(Path(tui.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if not (
                isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Finding"
            ):
                continue
            if node.args and isinstance(node.args[0], ast.Constant):
                yield f"{file.name}:{node.lineno}", str(node.args[0].value)


def test_every_finding_that_is_made_has_a_sentence() -> None:
    made = list(made_findings())
    assert "no_gpu_mode" in {code for _place, code in made}
    assert [f"{place}: {code}" for place, code in made if code not in FINDINGS] == []


def test_a_code_without_an_entry_is_shown_plainly() -> None:
    assert finding_text(Finding("brand_new", "info", "x", {"a": 1})) == ("brand_new x a=1", "")
    message, _advice = finding_text(Finding(EVIL, "info", EVIL, {EVIL: EVIL}))
    assert message.isprintable()
