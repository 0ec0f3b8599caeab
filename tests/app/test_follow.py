"""Following a log file."""

from pathlib import Path

import pytest
from support.waiting import wait_until

from tui.app.follow import LINES_KEPT, WINDOW, Follower, LogView, Tail


def test_only_what_is_new_is_read(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text("one\ntwo\nunfin")
    tail = Tail(log)
    assert tail.read() == LogView(log, ("one", "two"), "unfin")
    with log.open("a") as file:
        file.write("ished\nthree")
    assert tail.read() == LogView(log, ("one", "two", "unfinished"), "three")


def test_a_huge_log_opens_at_its_end(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    with log.open("wb") as file:
        file.seek(500 << 20)
        file.write(b"\nthe last line\n")
    view = Tail(log).read()
    assert view.cut
    assert view.lines[-1] == "the last line"
    assert WINDOW < 500 << 20


def test_lines_are_bounded(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text("x\n" * (LINES_KEPT + 5))
    assert len(Tail(log).read().lines) == LINES_KEPT


@pytest.mark.parametrize("replacement", ["n\n", "a new and longer file than before\n"])
def test_a_log_that_was_started_anew_is_read_anew(tmp_path: Path, replacement: str) -> None:
    log = tmp_path / "train.log"
    log.write_text("old line\n")
    tail = Tail(log)
    tail.read()
    log.unlink()
    (tmp_path / "keeps-the-inode").write_text("")
    log.write_text(replacement)
    assert tail.read().lines == (replacement.strip(),)


def test_a_missing_file_is_said_and_found_when_it_comes(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    tail = Tail(log)
    assert tail.read().error == "No such file or directory"
    log.write_text("here\n")
    assert tail.read() == LogView(log, ("here",))


def test_colours_and_secrets_do_not_reach_the_screen(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text("\x1b[31mred\x1b[0m \x1b]0;title\x07HF_TOKEN=hf_abcdefghijklmnopqrstuvwxyz\n")
    (line,) = Tail(log).read().lines
    assert "\x1b" not in line
    assert "hf_abc" not in line


def test_the_thread_goes_from_file_to_file(tmp_path: Path) -> None:
    follower = Follower()
    try:
        for name in ("a", "b"):
            (tmp_path / name).write_text(f"{name}\n")
        follower.follow(tmp_path / "a")
        wait_until(lambda: follower.latest().lines == ("a",), 5, "the first file")
        follower.follow(tmp_path / "b")
        wait_until(lambda: follower.latest().lines == ("b",), 5, "the second file")
        follower.follow(None)
        assert follower.latest() == LogView()
    finally:
        follower.close()
