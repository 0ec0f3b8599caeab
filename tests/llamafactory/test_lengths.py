"""The probe of token lengths, seen from outside: reports, endings, and everything that can go wrong."""

import json
import os
import sys
import threading
import time
from pathlib import Path

import pytest
from support.waiting import wait_until

from tui.facts.steps import LengthProgress, TokenLengths
from tui.llamafactory.config import TrainingConfig
from tui.llamafactory.environment import Environment
from tui.llamafactory.lengths import LengthProbe

CONFIG = {"model_name_or_path": "m", "hf_hub_token": "hf_aaaaaaaaaaaaaaaaaaaaaaaa"}


def probe(folder: Path, body: str, *, seconds: float = 30.0, model: Path | None = None) -> LengthProbe:
    """A probe whose Python is a script that plays the other side; it notes its PID."""
    python = folder / "python"
    python.write_text(
        f"#!{sys.executable}\nimport json, os, sys, time\n"
        f"open({str(folder / 'pid')!r}, 'w').write(str(os.getpid()))\n"
        f"def say(**report): print(json.dumps(report), flush=True)\n{body}\n"
    )
    python.chmod(0o755)
    config = TrainingConfig(CONFIG, folder / "t.yaml", cwd=folder)
    environment = Environment(folder, python, None, "option")
    return LengthProbe(environment, config, dict(os.environ), seconds=seconds, model=model)


def is_gone(folder: Path) -> bool:
    return not Path(f"/proc/{(folder / 'pid').read_text()}").exists()


def test_progress_and_the_final_report(tmp_path: Path) -> None:
    body = (
        "say(samples=5, seconds=0.5); say(samples=9, seconds=1.0)\n"
        "say(final=True, samples=12, seconds=1.5, counts=[[40, 10], [41, 2]], complete=True, dropped=3)"
    )
    seen: list[LengthProgress] = []
    with probe(tmp_path, body) as running:
        lengths = running.run(seen.append)
    assert seen == [LengthProgress(5, 0.5), LengthProgress(9, 1.0)]
    assert lengths == TokenLengths({40: 10, 41: 2}, complete=True, dropped=3, seconds=1.5)
    assert is_gone(tmp_path)


def test_the_request_goes_over_standard_input_and_secrets_never_over_arguments(tmp_path: Path) -> None:
    body = (
        "request = json.load(sys.stdin)\n"
        "seen = dict(request=request, argv=sys.argv, gpus=os.environ['CUDA_VISIBLE_DEVICES'])\n"
        f"json.dump(seen, open({str(tmp_path / 'seen')!r}, 'w'))\nsay(final=True)"
    )
    with probe(tmp_path, body, seconds=7, model=tmp_path / "found") as running:
        running.run()
    seen = json.loads((tmp_path / "seen").read_text())
    assert seen["request"]["values"] == {**CONFIG, "model_name_or_path": str(tmp_path / "found")}
    assert seen["request"]["seconds"] == 7
    assert "hf_" not in " ".join(seen["argv"])
    assert seen["gpus"] == ""


def test_a_problem_keeps_what_was_measured(tmp_path: Path) -> None:
    body = "say(final=True, samples=1, seconds=2.0, counts=[[7, 1]], problem='timed_out', detail='')"
    with probe(tmp_path, body) as running:
        lengths = running.run()
    assert (lengths.problem, lengths.counts, lengths.complete) == ("timed_out", {7: 1}, False)


def test_the_last_words_of_a_probe_that_broke_are_kept_without_secrets(tmp_path: Path) -> None:
    body = "sys.exit('ImportError: no module; token=hf_aaaaaaaaaaaaaaaaaaaaaaaa')"
    with probe(tmp_path, body) as running:
        lengths = running.run()
    assert lengths.problem == "environment"
    assert lengths.detail.startswith("ImportError: no module")
    assert "hf_a" not in lengths.detail


