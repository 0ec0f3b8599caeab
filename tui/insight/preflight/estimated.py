"""What only an estimate can say: whether it fits the card, and what its number of steps leaves out."""

from collections.abc import Iterator

from tui.facts.estimate import Estimate
from tui.facts.finding import EvidenceValue, Finding
from tui.insight.preflight.values import rhythm_findings
from tui.llamafactory.config import TrainingConfig


def estimate_findings(config: TrainingConfig, estimate: Estimate) -> tuple[Finding, ...]:
    """Findings about an estimate; none of them blocks, since it is one."""
    return (*_fit(estimate), *_steps(config, estimate))


def _fit(estimate: Estimate) -> Iterator[Finding]:
    for check in estimate.checks:
        if check.need is None or check.have is None or check.name == "disk":
            continue
        evidence: dict[str, EvidenceValue] = {
            "low": check.need.low,
            "high": check.need.high,
            "free": check.have,
            "card": estimate.card,
        }
        if check.verdict == "does_not_fit" and check.name == "weights":
            yield Finding("weights_do_not_fit", "danger", evidence=evidence)
            return
        if check.verdict == "does_not_fit":
            yield Finding("training_does_not_fit", "warning", evidence=evidence)
        elif check.verdict == "tight" and check.name == "training":
            yield Finding("training_may_not_fit", "advice", evidence=evidence)


def _steps(config: TrainingConfig, estimate: Estimate) -> Iterator[Finding]:
    """Of a number of steps that the config does not say itself."""
    total = estimate.steps.total
    if total is not None and (config.max_steps or -1) <= 0:
        yield from rhythm_findings(config, total.high)
