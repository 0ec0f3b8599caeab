"""``nvidia-smi`` as the last resort, where its library cannot be loaded into this program.

It opens the driver anew at every run, which wakes the cards, so it is asked rarely, and with a deadline:
a run that hangs is left alone and no second one is started beside it. Cells are text for people, such as
``[N/A]`` or ``ERR!``: what is no figure becomes unknown with a reason.
"""

import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from tui.facts.machine import Clocks, Driver, DriverReading, GpuDetail, GpuReading, NvmlProcess
from tui.facts.unknown import UnknownReason

AGAIN = 3.0
"""Seconds between the beginnings of two runs."""

_DEADLINE = 10.0  # seconds; without persistence a run takes several, in containers up to 24 were seen
_MIB, _MHZ = 1 << 20, 1_000_000
_MAX_OUTPUT = 1 << 20
_MAX_GPUS, _MAX_PID = 64, 1 << 22
_MAX_TEXT = 200
_CARD_COLUMNS = (
    "index",
    "uuid",
    "name",
    "driver_version",
    "memory.total",
    "memory.used",
    "memory.free",
    "utilization.gpu",
    "temperature.gpu",
    "power.draw",
    "enforced.power.limit",
    "clocks.gr",
    "clocks.mem",
    "pstate",
    "fan.speed",
)
_NAME = _CARD_COLUMNS.index("name")
_PROCESS_COLUMNS = ("gpu_uuid", "pid", "used_memory")
_FORMAT = "--format=csv,noheader,nounits"

_WORDS: tuple[tuple[str, UnknownReason], ...] = (
    ("not supported", "not_supported"),
    ("n/a", "not_supported"),
    ("permission", "no_permission"),
    ("lost", "gpu_lost"),
    ("err", "driver_error"),
)


