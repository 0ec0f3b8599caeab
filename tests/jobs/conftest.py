"""A yard of real jobs for each test that asks for one."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.jobs import Yard, yard


@pytest.fixture
def jobs(tmp_path: Path) -> Iterator[Yard]:
    with yard(tmp_path) as made:
        yield made
