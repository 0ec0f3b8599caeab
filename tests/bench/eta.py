"""The error of ETAs against the true time to the end of the process, on recorded runs.

``python -m tests.bench.eta FILE…`` prints one row per recording: the median, over the run after its first
tenth, of ``|shown - true| / true``, looked at once a second, for the bar of tqdm, for LLaMA-Factory's own
``remaining_time``, and for llamaherd from the log alone. A recording is JSON lines (perhaps ``.gz``), first
``{"start": epoch, "cmd": […]}``, then ``{"t": seconds since start, "b": base64 of the bytes}`` per chunk,
last ``{"t": …, "exit": code}``. Beside ``FILE``, ``FILE.trainer_log.jsonl`` adds LLaMA-Factory's column and
``FILE.yaml``, the run's config, a column of what llamaherd says when it knows it.

The goal: no worse than the better of the other two plus one point, and at most half of it where
evaluations and saves take a tenth of the time or more.
"""

import base64
import gzip
import json
import re
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tui.facts.training import RunLog, Schedule
from tui.insight.eta import progress
from tui.insight.pauses import save_seconds
from tui.insight.speed import step_speed
from tui.llamafactory.clocktext import duration
from tui.llamafactory.config import load_config
from tui.llamafactory.console import ConsoleParser
from tui.llamafactory.schedule import schedule

_SKIPPED = 0.1
_LOOK = 1.0
_WRITTEN = ".trainer_log.jsonl"
_HEAVY = 0.1
_BAR_LEFT = re.compile(rb"\d+%\|[^|]*\| \d+/(\d+) \[[\d:]+<([\d:]+),")

Shown = Callable[[float], float | None]
"""The seconds left that somebody is shown at a moment, ``None`` for no figure."""


@dataclass(frozen=True, slots=True)
class Recording:
    """A recorded run: its chunks with their arrival, seconds since its start, and when it ended.

    ``written``: the elapsed and the remaining time of each line of its ``trainer_log.jsonl``.
    """

    name: str
    chunks: tuple[tuple[float, bytes], ...]
    seconds: float
    written: tuple[tuple[float, float], ...] = ()
    schedule: Schedule | None = None
    started_at: float | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """The errors of one recording, as fractions; ``pauses``: the share of evaluations and saves."""

    name: str
    seconds: float
    pauses: float
    tqdm: float | None
    llamafactory: float | None
    ours: float | None
    configured: float | None

    @property
    def goal(self) -> float | None:
        """What ours may be at most."""
        others = [error for error in (self.tqdm, self.llamafactory) if error is not None]
        if not others:
            return None
        return min(others) / 2 if self.pauses >= _HEAVY else min(others) + 0.01


def read(path: Path) -> Recording:
    """A recording with what lies beside it."""
    written, config = _beside(path, _WRITTEN), _beside(path, ".yaml")
    raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    lines = [json.loads(line) for line in raw.splitlines() if line.strip()]
    chunks = tuple((line["t"], base64.b64decode(line["b"])) for line in lines if "b" in line)
    return Recording(
        name=path.name.partition(".")[0],
        chunks=chunks,
        seconds=max((line["t"] for line in lines if "t" in line), default=0.0),
        written=tuple(_lines(written)) if written is not None else (),
        schedule=schedule(load_config(config).values) if config is not None else None,
        started_at=lines[0].get("start"),
    )


def _beside(path: Path, ending: str) -> Path | None:
    """``FILE`` with another ending: after its whole name, or in the place of ``.jsonl``."""
    whole = str(path).removesuffix(".gz")
    stems = (str(path), whole, whole.removesuffix(".jsonl"))
    return next((found for stem in stems if (found := Path(f"{stem}{ending}")).is_file()), None)


