"""What the tests with real LLaMA-Factory share."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from support.command_line import Herd
from support.real_llamafactory import (
    NoPythonError,
    RealLlamaFactory,
    provide_llamafactory,
    run_environment,
)


@pytest.fixture(scope="session")
def llamafactory() -> RealLlamaFactory:
    """Real LLaMA-Factory with a tiny model; the first run on a machine takes minutes to make it."""
    try:
        return provide_llamafactory()
    except NoPythonError as reason:
        pytest.skip(str(reason))


@pytest.fixture
def herd(tmp_path: Path) -> Iterator[Herd]:
    """The command line with fresh state; whatever a test left running is ended after it."""
    with TemporaryDirectory(prefix="herd") as scratch:  # shorter than tmp_path, see run_environment
        herd = Herd.at(tmp_path / "state", run_environment(Path(scratch)))
        yield herd
        herd.end_all()
