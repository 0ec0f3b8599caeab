"""The verdict of a check, and its findings in order."""

from tui.facts.finding import Finding
from tui.text.check_report import check_report, plan_rows, verdict
from tui.text.translate import set_language

BLOCKER = Finding("nothing_to_do", "danger", "do_train", blocks=True)
WARNING = Finding("eval_data_unused", "warning", "val_size", {"val_size": 0.1})
NOTE = Finding("packing_fills", "info", "packing", {"cutoff": 4096})


def test_the_verdict() -> None:
    assert verdict(()) == "It can start."
    assert verdict((NOTE,)) == "It can start."
    assert verdict((WARNING, NOTE)) == "It can start, with 1 warning."
    assert verdict((BLOCKER, BLOCKER, WARNING)) == "It cannot start: 2 findings stand in the way."
    set_language("zh")
    assert verdict((BLOCKER,)) == "不能启动：有 1 个问题必须先解决。"


def test_the_report_says_what_and_what_to_do() -> None:
    lines = check_report((BLOCKER, NOTE), 80).splitlines()
    assert lines[0] == "It cannot start: 1 finding stands in the way."
    assert lines[1].startswith("  danger: The config asks for no training")
    assert any("Set do_train: true." in line for line in lines)
    assert all(len(line) <= 80 for line in lines)
    assert "\x1b" not in check_report((BLOCKER,))
    assert "\x1b[31m" in check_report((BLOCKER,), colour=True)


def test_rows_without_a_value_are_left_out() -> None:
    rows = plan_rows(("a", "b"), "/x", None, "/x/out", {"A": "1"})
    assert rows == [("command", "a b"), ("folder", "/x"), ("output", "/x/out"), ("variable", "A=1")]
