"""What a preflight looks at: everything that was read, once, before the rules see it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tui.facts.job import Job
from tui.facts.machine import Gpu, HostMemory, SharedMemory
from tui.facts.training import OutputFacts
from tui.llamafactory.config import TrainingConfig
from tui.llamafactory.dataset_info import DatasetInfo
from tui.llamafactory.deepspeed import Deepspeed
from tui.llamafactory.fields import Kind
from tui.llamafactory.hub_cache import HubModel
from tui.llamafactory.model_folder import AdapterFolder, ModelFolder
from tui.llamafactory.requirements import Requirement


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings that LLaMA-Factory takes. ``exact``: read from the environment that will run, else
    those of the newest known release. ``elsewhere``: unknown keys of the config that other releases
    take, and which.
    """

    kinds: Mapping[str, Kind]
    exact: bool
    elsewhere: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Installed:
    """The training environment's packages: ``versions`` by their names with underscores, in small
    letters. ``basic`` is checked at every start, ``options`` where an option needs it. ``dry_run`` is
    the beginning of a command that shows what an installation would change.
    """

    versions: Mapping[str, str]
    basic: tuple[Requirement, ...] = ()
    options: tuple[Requirement, ...] = ()
    dry_run: tuple[str, ...] = ()
    templates: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Place:
    """A folder, and the free bytes of the disk that it is on or would be made on."""

    path: str
    free: int | None
    writable: bool = True


@dataclass(frozen=True, slots=True)
class Machine:
    """What the machine has free. ``gpus`` are the cards that the run would use; ``None`` where the
    driver was not asked or did not answer in time. ``cards`` counts what the run will see.
    ``ports_taken`` are TCP ports that somebody listens on.
    """

    cards: int
    gpus: tuple[Gpu, ...] | None = None
    memory: HostMemory = field(default_factory=lambda: HostMemory(None, None, None))
    shm: SharedMemory = field(default_factory=lambda: SharedMemory(None, None))
    cpus: float | None = None
    ports_taken: frozenset[int] = frozenset()
    jobs: tuple[Job, ...] = ()


@dataclass(frozen=True, slots=True)
class PreflightFacts:
    """One planned training. ``words`` are those that LLaMA-Factory's launcher would split at spaces.

    ``torchrun`` and ``processes`` are as ``llamafactory.command`` has them. ``model`` is also filled
    where ``hub`` has a snapshot. ``reads_copy``: the run gets a YAML copy, not the file that was named.
    """

    config: TrainingConfig
    environ: Mapping[str, str]
    settings: Settings
    machine: Machine
    torchrun: bool | None = None
    processes: int | None = None
    reads_copy: bool = True
    words: tuple[str, ...] = ()
    installed: Installed | None = None
    model: ModelFolder | None = None
    hub: HubModel | None = None
    hub_place: Place | None = None
    adapters: tuple[AdapterFolder, ...] = ()
    data: DatasetInfo | None = None
    deepspeed: Deepspeed | None = None
    output: OutputFacts | None = None
    output_place: Place | None = None
    resume: OutputFacts | None = None

    def enabled(self, variable: str) -> bool:
        """LLaMA-Factory's reading of a switch: ``yes`` and ``on`` are off."""
        return self.environ.get(variable, "").lower() in {"true", "y", "1"}

    @property
    def zero(self) -> int:
        """The ZeRO stage."""
        return self.deepspeed.stage if self.deepspeed is not None else 0
