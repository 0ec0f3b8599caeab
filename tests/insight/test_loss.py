import math

import pytest

from tui.facts.training import MetricPoint
from tui.insight.loss import loss_findings

FALLING = [3.0 * 0.97**n + 0.8 for n in range(60)]


def codes(losses: list[float], fraction: float | None = 0.5, evals: list[float] | None = None) -> set[str]:
    points = [MetricPoint(5 * n, loss=loss, grad_norm=1.0) for n, loss in enumerate(losses, 1)]
    points += [MetricPoint(20 * n, eval_loss=loss) for n, loss in enumerate(evals or [], 1)]
    return {finding.code for finding in loss_findings("job", points, fraction)}


def test_a_loss_that_falls_is_no_trouble() -> None:
    assert codes(FALLING) == set()
    assert codes([]) == set()
    assert codes(FALLING, evals=[2.0, 1.5, 1.2, 1.21]) == set()


@pytest.mark.parametrize("broken", [math.nan, math.inf])
def test_a_loss_that_is_no_number(broken: float) -> None:
    points = [MetricPoint(n, loss=2.0 if n < 7 else broken) for n in range(1, 12)]
    (found,) = loss_findings("job", points, 0.5)
    assert (found.code, found.level, found.evidence["step"]) == ("loss_not_finite", "danger", 7)
    assert codes([2.0] * 5 + [broken] + [2.0] * 5) == set(), "it was overcome"


def test_half_precision_breaks_with_a_loss_of_zero() -> None:
    points = [MetricPoint(n, loss=0.0, grad_norm=math.nan) for n in range(1, 4)]
    assert [found.code for found in loss_findings("job", points, None)] == ["loss_not_finite"]


def test_a_jump() -> None:
    assert codes([*FALLING, 6.0]) == {"loss_spike"}
    assert codes([*FALLING, 1.6]) == set()
    assert codes([1.0, 6.0]) == set(), "too few to know what is usual"


def test_converged_early_and_learnt_by_heart() -> None:
    assert codes([*FALLING[:30], *[1.0, 1.01] * 30]) == {"loss_flat"}
    assert codes([*FALLING[:30], *[1.0, 1.01] * 30], fraction=0.95) == set(), "the end is near anyway"
    assert codes([2.0, 1.0, 0.5, 0.2, 0.09, 0.05, 0.04, 0.03, 0.03]) == {"loss_near_zero"}


def test_an_evaluation_loss_that_rises() -> None:
    assert codes(FALLING, evals=[2.0, 1.5, 1.6, 1.7]) == {"eval_loss_rising"}
    assert codes(FALLING, evals=[2.0, 1.5, 1.6, 1.55]) == set(), "it falls again"
    assert codes(FALLING, evals=[1.5, 1.7]) == set()
