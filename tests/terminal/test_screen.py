"""The screen in a real pseudo-terminal, read through a terminal emulator."""

import os
import signal
import time
from pathlib import Path

import pytest
from support.terminal import Terminal
from terminal.conftest import Play

SESSION = ("X", "\x1b", "2", "j", "j", "\x1b", "?", "\x1b", "n", "\x1b", "L", "T", "3", "\x1b", "L", "T")
"""Keys through every screen: modals, scrolling, wide characters, themes."""


def opened(terminal: Terminal) -> Terminal:
    terminal.wait_for(lambda text: "qwen-lora" in text, 20, "the first figures")
    terminal.settle()
    return terminal


@pytest.mark.parametrize(
    ("size", "colours", "keys"),
    [((80, 24), "", SESSION), ((160, 45), "truecolor", ("X", "\x1b", "2", "j", "\x1b", "L", "T"))],
)
def test_with_and_without_the_frame_diff_the_screens_are_equal(
    play: Play, size: tuple[int, int], colours: str, keys: tuple[str, ...]
) -> None:
    columns, lines = size
    diffed = opened(play("--still", columns=columns, lines=lines, COLORTERM=colours))
    plain = opened(play("--still", "--plain", columns=columns, lines=lines, COLORTERM=colours))
    for key in ("", *keys):
        for terminal in (diffed, plain):
            terminal.type(key)
        for terminal in (diffed, plain):
            terminal.settle(0.15)
        deadline = time.monotonic() + 5
        while diffed.looks() != plain.looks() and time.monotonic() < deadline:
            diffed.read(0.1)
            plain.read(0.1)
        assert diffed.text == plain.text, repr(key)
        assert diffed.looks() == plain.looks(), repr(key)
    assert diffed.bytes < plain.bytes


def test_nothing_changed_is_no_byte(play: Play) -> None:
    terminal = opened(play("--scene", "eight", "--still", "--period", "0.2", columns=160, lines=45))
    terminal.settle(0.7)
    before = terminal.bytes
    terminal.read(2.0)
    assert terminal.bytes == before


def test_everything_changing_stays_within_the_budget(play: Play) -> None:
    terminal = opened_eight(play)
    before, began = terminal.bytes, time.monotonic()
    while time.monotonic() - began < 6:
        terminal.read(0.5)
    per_second = (terminal.bytes - before) / (time.monotonic() - began)
    assert 100 < per_second < 1700


def opened_eight(play: Play) -> Terminal:
    terminal = play("--scene", "eight", columns=160, lines=45)
    terminal.wait_for(lambda text: "A100" in text, 20, "the cards")
    return terminal


def test_a_resize_gives_the_screen_of_the_new_size(play: Play) -> None:
    terminal = opened(play("--still", columns=80, lines=24))
    terminal.resize(160, 45)
    terminal.wait_for(lambda text: "╮" in text, 10, "boxes around the panels")
    terminal.wait_for(shows_log, 10, "the log panel has looked for its file")
    fresh = opened(play("--still", columns=160, lines=45))
    fresh.wait_for(shows_log, 10, "there, too")
    assert terminal.text == fresh.text
    terminal.resize(60, 20)
    terminal.wait_for(lambda text: "╮" not in text, 10, "rules instead of boxes")
    terminal.resize(50, 10)
    terminal.wait_for(lambda text: "too small" in text, 10, "one sentence")


def shows_log(text: str) -> bool:
    return "The log cannot be read" in text


@pytest.mark.parametrize(
    "environ",
    [
        {"LANG": "C"},
        {"LANG": ""},
        {"LANG": "", "TERM": "screen"},
        {"LANG": "en_US.UTF-8", "TERM": "tmux-256color"},
        {"LANG": "C.UTF-8", "TERM": "xterm"},
        {"LANG": "C.UTF-8", "NO_COLOR": "1"},
    ],
    ids=lambda environ: " ".join(f"{name}={value}" for name, value in environ.items()),
)
def test_it_opens_in_any_locale_and_terminal(play: Play, environ: dict[str, str]) -> None:
    terminal = opened(play("--still", **environ))
    assert "GPU memory" in terminal.text
    assert "21.2/24.0 GiB" in terminal.text or "20.8/24.0 GiB" in terminal.text
    terminal.type("q")
    assert terminal.wait_exit(10) == 0


def test_chinese_keeps_its_columns(play: Play) -> None:
    terminal = opened(play("--still", "--lang", "zh", columns=160, lines=45))
    edges = [[x for x, cell in enumerate(row) if cell[0] == "│"] for row in terminal.looks()]
    framed = [edge for edge in edges if len(edge) == 4]
    assert len(framed) > 20
    assert all(edge == [0, 79, 80, 159] for edge in framed)


def test_ascii_draws_no_other_character(play: Play) -> None:
    terminal = opened(play("--still", "--ascii"))
    assert terminal.text.replace("中文", "").isascii()


def test_a_closed_terminal_ends_the_screen(play: Play) -> None:
    terminal = opened(play("--still"))
    signal.pidfd_send_signal(os.pidfd_open(terminal.pid), signal.SIGHUP)
    assert terminal.wait_exit(5) == -signal.SIGHUP


def test_a_stalled_terminal_costs_no_memory_and_drains_to_the_right_picture(play: Play) -> None:
    terminal = opened_eight_fast(play)
    before = _memory(terminal.pid)
    time.sleep(4)  # nobody reads: the pty fills within the first second
    assert _cpu_moves(terminal.pid), "the loop goes on while nobody reads"
    assert _memory(terminal.pid) - before < 4 << 20
    terminal.type("p")
    terminal.wait_for(lambda text: "drawing paused" in text, 15, "the key that was pressed meanwhile")
    terminal.settle()
    shown = terminal.text
    terminal.type("r")
    terminal.settle()
    assert terminal.text == shown


def opened_eight_fast(play: Play) -> Terminal:
    terminal = play("--scene", "eight", "--period", "0.05", columns=160, lines=45)
    terminal.wait_for(lambda text: "A100" in text, 20, "the cards")
    terminal.read(1.0)
    return terminal


def _memory(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def _cpu_moves(pid: int) -> bool:
    def ticks() -> int:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        return int(fields[11]) + int(fields[12])

    before = ticks()
    time.sleep(1.0)
    return ticks() > before
