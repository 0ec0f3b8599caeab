from pathlib import Path
from typing import get_args

import pytest
from support.samples import EVIL
from support.training_logs import LOGS

from tui.facts.curve import Curve, CurveName
from tui.facts.explained import SettingName
from tui.operate.explain import explain
from tui.text.cells import width as cells_of
from tui.text.curve_text import CURVES, curve_lines
from tui.text.explain_report import explain_report
from tui.text.layout import Page
from tui.text.setting_words import SETTINGS, setting_name, setting_value
from tui.text.translate import Language, set_language

NOW = 1_800_000_000.0


def report(*paths: Path, width: int = 80, curve: bool = False) -> str:
    document, errors = explain(paths, NOW)
    assert not errors
    return explain_report(document, NOW, width, curve=curve)


def test_a_failed_run_says_what_where_and_what_was_asked_for() -> None:
    text = report(LOGS / "v4-oom-backward.log")
    assert "GPU memory ran out (backward pass, 2.0 GiB asked for)" in text
    assert "effective batch" in text


def test_a_finished_run() -> None:
    text = report(LOGS / "v4-torchrun-2rank.log", curve=True)
    assert text.splitlines()[0].endswith("finished")
    assert "60/60 (100%)" in text
    assert text.count("*") > 5


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("width", [40, 80, 200])
def test_every_line_fits(language: Language, width: int) -> None:
    set_language(language)
    logs = [path for path in sorted(LOGS.iterdir()) if path.suffix in {".log", ".jsonl"}]
    text = report(*logs, width=width, curve=True)
    names = [str(path) for path in logs]
    too_wide = [
        line for line in text.splitlines() if cells_of(line) > width and not line.startswith(tuple(names))
    ]
    assert too_wide == []


def test_control_sequences_and_secrets_of_a_log_stay_out(tmp_path: Path) -> None:
    path = tmp_path / "a\x1b[31m.log"
    path.write_bytes(
        b"[WARNING|2026-11-29 14:44:00] x.y:1 >> \x1b]0;title\x07[bold]hf_" + b"a" * 34 + b"\n"
        b"swanlab: View run at https://swanlab.cn/@me\x1b[2Jx\n"
        + EVIL.encode(errors="surrogateescape")
        + b"\n"
    )
    text = report(path)
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "hf_aaaa" not in text


def test_every_setting_has_a_name() -> None:
    assert set(SETTINGS) == set(get_args(SettingName))
    assert setting_name("liger") == "liger kernel"
    assert setting_name("x\x1b[1m") == "x"
    assert [setting_value(value) for value in (True, False, 0, 4, None, "bf16")] == [
        "yes",
        "no",
        "no",
        "4",
        "-",
        "bf16",
    ]


def test_a_loss_that_is_no_number_is_marked_on_the_curve() -> None:
    curve = Curve("loss", tuple((n, 10.0 - n) for n in range(1, 10) if n != 5), broken=(5.0,))
    lines = curve_lines(Page(60), curve)
    assert sum("!" in line for line in lines) == 1
    assert lines[1].lstrip().startswith("9.0000")
    assert "too few" in curve_lines(Page(60), Curve("loss", ((1.0, 2.0),)))[1]


def test_every_curve_has_a_name() -> None:
    assert set(CURVES) == set(get_args(CurveName))