class NvidiaSmi:
    """Runs it again and again. ``find`` tells the command; ``clock`` monotonic seconds."""

    def __init__(
        self,
        *,
        find: Callable[[], Sequence[str] | None] = lambda: _found(),
        deadline: float = _DEADLINE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._find = find
        self._deadline = deadline
        self._clock = clock
        self._newest: tuple[float, DriverReading] | None = None
        self._asked_at: float | None = None
        self._hung: subprocess.Popen[bytes] | None = None

    def read(self) -> tuple[float, DriverReading] | None:
        """When it was asked last, and what it said; ``None`` when there is none, or it fails."""
        now = self._clock()
        if self._asked_at is not None and now - self._asked_at < AGAIN:
            return self._newest
        if self._hung is not None and self._hung.poll() is None:
            return None
        self._asked_at, self._hung = now, None
        command = self._find()
        cards = None if command is None else self._run([*command, f"--query-gpu={','.join(_CARD_COLUMNS)}"])
        processes = None
        if command is not None and cards is not None:
            processes = self._run([*command, f"--query-compute-apps={','.join(_PROCESS_COLUMNS)}"])
        reading = None if cards is None else parse(cards, processes)
        self._newest = (now, reading) if reading is not None and reading.gpus else None
        return self._newest

    def _run(self, command: Sequence[str]) -> str | None:
        try:
            process = subprocess.Popen(
                [*command, _FORMAT],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        except OSError:
            return None
        try:
            output, _ = process.communicate(timeout=self._deadline)
        except subprocess.TimeoutExpired:
            process.kill()
            with suppress(subprocess.TimeoutExpired):
                process.wait(0.5)
            if process.stdout is not None:
                process.stdout.close()
            self._hung = process
            return None
        return output[:_MAX_OUTPUT].decode("utf-8", "replace") if process.returncode == 0 else None


def parse(cards: str, processes: str | None) -> DriverReading:
    """The two tables as a reading. Lines that are no row of the table are left out.

    The minor numbers are unknown: it does not tell them in a table. ``processes`` is ``None`` when that
    table could not be had, which is not an empty one.
    """
    rows = [_cells(line, len(_CARD_COLUMNS)) for line in cards.splitlines()]
    named = [dict(zip(_CARD_COLUMNS, row, strict=True)) for row in rows if row is not None][:_MAX_GPUS]
    listed = None if processes is None else _listed(processes)
    gpus = tuple(_card(row, listed) for row in named if row["index"].isdigit() and len(row["index"]) < 4)
    version = next((row["driver_version"][:_MAX_TEXT] for row in named), None)
    return DriverReading(Driver(version, source="nvidia_smi"), gpus)


def _cells(line: str, count: int) -> list[str] | None:
    """The cells; a comma in a card's name does not move the others."""
    cells = [cell.strip() for cell in line.split(",")]
    extra = len(cells) - count
    if extra < 0:
        return None
    return [*cells[:_NAME], ", ".join(cells[_NAME : _NAME + extra + 1]), *cells[_NAME + extra + 1 :]]


def _listed(table: str) -> dict[str, dict[int, int | None]]:
    """By card: PID to bytes, the largest where one stands twice."""
    found: dict[str, dict[int, int | None]] = {}
    for line in table.splitlines():
        uuid, _, rest = line.partition(",")
        pid, _, memory = rest.partition(",")
        number, size = _number(pid), _number(memory)
        if number is not None and number == int(number) and 0 < number <= _MAX_PID:
            sizes = found.setdefault(uuid.strip(), {})
            before = sizes.get(int(number))
            sizes[int(number)] = before if size is None else max(before or 0, int(size * _MIB))
    return found


def _card(row: Mapping[str, str], listed: Mapping[str, Mapping[int, int | None]] | None) -> GpuReading:
    unknown: dict[str, UnknownReason] = {"minor": "not_reported", "reserved": "not_reported"}
    unknown["throttle"] = "not_reported"

    def figure(field: str, column: str, highest: float, into: dict[str, UnknownReason]) -> float | None:
        value = _number(row[column].removeprefix("P"))
        if value is None:
            into[field] = _reason(row[column])
        elif not 0 <= value <= highest:
            into[field] = "out_of_range"
            return None
        return value

    def size(field: str, highest: float) -> int | None:
        value = figure(field, f"memory.{field}", highest, unknown)
        return None if value is None else int(value) * _MIB

    def clock(field: str, column: str) -> int | None:
        value = figure(field, column, 10_000, unknown)
        return None if value is None else int(value) * _MHZ

    total = size("total", 1 << 24)
    most = (total or 1 << 44) // _MIB
    used, free = size("used", most), size("free", most)
    percent = figure("utilization", "utilization.gpu", 100, unknown)
    clocks = Clocks(clock("clocks.graphics", "clocks.gr"), clock("clocks.memory", "clocks.mem"))
    missing: dict[str, UnknownReason] = dict.fromkeys(("pcie", "ecc", "mig"), "not_reported")
    state = figure("performance", "pstate", 15, missing)
    fan = figure("fan", "fan.speed", 200, missing)
    if listed is None:
        unknown["processes"] = "driver_error"
    return GpuReading(
        index=int(row["index"]),
        minor=None,
        uuid=row["uuid"][:_MAX_TEXT],
        name=row["name"][:_MAX_TEXT],
        state="lost" if unknown.get("total") == "gpu_lost" else "ok",
        total=total,
        used=used,
        free=free,
        utilization=None if percent is None else percent / 100,
        temperature=figure("temperature", "temperature.gpu", 200, unknown),
        power=figure("power", "power.draw", 10_000, unknown),
        power_limit=figure("power_limit", "enforced.power.limit", 10_000, unknown),
        clocks=clocks,
        processes=None
        if listed is None
        else tuple(NvmlProcess(pid, memory) for pid, memory in listed.get(row["uuid"], {}).items()),
        unknown=unknown,
        detail=GpuDetail(
            performance=None if state is None else int(state),
            fan=None if fan is None else fan / 100,
            unknown=missing,
        ),
    )


def _number(text: str) -> float | None:
    digits = text.strip()
    if not digits.isascii() or not digits.replace(".", "", 1).isdigit() or len(digits) > 20:
        return None
    return float(digits)


def _reason(cell: str) -> UnknownReason:
    text = cell.casefold()
    return next((reason for word, reason in _WORDS if word in text), "out_of_range")


def _found() -> Sequence[str] | None:
    program = shutil.which("nvidia-smi")
    return None if program is None else (program,)