def test_a_python_that_cannot_start_is_a_problem(tmp_path: Path) -> None:
    running = probe(tmp_path, "")
    (tmp_path / "python").unlink()
    assert running.run().problem == "environment"


@pytest.mark.parametrize(
    "lines",
    [
        "print('no json'); print('[' * 100000); print('{\"final\": 1}')",
        "os.write(1, bytes(range(256)) * 100)",
        "print('x' * (20 << 20))",
    ],
)
def test_what_is_no_report_is_none(tmp_path: Path, lines: str) -> None:
    with probe(tmp_path, lines) as running:
        lengths = running.run()
    assert (lengths.problem, lengths.counts) == ("environment", {})


def test_impossible_counts_are_left_out(tmp_path: Path) -> None:
    counts = "[[5, 1], [-1, 2], [3, -1], ['a', 1], [1], 7, [True, 1], [1 << 40, 1], [2.5, 1]]"
    with probe(tmp_path, f"say(final=True, counts={counts}, dropped='x', problem='odd')") as running:
        lengths = running.run()
    assert lengths == TokenLengths({5: 1})


def test_cancelling_ends_the_probe_soon(tmp_path: Path) -> None:
    running = probe(tmp_path, "say(samples=3, seconds=0.1)\ntime.sleep(600)")
    first = threading.Event()
    results: list[TokenLengths] = []
    with running:
        thread = threading.Thread(target=lambda: results.append(running.run(lambda _: first.set())))
        thread.start()
        assert first.wait(20)
        began = time.monotonic()
        running.cancel()
        thread.join(20)
    assert results[0].problem == "cancelled"
    assert time.monotonic() - began < 5
    assert is_gone(tmp_path)


def test_a_probe_that_hangs_is_ended_at_its_deadline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui.llamafactory.lengths._GRACE", 0.5)
    with probe(tmp_path, "time.sleep(600)", seconds=0.5) as running:
        lengths = running.run()
    assert lengths.problem == "timed_out"
    assert is_gone(tmp_path)


def test_a_probe_that_ignores_the_request_to_end_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tui.llamafactory.lengths._GRACE", 1.0)
    monkeypatch.setattr("tui.llamafactory.lengths._END", 0.3)
    monkeypatch.setattr("tui.llamafactory.lengths._LAST_WORD", 0.3)
    body = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(600)"
    with probe(tmp_path, body, seconds=1.0) as running:
        assert running.run().problem == "timed_out"
    wait_until(lambda: is_gone(tmp_path), 5, "the probe is gone")


def test_what_was_measured_before_it_was_cancelled_is_kept(tmp_path: Path) -> None:
    body = (
        "import signal\n"
        "def last(*_):\n    say(final=True, counts=[[9, 4]], problem='cancelled'); sys.exit()\n"
        "signal.signal(signal.SIGTERM, last)\nsay(samples=4, seconds=0.1)\ntime.sleep(600)"
    )
    running = probe(tmp_path, body)
    with running:
        lengths = running.run(lambda _: running.cancel())
    assert (lengths.problem, lengths.counts, lengths.complete) == ("cancelled", {9: 4}, False)


def test_an_interrupt_from_the_keyboard_cancels(tmp_path: Path) -> None:
    def interrupt(_progress: LengthProgress) -> None:
        raise KeyboardInterrupt

    with probe(tmp_path, "say(samples=3, seconds=0.1)\ntime.sleep(600)") as running:
        assert running.run(interrupt).problem == "cancelled"
    assert is_gone(tmp_path)


def test_an_error_while_reporting_ends_the_probe(tmp_path: Path) -> None:
    def fail(_progress: LengthProgress) -> None:
        raise ZeroDivisionError

    running = probe(tmp_path, "say(samples=3, seconds=0.1)\ntime.sleep(600)")
    with pytest.raises(ZeroDivisionError), running:
        running.run(fail)
    assert is_gone(tmp_path)
