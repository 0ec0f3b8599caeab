"""A stand-in NVML library for tests: the real binding runs, on cards that the test makes up.

The library (``fake_nvml.c``) is found through ``LD_LIBRARY_PATH``, so only programs started with
``FakeNvml.env()`` meet it, never the test process itself.
"""

import os
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

GIB = 1 << 30
SOURCE = Path(__file__).with_name("fake_nvml.c")


class CompilerMissingError(Exception):
    """This machine has no C compiler, so the stand-in cannot be built."""


@dataclass(frozen=True)
class FakeGpu:
    """One card: bytes, percent, milliwatts, degrees Celsius, MHz, bits, KB/s.

    ``used`` is without what ``live``, ``extra`` and matched processes add to it.
    """

    uuid: str = "GPU-00000000-0000-0000-0000-000000000000"
    name: str = "NVIDIA GeForce RTX 4090"
    minor: int = 0
    bus: str = "00000000:17:00.0"
    total: int = 24 * GIB
    used: int = 0
    reserved: int = GIB // 2
    utilization: int = 0
    power: int = 25_000
    limit: int = 450_000
    temperature: int = 35
    clock: int = 210
    memory_clock: int = 405
    throttle: int = 0x1
    performance: int = 8
    fan: int = 30
    ecc: int = 1
    corrected: int = 0
    uncorrected: int = 0
    mig: int = 0
    instances: int = 0
    receive: int = 0
    send: int = 0
    generation: int = 4
    lanes: int = 16

    def line(self) -> str:
        """The card as a directive of the state file."""
        fields = " ".join(f"{key}={value}" for key, value in vars(self).items() if key != "name")
        return f"gpu {fields} name={self.name}"


def cards(count: int) -> tuple[FakeGpu, ...]:
    """``count`` cards whose minors run against their indexes, as containers show them."""
    return tuple(
        FakeGpu(
            uuid=f"GPU-0000000{index}-0000-0000-0000-000000000000",
            minor=count - 1 - index,
            bus=f"00000000:{0x17 + index:02x}:00.0",
        )
        for index in range(count)
    )


@dataclass(frozen=True)
class FakeProcess:
    """One entry of a card's process list. ``memory=None``: the driver gives no size.

    ``live``: listed, and added to the card's used memory, only while ``pid`` lives. ``extra``: always
    added to it.
    """

    pid: int
    memory: int | None
    gpu: int = 0
    graphics: bool = False
    live: bool = False
    extra: bool = False

    def line(self) -> str:
        """The entry as a directive of the state file."""
        kind = "graphics" if self.graphics else "compute"
        mark = "live" if self.live else "extra" if self.extra else ""
        size = "na" if self.memory is None else self.memory
        return f"process {self.gpu} {kind} {self.pid} {size} {mark}".rstrip()


def match_rule(gpu: int, memory: int, *, argv: str, environment: Sequence[str]) -> str:
    """The directive by which every real process that fits holds ``memory`` bytes of ``gpu``.

    A process fits when its command line (arguments joined by blanks) holds ``argv`` and its
    environment holds each text of ``environment``; texts are without blanks. Its forked children,
    which look the same, do not count.
    """
    needles = " ".join(f"env={text}" for text in environment)
    return f"match {gpu} {memory} {needles} argv={argv}"


def build_library(folder: Path) -> Path:
    """The folder that holds ``libnvidia-ml.so.1``, built there if it is not yet.

    Raises:
        CompilerMissingError: no C compiler was found.
    """
    library = folder / "libnvidia-ml.so.1"
    if library.exists():
        return folder
    compiler = next(filter(None, map(shutil.which, (os.environ.get("CC", "cc"), "gcc", "clang"))), None)
    if compiler is None:
        raise CompilerMissingError("no C compiler: the stand-in NVML cannot be built")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as build:
        built = Path(build) / library.name
        command = [compiler, "-shared", "-fPIC", "-O1", "-Wall", "-pthread", "-o", str(built), str(SOURCE)]
        subprocess.run(command, check=True, timeout=120)
        built.replace(library)
    return folder


class FakeNvml:
    """The stand-in with its state in ``folder``; the library is built once in ``library_folder``."""

    def __init__(self, folder: Path, library_folder: Path | None = None) -> None:
        self._library_folder = build_library(library_folder or folder)
        self._state = folder / "nvml-state.txt"
        self._calls = folder / "nvml-calls.txt"
        self.write()

    def write(
        self,
        gpus: Sequence[FakeGpu] = (FakeGpu(),),
        *,
        processes: Sequence[FakeProcess] = (),
        rules: Sequence[str] = (),
        session: int = 0,
        driver: str = "580.105.08",
        nvml: str = "13.580.105.08",
    ) -> None:
        """Replace the state; running programs see it at their next call.

        ``rules`` are directives of the state file as they stand: ``error``, ``sleep``, ``crash``,
        ``print``, ``match``, ``link`` (the head of ``fake_nvml.c`` explains them). A program that opened
        its session under another ``session`` number gets error 999 everywhere until it opens a new one.
        """
        lines = [f"driver {driver}", f"nvml {nvml}", f"session {session}"]
        lines += [gpu.line() for gpu in gpus]
        lines += [process.line() for process in processes]
        lines += rules
        fresh = self._state.with_suffix(".new")
        fresh.write_text("\n".join(lines) + "\n", encoding="utf-8", errors="surrogateescape")
        fresh.replace(self._state)

    def env(self, *, count_calls: bool = False) -> Mapping[str, str]:
        """What a program's environment needs on top of its own to meet this library."""
        found = {"LD_LIBRARY_PATH": str(self._library_folder), "FAKE_NVML_STATE": str(self._state)}
        if count_calls:
            found["FAKE_NVML_CALLS"] = str(self._calls)
        return found

    def calls(self) -> Counter[str]:
        """How often each function was called by programs started with ``env(count_calls=True)``."""
        return Counter(self._calls.read_text().split()) if self._calls.exists() else Counter()
