"""Fixtures of more than one folder of tests."""

import signal
from pathlib import Path

import pytest
from support.fake_nvml import CompilerMissingError, FakeNvml

# A background shell leaves SIGINT ignored and nohup SIGHUP, and every child inherits that; what is caught
# here is not ignored there.
signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, lambda *_: None)


@pytest.fixture
def fake_nvml(tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> FakeNvml:
    """A stand-in NVML library with one idle card; built once per test session."""
    try:
        return FakeNvml(tmp_path, library_folder=tmp_path_factory.getbasetemp() / "fake-nvml")
    except CompilerMissingError as missing:
        pytest.skip(str(missing))
