"""The readable reports: whole pictures in both languages, and rules that hold for any of them."""

import os
import re
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyte
import pytest
from support import samples
from support.samples import NOW, busy, hostile, no_gpu_mode, stuck, without_driver

from tui.facts.finding import Finding
from tui.facts.machine import DriverError, GpuMemory, Owner
from tui.facts.snapshot import Snapshot
from tui.facts.training import EtaWorking
from tui.text.cells import width
from tui.text.job_report import eta_working_text
from tui.text.report import jobs_report, pairs, status_report, stop_report
from tui.text.stop_report import step_text, stop_question
from tui.text.translate import Language, set_language

PICTURES = Path(__file__).parent / "data"
SNAPSHOTS = {
    "busy": busy(),
    "without_driver": without_driver(),
    "no_gpu_mode": no_gpu_mode(),
    "stuck": stuck(),
    "hostile": hostile(),
    "endings": replace(busy(), jobs=(samples.LOADING, samples.SERVICE, samples.STOPPED, samples.UNTRAINED)),
}
JOBS = (samples.RUNNING, samples.LOADING, samples.STUCK, samples.SERVICE, samples.FAILED, samples.UNTRAINED)


@pytest.fixture(autouse=True)
def _china(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "CST-8")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def compare(name: str, shown: str) -> None:
    """Against the committed picture; ``REWRITE_PICTURES=1`` in the environment makes it anew."""
    picture = PICTURES / f"{name}.txt"
    if os.environ.get("REWRITE_PICTURES"):
        picture.parent.mkdir(exist_ok=True)
        picture.write_text(shown + "\n", "utf-8")
    assert shown + "\n" == picture.read_text("utf-8")


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("cells", [80, 120])
@pytest.mark.parametrize("name", ["busy", "stuck", "without_driver", "no_gpu_mode", "endings"])
def test_status_looks_as_it_was_approved(name: str, cells: int, language: Language) -> None:
    set_language(language)
    compare(f"status-{name}-{cells}-{language}", status_report(SNAPSHOTS[name], cells))


@pytest.mark.parametrize("language", ["en", "zh"])
def test_jobs_and_stop_look_as_they_were_approved(language: Language) -> None:
    set_language(language)
    compare(f"jobs-80-{language}", jobs_report(JOBS, NOW))
    shown = (
        stop_report(samples.STOPPED_REPORT, samples.STOPPED),
        stop_report(samples.STUCK_REPORT, samples.STUCK),
    )
    compare(f"stop-80-{language}", "\n\n".join(shown))


def all_reports(cells: int, *, colour: bool = False, ascii: bool = False) -> Iterator[str]:
    for snapshot in SNAPSHOTS.values():
        yield status_report(snapshot, cells, colour, ascii)
    yield jobs_report(JOBS, NOW, cells, colour, ascii)
    yield jobs_report((), NOW, cells, colour, ascii)
    for report, job in (
        (samples.STOPPED_REPORT, samples.STOPPED),
        (samples.STUCK_REPORT, samples.STUCK),
        (None, samples.FINISHED),
    ):
        yield stop_report(report, job, cells, colour, ascii)


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("cells", [40, 57, 80, 100, 213])
def test_no_line_is_wider_than_the_terminal(cells: int, language: Language) -> None:
    set_language(language)
    for shown in all_reports(cells, colour=True):
        for line in plain(shown).split("\n"):
            assert width(line) <= cells, line
            assert line == line.rstrip()


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_terminal_shows_every_line_on_one_row(language: Language) -> None:
    set_language(language)
    for shown in all_reports(80, colour=True):
        lines = shown.split("\n")
        screen = pyte.Screen(80, len(lines))
        pyte.Stream(screen).feed("\r\n".join(lines))
        assert [row.rstrip() for row in screen.display] == plain(shown).split("\n")


def test_colours_change_nothing_but_colours() -> None:
    for coloured, bare in zip(all_reports(80, colour=True), all_reports(80), strict=True):
        assert plain(coloured) == bare


