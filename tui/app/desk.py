"""What the screen asks of the rest of the program: find configs, prepare and start a run, stop a job.

Everything here may take long or touch disks, so screens call it in threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from tui.facts.job import Job, RequestKind


@dataclass(frozen=True, slots=True)
class Preview:
    """A run that could be started: what would be executed, where, and with which additions."""

    command: tuple[str, ...]
    cwd: str
    output_dir: str | None
    environment: tuple[tuple[str, str], ...]
    launch: object


@dataclass(frozen=True, slots=True)
class Loss:
    """What a stop now would cost. ``steps`` since the last complete checkpoint; ``None``: not known."""

    steps: int | None
    checkpoint: int | None
    saving: bool = False


class Desk(Protocol):
    """The deeds that the screen can ask for."""

    def configs(self) -> Sequence[Path]:
        """Training configs found under ``configs/`` and here."""

    def prepare(self, config: Path, overrides: tuple[str, ...]) -> Preview:
        """What starting this config would do.

        Raises:
            LlamaherdError: It cannot be started; says why.
        """

    def start(self, preview: Preview) -> str:
        """Start it; the id of the job.

        Raises:
            LlamaherdError: The keeper could not be started.
        """

    def loss(self, job: Job) -> Loss:
        """What a stop of the job would cost now.

        Raises:
            LlamaherdError: It cannot be stopped from here (``not_ours``).
        """

    def stop(self, job: Job, kind: RequestKind) -> None:
        """Ask for a stop; what comes of it is seen in the next pictures.

        Raises:
            LlamaherdError: It is refused (not ours, identity changed, already ended).
        """
