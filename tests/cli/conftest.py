"""The command line as a person calls it, with a stand-in trainer."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.command_line import Herd
from support.stand_in_trainer import make_environment


@pytest.fixture
def herd(tmp_path: Path) -> Iterator[Herd]:
    """``llamaherd`` with state, home and settings of its own."""
    home = tmp_path / "home"
    home.mkdir()
    variables = {"HOME": str(home), "PATH": os.environ.get("PATH", os.defpath)}
    herd = Herd.at(tmp_path / "state", variables)
    yield herd
    herd.end_all()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with a training environment in ``.venv``."""
    folder = tmp_path / "project"
    folder.mkdir()
    make_environment(folder / ".venv")
    return folder