def _lines(path: Path) -> Iterator[tuple[float, float]]:
    """Those of the newest run, since several may have written to the file."""
    found = [json.loads(line) for line in path.read_text().splitlines()]
    begins = [n for n in range(1, len(found)) if found[n]["current_steps"] < found[n - 1]["current_steps"]]
    for line in found[begins[-1] if begins else 0 :]:
        elapsed, left = duration(line["elapsed_time"]), duration(line["remaining_time"])
        if elapsed is not None and left is not None:
            yield elapsed, left


def measure(recording: Recording) -> Row:
    """The row of one recording."""
    logs = list(_replayed(recording))
    whole = logs[-1][1]
    return Row(
        name=recording.name,
        seconds=recording.seconds,
        pauses=_pauses(whole) / recording.seconds,
        tqdm=_error(recording, _bars(recording, whole.plan.total_steps)),
        llamafactory=_error(recording, _own_file(recording)) if recording.written else None,
        ours=_error(recording, _ours(logs, recording.started_at)),
        configured=_error(recording, _ours(logs, recording.started_at, recording.schedule))
        if recording.schedule
        else None,
    )


def _looks(recording: Recording) -> Iterator[float]:
    at = _SKIPPED * recording.seconds
    while at < recording.seconds:
        yield at
        at += _LOOK


def _error(recording: Recording, shown: Shown) -> float | None:
    errors = []
    for at in _looks(recording):
        said, true = shown(at), recording.seconds - at
        if said is not None:
            errors.append(abs(said - true) / true)
    return statistics.median(errors) if errors else None


def _replayed(recording: Recording) -> Iterator[tuple[float, RunLog]]:
    parser = ConsoleParser()
    rest = list(recording.chunks)
    for look in _looks(recording):
        while rest and rest[0][0] <= look:
            at, data = rest.pop(0)
            parser.feed(data, at)
        yield look, parser.facts()
    for at, data in rest:
        parser.feed(data, at)
    yield recording.seconds, parser.facts()


def _ours(
    logs: Sequence[tuple[float, RunLog]], started_at: float | None, known: Schedule | None = None
) -> Shown:
    by_look = {at: progress(log, None, known, at, started_at=started_at).eta for at, log in logs}
    return by_look.get


def _bars(recording: Recording, total: int | None) -> Shown:
    """What the training bar says is left, until it says something else."""
    said = [
        (at, duration(left.decode()))
        for at, data in recording.chunks
        for of, left in _BAR_LEFT.findall(data)
        if int(of) == total
    ]
    return _latest(said)


def _own_file(recording: Recording) -> Shown:
    """``remaining_time`` of the lines; a line appears its elapsed time after the training bar does."""
    began = next((at for at, data in recording.chunks if b"Running training" in data), 0.0)
    return _latest([(began + elapsed, left) for elapsed, left in recording.written])


def _latest(said: Sequence[tuple[float, float | None]]) -> Shown:
    def shown(at: float) -> float | None:
        return next((left for moment, left in reversed(said) if moment <= at), None)

    return shown


def _pauses(log: RunLog) -> float:
    save = save_seconds(log, None, step_speed(log)) or 0.0
    return sum(one.seconds or 0.0 for one in log.evals) + save * len(log.saves)


def table(rows: Sequence[Row]) -> str:
    """The rows for people, in percent."""
    lines = [
        f"{'recording':24}{'seconds':>9}{'pauses':>9}{'tqdm':>9}{'LF':>9}{'ours':>9}{'+config':>9}{'goal':>9}"
    ]
    for row in rows:
        figures = (row.pauses, row.tqdm, row.llamafactory, row.ours, row.configured, row.goal)
        shown = "".join(f"{'-' if one is None else f'{one:.1%}':>9}" for one in figures)
        missed = row.goal is not None and (row.ours is None or row.ours > row.goal)
        lines.append(f"{row.name[:23]:24}{row.seconds:9.0f}{shown}{'  missed' if missed else ''}")
    return "\n".join(lines)


if __name__ == "__main__":
    names = [name for name in sys.argv[1:] if not name.endswith(_WRITTEN)]
    print(table([measure(read(Path(name))) for name in names]))
