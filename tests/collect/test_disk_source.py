"""Disks that are read beside their reader, which never waits for one that hangs."""

import threading
import time
from collections.abc import Iterable

import pytest
from support.waiting import wait_until

from tui.collect.disk_source import DiskSource
from tui.collect.disks import DiskReader
from tui.collect.proc import Proc
from tui.facts.machine import Disk


class Disks(DiskReader):
    """A reader that may be held up, and remembers what it was asked for."""

    def __init__(self) -> None:
        super().__init__(Proc())
        self.asked: list[tuple[str, ...]] = []
        self.go_on = threading.Event()
        self.go_on.set()

    def read(self, paths: Iterable[str] = ()) -> tuple[Disk, ...]:
        self.asked.append(tuple(paths))
        self.go_on.wait(30)
        return (Disk(f"/{len(self.asked)}", None, None, None, "system"),)


def looking() -> bool:
    return any(thread.name == "disk-source" for thread in threading.enumerate())


def test_looks_are_taken_again_and_have_an_age() -> None:
    disks = Disks()
    source = DiskSource(disks, period=0.05)
    assert source.latest() == (None, ())
    source.start()
    source.start()
    age, first = source.latest(10.0)
    assert age is not None
    assert first
    wait_until(lambda: len(disks.asked) > 3, 10, "more looks")
    source.close()
    wait_until(lambda: not looking(), 10, "a closed source looks no more")


def test_new_paths_are_looked_at_without_waiting() -> None:
    disks = Disks()
    source = DiskSource(disks, period=600)
    source.watch(["/a"])
    source.start()
    source.latest(10.0)
    source.watch(["/a"])
    source.watch(["/a", "/b", "/a"])
    wait_until(lambda: len(disks.asked) == 2, 10, "a second look")
    assert disks.asked == [("/a",), ("/a", "/b")]
    source.close()


def test_a_look_that_hangs_holds_up_nobody() -> None:
    disks = Disks()
    source = DiskSource(disks, period=0.01)
    source.start()
    source.latest(10.0)
    disks.go_on.clear()
    count = len(disks.asked)
    wait_until(lambda: len(disks.asked) > count, 10, "a look begins that will hang")
    began = time.monotonic()
    age, shown = source.latest(5.0)
    source.watch(["/new"])
    source.close()
    assert time.monotonic() - began < 10
    assert shown
    assert age is not None
    disks.go_on.set()
    wait_until(lambda: not looking(), 10, "the look ends when it can")


def test_a_real_look() -> None:
    source = DiskSource(DiskReader(Proc()))
    source.start()
    age, disks = source.latest(10.0)
    source.close()
    assert disks[0].path == "/"
    assert age == pytest.approx(0.0, abs=5)
