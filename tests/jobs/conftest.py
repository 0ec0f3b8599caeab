"""A yard of real jobs for each test that asks for one."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.jobs import Yard, kept, yard
from support.waiting import wait_until

from tui.jobs.folder import JobFolder


@pytest.fixture
def jobs(tmp_path: Path) -> Iterator[Yard]:
    with yard(tmp_path) as made:
        yield made


@pytest.fixture(autouse=True)
def nothing_left(tmp_path: Path) -> Iterator[None]:
    """A test that failed half-way leaves no keeper and no job behind."""
    yield
    for folder in kept(tmp_path):
        folder.request("force")
        wait_until(_is_free(folder), 10, f"{folder.path} is kept no more")


def _is_free(folder: JobFolder) -> Callable[[], bool]:
    return lambda: not folder.is_kept()