def test_ascii_draws_with_ascii_only() -> None:
    for name in ("busy", "stuck", "without_driver", "endings"):
        assert status_report(SNAPSHOTS[name], 80, ascii=True).isascii()


@pytest.mark.parametrize("language", ["en", "zh"])
def test_hostile_text_is_harmless_and_secrets_are_masked(language: Language) -> None:
    set_language(language)
    for cells in (80, 400):
        shown = status_report(hostile(), cells)
        assert all(line.isprintable() for line in shown.split("\n"))
        assert "hf_Ab1" not in shown
        assert "sk-a1B2" not in shown
        assert "me:pw@" not in shown
        assert "owned" not in shown


def test_no_driver_and_no_gpu_are_said_plainly() -> None:
    shown = status_report(without_driver("version_mismatch", "Driver/library version mismatch"))
    assert "upgraded under this container" in shown
    assert "no-GPU mode" in status_report(no_gpu_mode())
    silent = replace(no_gpu_mode(), host=samples.HOST, driver=replace(busy().driver, error=None), findings=())
    assert "The NVIDIA driver sees no GPU here." in status_report(silent)


@pytest.mark.parametrize("cells", [40, 60, 80, 120])
def test_memory_without_an_owner_has_its_row_at_every_width(cells: int) -> None:
    rows = [line for line in status_report(busy(), cells).split("\n") if "unexplained" in line]
    assert len(rows) == 1
    assert "1.1 GiB" in rows[0]
    if cells >= 80:
        assert "no visible process holds it" in rows[0]


def test_unknown_is_a_dash_with_its_reason_and_never_a_zero() -> None:
    card = replace(
        samples.gpu(),
        power=None,
        memory=GpuMemory(total=None, used=None, reserved=None, free=None),
        utilization=None,
        unknown={
            "memory.total": "not_supported",
            "memory.used": "not_supported",
            "clocks.memory": "out_of_range",
            "power": "no_permission",
            "utilization": "not_yet",
        },
    )
    shown = status_report(replace(busy(), gpus=(card, replace(card, index=1))), 100)
    assert "GPU 0, 1, GPU memory: not supported here" in shown
    assert "impossible" not in shown, "a clock of the memory is no size of it"
    assert "GPU 0, 1, power: no permission to read it" in shown
    row = next(line for line in shown.split("\n") if line.startswith("  0  RTX"))
    assert "0%" not in row
    assert "0 W" not in row


def test_old_readings_are_called_old() -> None:
    snapshot = replace(busy(), gpus=(replace(samples.gpu(), age=42.0),))
    assert "These readings are old: 42 s ago." in status_report(snapshot)


def test_a_driver_that_falls_silent_keeps_the_last_cards_and_says_so_once() -> None:
    snapshot = replace(
        busy(),
        driver=replace(busy().driver, error=DriverError("timed_out")),
        gpus=(replace(samples.gpu(), age=42.0),),
        findings=(Finding("driver_silent", "danger", evidence={"seconds": 42.0}),),
    )
    shown = status_report(snapshot)
    assert shown.count("does not answer") == 1
    assert "RTX 4090" in shown
    assert "42 s ago" in shown


def test_a_hot_card_is_named() -> None:
    snapshot = replace(busy(), gpus=(replace(samples.gpu(), throttle=("sw_power_cap", "hw_thermal")),))
    shown = status_report(snapshot)
    assert "GPU 0: slowed down by the hardware: too hot" in shown
    assert "power limit" not in shown


def owners_of(*owners: Owner) -> Snapshot:
    return replace(busy(), gpus=(samples.gpu(owners=owners),))


def test_less_certain_evidence_is_explained() -> None:
    shown = status_report(owners_of(replace(samples.rank(0, 48230, 19.5), evidence="inferred")))
    assert "inferred: the driver's process has a PID outside this container" in " ".join(shown.split())
    assert "measured:" not in status_report(busy())


