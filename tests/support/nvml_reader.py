"""An NVML session in a process of its own, read when a test says so."""

import os
import subprocess
import sys
from collections.abc import Mapping

import msgspec

from tui.facts.machine import DriverReading, GpuReading

# Reads once per line; the line is what the session's clock says.
READER = """
import sys
import msgspec
from tui.collect.nvml import NvmlSession
now = 0.0
session = NvmlSession(brief={brief}, clock=lambda: now)
for line in sys.stdin:
    now = float(line)
    print(msgspec.json.encode(session.read()).decode(), flush=True)
"""


class Reader:
    """One NVML session in a process that ends with the test."""

    def __init__(self, environment: Mapping[str, str], brief: bool = False) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-W", "always", "-c", READER.format(brief=brief)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **environment},
            text=True,
        )

    def read(self, at: float = 0.0) -> DriverReading:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{at}\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, self.process.communicate()[1]
        return msgspec.json.decode(line, type=DriverReading)

    def card(self) -> GpuReading:
        reading = self.read()
        assert reading.driver.error is None
        (gpu,) = reading.gpus
        return gpu

    def end(self) -> str:
        """What the process wrote to its standard error."""
        return self.process.communicate(timeout=10)[1]
