"""The two desks: of the machine, and of the demo. Everything heavy is imported when it is needed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tui.app.desk import Loss, Preview

if TYPE_CHECKING:
    from tui.app.options import Options
    from tui.demo.stage import Stage
    from tui.facts.job import Job, RequestKind
    from tui.operate.settings import Settings


class MachineDesk:
    """Starts and stops on this machine, through ``tui.operate``."""

    def __init__(self, options: Options) -> None:
        self._options = options

    @property
    def _settings(self) -> Settings:
        from tui.operate.settings import Settings

        return replace(self._options.settings or Settings(), readonly=self._options.readonly)

    def configs(self) -> Sequence[Path]:
        """Training configs under ``configs/`` and here."""
        from tui.operate.launch import find_configs

        return find_configs(Path.cwd())

    def prepare(self, config: Path, overrides: tuple[str, ...]) -> Preview:
        """Resolve and check it; nothing is started."""
        from tui.operate.launch import StartRequest, prepare

        request = StartRequest(Path.cwd(), config=config, overrides=overrides)
        launch = prepare(request, self._settings, os.environ)
        spec = launch.spec
        return Preview(
            spec.command, spec.cwd, spec.output_dir, tuple(sorted(spec.environment.items())), launch
        )

    def start(self, preview: Preview) -> str:
        """Start it under a keeper of its own."""
        from tui.operate.launch import Launch, start
        from tui.operate.places import Places

        if not isinstance(preview.launch, Launch):
            raise TypeError(preview.launch)
        return start(preview.launch, Places.of(self._settings, os.environ).write_root()).record.id

    def loss(self, job: Job) -> Loss:
        """What a stop would cost."""
        return _loss(job)

    def stop(self, job: Job, kind: RequestKind) -> None:
        """Ask the keeper."""
        _stop(job, kind)


class DemoDesk:
    """Starts and stops in the demo's own root."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def configs(self) -> Sequence[Path]:
        """The demo's configs."""
        return self._stage.configs()

    def prepare(self, config: Path, overrides: tuple[str, ...]) -> Preview:
        """What the demo would run."""
        return Preview(
            self._stage.command(config), str(self._stage.root), str(self._stage.output(config)), (), config
        )

    def start(self, preview: Preview) -> str:
        """Start it under a real keeper."""
        if not isinstance(preview.launch, Path):
            raise TypeError(preview.launch)
        return self._stage.start(preview.launch, os.environ).record.id

    def loss(self, job: Job) -> Loss:
        """What a stop would cost."""
        return _loss(job)

    def stop(self, job: Job, kind: RequestKind) -> None:
        """Ask the keeper, as for any other job."""
        _stop(job, kind)


def _loss(job: Job) -> Loss:
    from tui.operate.stop import target_of

    steps = target_of(job).steps_lost
    progress = job.progress
    if progress is None:
        return Loss(steps, None)
    return Loss(steps, progress.last_checkpoint, saving=progress.stage == "save")


def _stop(job: Job, kind: RequestKind) -> None:
    from tui.operate.stop import request_stop, target_of

    request_stop(target_of(job), kind)