def test_a_holder_without_a_size_shows_a_dash() -> None:
    shown = status_report(owners_of(samples.rank(0, 48230, None)))
    row = next(line for line in shown.split("\n") if "48230" in line and "rank 0" in line)
    assert re.search(r"rank 0 +- +holder", row)
    assert "it has the card open, its size is unknown" in shown


def test_only_the_newest_ended_jobs_are_shown_in_full() -> None:
    ended = [replace(samples.FINISHED, id=f"old-{number}", ended_at=NOW - number) for number in range(1, 6)]
    shown = status_report(replace(busy(), jobs=tuple(reversed(ended))))
    assert "old-1" in shown
    assert "old-3" in shown
    assert "old-4" not in shown
    assert "2 older jobs are listed by `llamaherd jobs`." in shown


@pytest.mark.parametrize(
    ("working", "eta", "shown"),
    [
        (samples.PROGRESS.eta_working, 1026, "120 x 8.00 s + 2 evaluations x 31 s + 1 save x 4 s = 17:06"),
        (EtaWorking(3, 0.5), 1.5, "3 x 0.500 s = 0:02"),
        (EtaWorking(3, 0.5, tail=12.2), 13.7, "3 x 0.500 s + 12 s at the end = 0:14"),
        (EtaWorking(3, 2, current=8.0), 14, "3 x 2.00 s + 8 s under way = 0:14"),
        (EtaWorking(3, 9, current=-4.0), 23, "3 x 9.00 s - 4 s already spent = 0:23"),
        (
            EtaWorking(3, 9, evals_left=1, at_least=True),
            27,
            "at least 3 x 9.00 s + 1 evaluation x a time not yet measured = 0:27",
        ),
    ],
)
def test_the_sum_behind_an_eta_is_shown(working: EtaWorking, eta: float, shown: str) -> None:
    assert eta_working_text(working, eta) == shown


def test_the_question_before_a_stop_says_what_is_lost() -> None:
    job = samples.RUNNING
    assert stop_question(job, 30, "stop") == (
        "Stop 1130-1541-lora? 30 steps are lost; the last complete checkpoint is checkpoint-350."
    )
    assert "No step is lost: checkpoint-350 is complete." in stop_question(job, 0, "stop")
    assert "not known" in stop_question(job, None, "force")
    fresh = replace(job, progress=replace(samples.PROGRESS, last_checkpoint=None))
    assert "All 380 steps are lost: there is no complete checkpoint." in stop_question(fresh, 380, "stop")
    assert stop_question(samples.SERVICE, None, "stop") == "Stop 1130-1650-webui? Whoever uses it is cut off."


def test_a_step_that_goes_on_has_no_result_yet() -> None:
    step = samples.STOPPED_REPORT.steps[1]
    going_on = "Interrupted the trainer (SIGINT; torchrun: SIGTERM), PID 48222"
    assert step_text(step) == f"{going_on}: 5.7 s, 2 processes left."
    assert step_text(replace(step, ended=None)) == going_on
    assert "(a forced stop was asked for)" in step_text(replace(step, note="forced"))


def test_a_stop_never_claims_more_than_was_proved() -> None:
    assert "Every process of it is gone" in stop_report(samples.STOPPED_REPORT, samples.STOPPED)
    unverified = stop_report(replace(samples.STOPPED_REPORT, unverified=True), samples.STOPPED)
    assert "Every process of it is gone" not in unverified
    assert "as far as repeated looks can tell" in unverified
    assert "gone" not in stop_report(samples.STUCK_REPORT, samples.STUCK)
    under_way = stop_report(
        replace(samples.STOPPED_REPORT, seconds=None), replace(samples.RUNNING, state="stopping")
    )
    assert "The stop is under way." in under_way


def test_pairs_keep_values_whole() -> None:
    shown = pairs([("命令", "x" * 200), ("a", "HF_TOKEN=abc\x1b[31m")])
    assert shown == f"命令  {'x' * 200}\na     HF_TOKEN=***"
