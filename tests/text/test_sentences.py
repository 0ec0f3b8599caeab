"""Every code of the facts has its words in both languages, and errors say what, where, why and what to do."""

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import get_args

import pytest
from support.catalogue import placeholders

import tui
from tui.facts.errors import ErrorCode, LlamaherdError
from tui.facts.finding import Level
from tui.facts.job import BehindCode, Ending, JobKind, JobState, MemberRole, RequestKind, StepName
from tui.facts.machine import (
    DriverError,
    DriverErrorCode,
    Evidence,
    PidRegime,
    ProcessKind,
    ProcessState,
    ThrottleReason,
)
from tui.facts.stray import Obstacle, StrayReason
from tui.facts.training import Allocation, Failure, FailureKind, Stage
from tui.facts.unknown import UnknownReason
from tui.text import names, sentences, stop_report, stray_report, units
from tui.text.sentences import ERRORS, driver_text, error_text, failure_text
from tui.text.translate import Language, set_language, tr

Words = Iterable[tuple[str, str | tuple[str, str]]]

TABLES: list[tuple[object, Words]] = [
    (ErrorCode, sentences.ERRORS.items()),
    (DriverErrorCode, sentences.DRIVER_ERRORS.items()),
    (PidRegime, sentences.PID_REGIMES.items()),
    (JobState, sentences.STATE_MEANINGS.items()),
    (Ending, sentences.ENDING_MEANINGS.items()),
    (FailureKind, sentences.FAILURES.items()),
    (UnknownReason, units.REASONS.items()),
    (JobState, names.STATES.items()),
    (Ending, names.ENDINGS.items()),
    (Stage, names.STAGES.items()),
    (JobKind, names.JOB_KINDS.items()),
    (MemberRole, names.ROLES.items()),
    (ProcessKind, names.PROCESS_KINDS.items()),
    (ProcessState, names.PROCESS_STATES.items()),
    (Evidence, names.EVIDENCE.items()),
    (Evidence, names.EVIDENCE_MEANINGS.items()),
    (ThrottleReason, names.THROTTLES.items()),
    (Level, names.LEVELS.items()),
    (StepName, stop_report.STEPS.items()),
    (RequestKind, stop_report.QUESTIONS.items()),
    (BehindCode, stop_report.BEHIND.items()),
    (StrayReason, stray_report.REASONS.items()),
    (Obstacle, stray_report.OBSTACLES.items()),
]
SAME_IN_BOTH = {"WebUI", "Chat", "API", "vLLM", "torchrun", "rank"}


@pytest.mark.parametrize(("literal", "table"), TABLES)
def test_every_code_has_words_in_both_languages(literal: object, table: Words) -> None:
    assert {code for code, _words in table} == set(get_args(literal))
    for _code, words in table:
        for word in (words,) if isinstance(words, str) else words:
            assert word
            set_language("zh")
            assert word in SAME_IN_BOTH or tr(word) != word
            set_language("en")
            assert tr(word) == word


def test_an_error_says_what_where_why_and_what_to_do() -> None:
    error = LlamaherdError(
        "config_invalid", path="/x/a.yaml", line=3, column=None, detail="mapping values here."
    )
    assert error_text(error) == (
        "The config /x/a.yaml is not valid YAML. At line 3. Reason: mapping values here.",
        "Correct the place that is named; indents are spaces, and a colon is followed by a space.",
    )
    message, _hint = error_text(
        LlamaherdError("settings_invalid", path="/s", key="langage", nearest="language", why="unknown_key")
    )
    assert message == (
        "The settings in /s cannot be used. At key langage. Reason: there is no such key."
        " Perhaps language was meant."
    )


def test_an_error_speaks_chinese() -> None:
    set_language("zh")
    message, hint = error_text(LlamaherdError("environment_unusable", path="/x", why="no_llamafactory"))
    assert message == "无法从 /x 运行 LLaMA-Factory。原因：里面没有安装 LLaMA-Factory。"
    assert hint.startswith("请用 --env")


def test_places_that_were_looked_at_are_named_with_their_cause() -> None:
    rejected = ("/a: no_python", *(f"/{number}: no_llamafactory" for number in range(9)))
    message, _hint = error_text(
        LlamaherdError("environment_not_found", looked=("/a", "/b"), rejected=rejected)
    )
    assert "/a (it has no Python that runs)" in message
    assert message.endswith("4 more.")


def test_values_of_an_error_are_harmless_and_masked() -> None:
    secret = "hf_" + "Ab1" * 12
    error = LlamaherdError(
        "command_unsupported", command=f"\x1b[31mrun\n --hf_hub_token {secret} {'x' * 9999}", why="\x07bad"
    )
    message, hint = error_text(error)
    assert secret not in message
    assert "\x1b" not in message + hint
    assert len(message) < 600


@pytest.mark.parametrize("language", ["en", "zh"])
def test_an_error_without_values_still_has_a_sentence(language: Language) -> None:
    set_language(language)
    for code in get_args(ErrorCode):
        message, hint = error_text(LlamaherdError(code))
        assert message
        assert hint


def raised_errors() -> Iterator[tuple[str, str, set[str | None]]]:
    """Where in the source an error is made, its code, and the names of the values it is given."""
    for file in sorted(Path(tui.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id == "LlamaherdError"
            ):
                code = node.args[0] if node.args else None
                if isinstance(code, ast.Constant) and isinstance(code.value, str):
                    yield f"{file.name}:{node.lineno}", code.value, {keyword.arg for keyword in node.keywords}


def test_where_errors_are_raised_they_carry_what_their_sentence_needs() -> None:
    sentences_of = {str(code): texts for code, texts in ERRORS.items()}
    missing = []
    for place, code, given in raised_errors():
        needed = set().union(*(placeholders(text) for text in sentences_of[code]))
        if None not in given and (lacking := needed - given):
            missing.append(f"{place}: {code} lacks {sorted(lacking)}")
    assert missing == []


def test_the_driver_and_failures() -> None:
    message, hint = driver_text(DriverError("version_mismatch", "Driver/library version mismatch."))
    assert message.endswith("Reason: Driver/library version mismatch.")
    assert "restart the instance" in hint
    failure = Failure("cuda_oom", "backward", 1, "…", Allocation(2 << 30))
    assert failure_text(failure) == "GPU memory ran out (backward pass, rank 1, 2.0 GiB asked for)"
    assert failure_text(Failure("other", None, None, "")) == "the program ended with an error"
    set_language("zh")
    assert failure_text(failure) == "显存不足（反向传播，rank 1，申请 2.0 GiB）"
