from collections.abc import Mapping

from support.runs import run_log

from tui.facts.finding import Finding
from tui.facts.training import NotedEvent, Told
from tui.insight.trouble import log_findings


def found(events: Mapping[NotedEvent, int], seconds: list[float] | None = None) -> dict[str, Finding]:
    log = run_log(seconds or [2.0] * 100, total=1000, told=Told(events=events))
    return {finding.code: finding for finding in log_findings("job", log)}


def test_what_the_log_counts() -> None:
    assert found({}) == {}
    assert set(found({"allocation_retry": 1, "dropped_sample": 3, "over_long_sample": 1})) == {
        "memory_pressure",
        "samples_dropped",
        "samples_over_long",
    }


def test_a_few_overflows_are_normal() -> None:
    assert found({"fp16_overflow": 3})["fp16_overflow"].level == "info"
    assert found({"fp16_overflow": 30})["fp16_overflow"].level == "warning"


def test_a_run_that_has_become_slow() -> None:
    slow = found({}, [2.0] * 150 + [5.0] * 12)["throughput_drop"]
    assert slow.evidence["before"] == 2.0
    assert slow.evidence["now"] == 5.0
    assert found({}, [2.0] * 150 + [5.0] * 2) == {}
    assert found({}, [2.0, 2.6] * 80) == {}, "uneven lengths"
