"""The screen on this machine, with real jobs under real keepers, and a driver that is slow or hangs."""

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.fake_nvml import CompilerMissingError, FakeNvml, cards
from support.jobs import Yard, yard
from support.terminal import Terminal
from terminal.conftest import clean_environ

OPEN = "import sys; from tui.app import Options, run; sys.exit(run(Options({})))"

Open = Callable[..., Terminal]


@pytest.fixture
def jobs(tmp_path: Path) -> Iterator[Yard]:
    path = tmp_path / "yard"
    path.mkdir()
    with yard(path) as opened:
        yield opened


@pytest.fixture
def screen(jobs: Yard) -> Iterator[Open]:
    opened: list[Terminal] = []

    def start(options: str = "", **environ: str) -> Terminal:
        argv = [sys.executable, "-c", OPEN.format(options)]
        chosen = clean_environ({"LLAMAHERD_HOME": str(jobs.root), "HOME": str(jobs.root.parent), **environ})
        terminal = Terminal(argv, columns=100, lines=32, environ=chosen)
        opened.append(terminal)
        return terminal

    yield start
    for terminal in opened:
        terminal.close()


def shows(text: str) -> Callable[[str], bool]:
    return lambda shown: text in shown


def test_a_job_is_stopped_from_the_screen_and_proved_gone(jobs: Yard, screen: Open) -> None:
    job = jobs.start("sessions")
    terminal = screen()
    terminal.wait_for(shows("X stop"), 30, "the job is seen")
    terminal.type("X")
    terminal.wait_for(shows("Cancel: let it run on"), 10, "the question")
    terminal.type("\r")
    terminal.wait_for(lambda text: "Cancel" not in text, 10, "Enter cancels")
    assert job.survivors()
    terminal.type("X")
    terminal.wait_for(shows("Cancel: let it run on"), 10, "the question again")
    terminal.type("\x1b[B\r")
    terminal.wait_for(shows("Every process of it is gone"), 30, "the proof")
    assert not job.survivors()
    terminal.type("\r")
    terminal.wait_for(shows("stopped"), 10, "the list says so")


def test_jobs_outlive_a_killed_screen_and_the_next_one_finds_them(jobs: Yard, screen: Open) -> None:
    job = jobs.start("sessions")
    first = screen()
    first.wait_for(shows("X stop"), 30, "the job is seen")
    signal.pidfd_send_signal(os.pidfd_open(first.pid), signal.SIGKILL)
    assert first.wait_exit(5) == -signal.SIGKILL
    assert job.survivors()
    second = screen()
    second.wait_for(shows("X stop"), 30, "the job is found again")
    second.type("q")
    assert second.wait_exit(10) == 0
    second.read(0.3)
    said = second.newest.decode(errors="replace").rpartition("\x1b")[2]
    assert "go on:" in said or "goes on:" in said
    assert job.found.record.id in said
    assert job.survivors()


def test_read_only_looks_and_does_not_act(jobs: Yard, screen: Open) -> None:
    job = jobs.start("sleeper")
    terminal = screen("readonly=True")
    terminal.wait_for(shows("running"), 30, "the job is seen")
    terminal.type("X")
    terminal.wait_for(shows("opened to look"), 10, "the refusal")
    assert job.survivors()


@pytest.fixture
def nvml(tmp_path: Path) -> FakeNvml:
    try:
        return FakeNvml(tmp_path)
    except CompilerMissingError as error:
        pytest.skip(str(error))


def test_a_driver_that_takes_five_seconds_does_not_delay_the_first_frame(
    nvml: FakeNvml, screen: Open
) -> None:
    nvml.write(cards(8), rules=["sleep nvmlInitWithFlags 5000"])
    began = time.monotonic()
    terminal = screen(**nvml.env())
    terminal.wait_for(shows("q leave"), 15, "the first frame")
    first = time.monotonic() - began
    terminal.type("?")
    terminal.wait_for(shows("Tab goes to the next panel"), 5, "a key is answered meanwhile")
    terminal.type("\x1b")
    assert "4090" not in terminal.text
    terminal.wait_for(shows("4090"), 20, "the cards when they come")
    assert first < time.monotonic() - began - 2


def test_a_hanging_driver_costs_figures_their_freshness_and_no_key_and_no_leaving(
    nvml: FakeNvml, screen: Open
) -> None:
    nvml.write(cards(2))
    terminal = screen(**nvml.env())
    terminal.wait_for(shows("4090"), 30, "the cards")
    nvml.write(cards(2), rules=["sleep * 60000"])
    terminal.wait_for(shows("GPU figures from"), 30, "their age is said")
    terminal.type("2")
    terminal.wait_for(shows("No process holds a card."), 5, "a key is answered")
    terminal.type("q")
    assert terminal.wait_exit(10) == 0


def test_without_a_card_the_screen_opens_and_says_so(screen: Open) -> None:
    terminal = screen()
    terminal.wait_for(shows("no GPU"), 30, "no card is said")
    terminal.wait_for(shows("RAM "), 10, "the rest works")
