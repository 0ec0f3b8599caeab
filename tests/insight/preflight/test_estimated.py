"""What only an estimate can say."""

from typing import Any

import pytest
from support.preflight import GIB, codes, facts

from tui.facts.estimate import Estimate
from tui.facts.memory import ByteRange, CheckName, FitCheck, MemoryEstimate, Verdict
from tui.facts.steps import Bound, StepCount
from tui.insight.preflight.estimated import estimate_findings

STEPS = StepCount(batch=1, accumulation=1, world=1, epochs=1.0, total=Bound(100, 100))


def judged(*checks: FitCheck, values: dict[str, Any] | None = None, steps: StepCount = STEPS) -> list[str]:
    config = facts({"max_steps": None, **(values or {})}).config
    result = Estimate(steps, MemoryEstimate(), checks=checks, card="NVIDIA GeForce RTX 4090")
    findings = estimate_findings(config, result)
    assert not any(finding.blocks for finding in findings)
    return codes(findings)


def fit(name: CheckName, verdict: Verdict) -> FitCheck:
    return FitCheck(name, ByteRange(20 * GIB, 30 * GIB), 24 * GIB, verdict)


@pytest.mark.parametrize(
    ("name", "verdict", "expected"),
    [
        ("training", "fits", []),
        ("training", "tight", ["training_may_not_fit"]),
        ("training", "does_not_fit", ["training_does_not_fit"]),
        ("weights", "does_not_fit", ["weights_do_not_fit"]),
        ("weights", "tight", []),
        ("disk", "does_not_fit", []),
    ],
)
def test_whether_it_fits(name: CheckName, verdict: Verdict, expected: list[str]) -> None:
    assert judged(fit(name, verdict)) == expected


def test_weights_that_do_not_fit_are_said_once() -> None:
    assert judged(fit("weights", "does_not_fit"), fit("training", "does_not_fit")) == ["weights_do_not_fit"]


def test_what_is_unknown_is_not_judged() -> None:
    assert judged(FitCheck("training", None, 24 * GIB, "unknown")) == []


def test_the_counted_steps_show_what_never_comes() -> None:
    assert judged(values={"save_steps": 101}) == ["save_never"]
    assert judged(values={"save_steps": 100}) == []
    # The config says the number itself: its own rule has looked at it.
    assert judged(values={"save_steps": 101, "max_steps": 50}) == []
    unknown = StepCount(batch=1, accumulation=1, world=1, epochs=1.0)
    assert judged(values={"save_steps": 101}, steps=unknown) == []
