"""What can be known before a training starts: rules over facts that were read.

Each rule is pure. A finding that ``blocks`` is one that surely ends the run before its first step, or
surely destroys something; everything less sure is a warning.
"""

from collections.abc import Iterable
from dataclasses import replace

from tui.facts.finding import Finding, Level
from tui.facts.secrets import mask_text
from tui.insight.preflight.facts import PreflightFacts
from tui.insight.preflight.files import file_findings
from tui.insight.preflight.keys import key_findings
from tui.insight.preflight.machine import machine_findings
from tui.insight.preflight.output import output_findings
from tui.insight.preflight.packages import package_findings
from tui.insight.preflight.values import value_findings

_RULES = (
    key_findings,
    value_findings,
    file_findings,
    output_findings,
    package_findings,
    machine_findings,
)
_ORDER: dict[Level, int] = {"danger": 0, "warning": 1, "advice": 2, "info": 3}


def preflight(facts: PreflightFacts) -> tuple[Finding, ...]:
    """All findings, those that block first, then by level; within one level as a person reads a config."""
    return in_order(_masked(finding) for rule in _RULES for finding in rule(facts))


def _masked(finding: Finding) -> Finding:
    """Values of a config are evidence, and a secret may stand where it does not belong."""
    evidence = {
        name: mask_text(value) if isinstance(value, str) else value
        for name, value in finding.evidence.items()
    }
    return replace(finding, subject=mask_text(finding.subject), evidence=evidence)


def in_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Those that block first, then by level."""
    return tuple(sorted(findings, key=lambda finding: (not finding.blocks, _ORDER[finding.level])))
