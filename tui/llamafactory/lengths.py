"""Measuring token lengths: a probe in the training environment, watched and bounded from here.

The probe is a process of its own, since tokenizers live in the training environment. It is asked for
nothing but numbers, has no card, goes to no hub, and is ended when its time is over or nobody waits.
"""

import json
import os
import select
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import IO, get_args

from tui.facts.secrets import mask_text
from tui.facts.steps import LengthProblem, LengthProgress, TokenLengths
from tui.llamafactory.config import TrainingConfig
from tui.llamafactory.environment import Environment

MOST_ROWS = 200_000
MOST_SECONDS = 600.0

_SCRIPT = Path(__file__).with_name("length_probe.py")
_GRACE = 20.0  # the probe looks at its own clock; imports are not in it
_END = 5.0
_LAST_WORD = 3.0
_POLL = 0.1
_LINE_LIMIT = 16 << 20
_PIECE = 1 << 16
_DETAIL = 500
_LENGTH_LIMIT = 1 << 31
_PROBLEMS: tuple[LengthProblem, ...] = get_args(LengthProblem)


class LengthProbe:
    """One measurement. ``with LengthProbe(...) as probe: lengths = probe.run()``; leaving ends it.

    Args:
        environment: Where LLaMA-Factory lives.
        config: The training, resolved in its folder.
        environ: The variables of a run there, see ``runtime_environ``.
        model: The model's folder if it was found; a hub is never asked.
        seconds: How long it may take, imports apart.
        most_rows: Rows of the data set at most.
    """

    def __init__(
        self,
        environment: Environment,
        config: TrainingConfig,
        environ: Mapping[str, str],
        *,
        model: Path | None = None,
        seconds: float = MOST_SECONDS,
        most_rows: int = MOST_ROWS,
    ) -> None:
        self._argv = (str(environment.python), "-u", str(_SCRIPT))
        self._cwd = config.cwd
        values = {**config.values, **({"model_name_or_path": str(model)} if model is not None else {})}
        request = {"values": values, "seconds": seconds, "most_rows": most_rows}
        self._request = json.dumps(request).encode()
        self._environ = {**environ, **_QUIET}
        self._deadline = seconds + _GRACE
        self._cancelled = False
        self._process: subprocess.Popen[bytes] | None = None
        self._last = TokenLengths(problem="cancelled")

    def __enter__(self) -> "LengthProbe":
        return self

    def __exit__(self, *exception: object) -> None:
        self._end()

    def cancel(self) -> None:
        """Let ``run`` return soon, from any thread."""
        self._cancelled = True

    def run(self, on_progress: Callable[[LengthProgress], None] | None = None) -> TokenLengths:
        """Measure; returns what is known, with a problem where it is not all.

        An interrupt from the keyboard cancels.
        """
        began = time.monotonic()
        with tempfile.TemporaryFile() as said:
            try:
                process = self._start(said)
            except OSError as error:
                return TokenLengths(problem="environment", detail=str(error.strerror))
            try:
                result = self._watched(process, on_progress, began + self._deadline)
            finally:
                self._end()
            if result is not None:
                return result
            return TokenLengths(
                seconds=time.monotonic() - began, problem="environment", detail=_last_line(said)
            )

    def _watched(
        self,
        process: "subprocess.Popen[bytes]",
        on_progress: Callable[[LengthProgress], None] | None,
        deadline: float,
    ) -> TokenLengths | None:
        try:
            return self._watch(process, on_progress, deadline)
        except KeyboardInterrupt:
            self.cancel()
            return self._watch(process, None, deadline)

    def _start(self, said: IO[bytes]) -> "subprocess.Popen[bytes]":
        process = subprocess.Popen(
            self._argv,
            cwd=self._cwd,
            env=self._environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=said,
        )
        self._process = process
        if process.stdin is not None:
            try:
                process.stdin.write(self._request)
                process.stdin.close()
            except BrokenPipeError:
                pass  # it ended at once; its last words tell why
        return process

    def _watch(
        self,
        process: "subprocess.Popen[bytes]",
        on_progress: Callable[[LengthProgress], None] | None,
        deadline: float,
    ) -> TokenLengths | None:
        """The final report; ``None`` if the process ended without one.

        A probe that is asked to end still says what it has measured.
        """
        stream = process.stdout
        seen = LengthProgress(0, 0.0)
        ending: LengthProblem | None = None
        rest = b""
        while stream is not None:
            now = time.monotonic()
            if ending is None and (self._cancelled or now > deadline):
                ending = "cancelled" if self._cancelled else "timed_out"
                deadline = now + _LAST_WORD
                process.terminate()
            elif ending is not None and now > deadline:
                break
            if not select.select([stream], [], [], _POLL)[0]:
                continue
            piece = os.read(stream.fileno(), _PIECE)
            if not piece or len(rest) > _LINE_LIMIT:
                break
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                report = _parsed(line)
                if report.get("final") is True:
                    lengths = _lengths(report)
                    return lengths if ending is None else replace(lengths, problem=ending)
                seen = _progress(report)
                if on_progress is not None and ending is None:
                    on_progress(seen)
        return None if ending is None else TokenLengths(seconds=seen.seconds, problem=ending)

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if process.poll() is None:
            process.terminate()
        try:
            process.wait(_END)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(_END)
        if process.stdout is not None:
            process.stdout.close()


_QUIET = {
    "CUDA_VISIBLE_DEVICES": "",
    "HF_HUB_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "USE_MODELSCOPE_HUB": "0",
    "USE_OPENMIND_HUB": "0",
    "PYTHONDONTWRITEBYTECODE": "1",
}


def _parsed(line: bytes) -> Mapping[str, object]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _progress(report: Mapping[str, object]) -> LengthProgress:
    samples, seconds = report.get("samples"), report.get("seconds")
    return LengthProgress(
        samples if type(samples) is int else 0, seconds if isinstance(seconds, float) else 0.0
    )


def _lengths(report: Mapping[str, object]) -> TokenLengths:
    counts: dict[int, int] = {}
    entries = report.get("counts")
    for entry in entries if isinstance(entries, list) else []:
        length, count = entry if isinstance(entry, list) and len(entry) == 2 else (0, 0)
        if type(length) is int and type(count) is int and 0 < length < _LENGTH_LIMIT and count > 0:
            counts[length] = count
    problem = next((known for known in _PROBLEMS if known == report.get("problem")), None)
    dropped, detail = report.get("dropped"), report.get("detail")
    return TokenLengths(
        counts=counts,
        complete=report.get("complete") is True,
        dropped=dropped if type(dropped) is int else 0,
        seconds=_progress(report).seconds,
        problem=problem,
        detail=mask_text(detail[:_DETAIL]) if isinstance(detail, str) else "",
    )


def _last_line(said: IO[bytes]) -> str:
    """The last words of a process that ended without a report."""
    size = said.seek(0, os.SEEK_END)
    said.seek(max(0, size - _DETAIL))
    lines = said.read().decode(errors="replace").strip().splitlines()
    return mask_text(lines[-1]) if lines else ""
