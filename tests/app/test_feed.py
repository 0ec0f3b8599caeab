"""The thread that takes pictures, and the slot it puts them in."""

import threading
import time
from collections.abc import Callable

import pytest
from support.recording import one_gpu
from support.waiting import wait_until

from tui.app.feed import ThreadFeed
from tui.facts.snapshot import Snapshot


class Camera:
    def __init__(self, take: Callable[[int], Snapshot]) -> None:
        self.taken = 0
        self.closed = threading.Event()
        self._take = take

    def snapshot(self) -> Snapshot:
        self.taken += 1
        return self._take(self.taken)

    def close(self) -> None:
        self.closed.set()


def test_nothing_is_made_before_the_start() -> None:
    feed = ThreadFeed(lambda: pytest.fail("made too early"), 1.0)
    assert feed.latest() is None
    feed.close()


def test_the_newest_picture_is_in_the_slot_and_no_other() -> None:
    camera = Camera(one_gpu)
    feed = ThreadFeed(lambda: camera, 0.01)
    feed.start()
    wait_until(lambda: camera.taken > 5, 5, "some pictures")
    newest = feed.latest()
    assert newest is not None
    assert newest.number <= camera.taken <= newest.number + 1
    feed.close()
    assert camera.closed.is_set()


def test_looking_into_the_slot_never_waits_for_a_camera_that_hangs() -> None:
    hang = threading.Event()

    def take(tick: int) -> Snapshot:
        if tick > 1:
            hang.wait(10)
        return one_gpu(tick)

    feed = ThreadFeed(lambda: Camera(take), 0.01)
    feed.start()
    wait_until(lambda: feed.latest() is not None, 5, "the first picture")
    began = time.monotonic()
    newest = feed.latest()
    assert newest is not None
    assert newest.number == 1
    feed.close(patience=0.05)
    assert time.monotonic() - began < 10
    hang.set()


def test_a_broken_camera_is_said_and_another_one_is_tried() -> None:
    made = 0

    def make() -> Camera:
        nonlocal made
        made += 1
        if made == 2:
            raise OSError("no camera")
        return Camera(one_gpu if made > 2 else breaking)

    def breaking(tick: int) -> Snapshot:
        if tick > 1:
            raise ValueError("a lens")
        return one_gpu(tick)

    feed = ThreadFeed(make, 0.01, again_after=0.2)
    feed.start()
    wait_until(lambda: feed.trouble() == "ValueError: a lens", 5, "the camera breaks")
    before = feed.latest()
    assert before is not None
    wait_until(lambda: feed.trouble() == "OSError: no camera", 5, "none can be made")
    wait_until(lambda: feed.trouble() == "", 5, "pictures again")
    after = feed.latest()
    assert after is not None
    assert after.number > before.number
    feed.close()
