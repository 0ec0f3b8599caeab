"""Records what a command prints, with the arrival time of every chunk, for ``python -m tests.bench.eta``.

``python -m tests.bench.record OUT.jsonl COMMAND…``: JSON lines, first ``{"start": epoch, "cmd": […]}``,
then ``{"t": seconds since start, "b": base64 of the bytes}`` per chunk, last ``{"t": …, "exit": code}``.
"""

import base64
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

_READ = 1 << 16


def record(path: Path, command: Sequence[str]) -> int:
    """Run ``command``, write its recording to ``path``, and return its exit code."""
    began = time.monotonic()
    with (
        path.open("w") as file,
        subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, bufsize=0
        ) as process,
    ):

        def write(**values: object) -> None:
            file.write(json.dumps(values) + "\n")

        write(start=time.time(), cmd=list(command))
        assert process.stdout is not None
        while chunk := os.read(process.stdout.fileno(), _READ):
            write(t=round(time.monotonic() - began, 3), b=base64.b64encode(chunk).decode())
        code = process.wait()
        write(t=round(time.monotonic() - began, 3), exit=code)
    return code


if __name__ == "__main__":
    sys.exit(record(Path(sys.argv[1]), sys.argv[2:]))
