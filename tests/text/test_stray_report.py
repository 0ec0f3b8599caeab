"""Strays and foreign runs in words: nothing from outside gets through as it is."""

from dataclasses import replace

from support.samples import RUNNING

from tui.facts.job import Behind, LadderStep, Member, StopReport
from tui.facts.stray import Stray, StrayGroup
from tui.text.layout import Page
from tui.text.report import stop_report
from tui.text.stop_report import foreign_lines, stop_question
from tui.text.stray_report import stray_lines, sweep_question

HOSTILE = "train\x1b[2J\x07\n\r\u202eevil" + "x" * 1_000_000
NOW = 10_000.0


def harmless(text: str) -> bool:
    return text.replace("\n", "").isprintable() and "\u202e" not in text and len(text) < 5000


def test_a_foreign_run_with_hostile_words() -> None:
    member = Member(7, 70, "main", "S", HOSTILE)
    job = replace(RUNNING, id="7:70", command=(HOSTILE,), members=(member,), foreign=True, folder=None)
    goes_on = (Behind("shutdown", 6, f"sh -c {HOSTILE}"), Behind("prompt", 5, HOSTILE))
    text = "\n".join(foreign_lines(Page(80), job, goes_on))
    assert harmless(text)
    assert "PID 7" in text
    assert "PID 6 switches the machine off" in text
    assert "PID 5" in text


def test_strays_with_their_reasons() -> None:
    rank = Stray(Member(8, 80, "rank", "S", HOSTILE), "rank_without_agent", NOW - 90.0, (0, 1), 2 << 30)
    dead = Stray(Member(9, 90, "other", "Z", "pt_data_worker"), "zombie", obstacle="zombie")
    group = StrayGroup("8:80", None, (HOSTILE,), "/", (rank, dead))
    text = "\n".join(stray_lines(Page(100), [group], NOW))
    assert harmless(text)
    for words in (
        "8:80",
        "PID 8",
        "whose torchrun is gone",
        "/dev/nvidia0, /dev/nvidia1",
        "no signal changes",
    ):
        assert words in text
    assert sweep_question([group]) == "End 1 stray (PID 8)?"
    assert stray_lines(Page(80), [], NOW) == ["There are no strays."]


def test_what_is_not_sure_or_still_held_is_said() -> None:
    step = LadderStep("kill", 0.0, 1.0, (7,), 1)
    sure = StopReport(NOW, "stop", (step,), seconds=1.0)
    unsure = stop_report(replace(sure, unsure=2), RUNNING, 100)
    assert "2 signals went by number" in " ".join(unsure.split())
    assert "by number" not in stop_report(sure, RUNNING, 100)
    held = stop_report(replace(sure, left=(Member(7, 1),), devices_held=(0, 3)), RUNNING, 100)
    assert "/dev/nvidia0, /dev/nvidia3" in held


def test_keeping_the_weights_says_what_llamafactory_still_does() -> None:
    question = stop_question(RUNNING, 37, "keep_weights")
    assert "final evaluation" in question
    assert "several ranks" in question
    assert "37 steps" in question
    assert "final evaluation" not in stop_question(RUNNING, 37, "stop")
