"""The preflight of a training: everything it would meet is read, and the rules are asked.

Nothing is started, installed or imported. The driver is asked by the observer, whose picture is
passed in.
"""

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tui.collect.proc import Proc
from tui.facts.errors import LlamaherdError
from tui.facts.estimate import Estimate
from tui.facts.finding import Action, Finding
from tui.facts.machine import Gpu
from tui.facts.memory import Calibration
from tui.facts.snapshot import Snapshot
from tui.facts.steps import TokenLengths
from tui.insight.preflight import in_order, preflight
from tui.insight.preflight.estimated import estimate_findings
from tui.insight.preflight.facts import Installed, Machine, Place, PreflightFacts, Settings
from tui.insight.preflight.services import service_findings
from tui.insight.visible_devices import visible_cards
from tui.jobs.roots import jobs_folder
from tui.llamafactory.config import TrainingConfig
from tui.llamafactory.dataset_info import DatasetInfo, read_datasets
from tui.llamafactory.datasets import dataset_names
from tui.llamafactory.deepspeed import Deepspeed, deepspeed_of, read_deepspeed
from tui.llamafactory.environment import Environment
from tui.llamafactory.fields import read_fields
from tui.llamafactory.hub_cache import HubModel, find_hub_model, is_hub_name
from tui.llamafactory.installed import installed_versions
from tui.llamafactory.known_settings import newest_settings, releases_with
from tui.llamafactory.model_folder import (
    AdapterFolder,
    ModelFolder,
    read_adapter_folder,
    read_model_folder,
)
from tui.llamafactory.output import read_output
from tui.llamafactory.requirements import basic_requirements, option_requirements, template_names
from tui.operate.estimate import estimate_training
from tui.operate.launch import Launch, StartRequest, require_writable, understand, visible_gpus
from tui.operate.settings import Settings as OwnSettings

PASSED_ON = (
    *(
        "FORCE_TORCHRUN",
        "NPROC_PER_NODE",
        "NNODES",
        "NODE_RANK",
        "MASTER_ADDR",
        "MASTER_PORT",
        "MAX_RESTARTS",
    ),
    *("RDZV_ID", "MIN_NNODES", "MAX_NNODES", "OPTIM_TORCH", "USE_RAY", "USE_KT", "USE_MCA", "USE_V1"),
    *("USE_MEGATRON_BRIDGE", "USE_MODELSCOPE_HUB", "USE_OPENMIND_HUB", "DISABLE_VERSION_CHECK"),
    *("ALLOW_EXTRA_ARGS", "RECORD_VRAM", "LLAMAFACTORY_VERBOSITY", "CUDA_VISIBLE_DEVICES"),
    *("CUDA_DEVICE_ORDER", "PYTORCH_CUDA_ALLOC_CONF", "HF_HUB_OFFLINE", "HF_ENDPOINT", "HF_HOME"),
)
"""Variables of this shell that change how LLaMA-Factory trains; a job gets them as they are."""


Look = Callable[[], Snapshot]

PATIENCE = 0.3
"""Seconds that a check waits for the driver; a card that answers later is not judged."""


@dataclass(frozen=True, slots=True)
class Check:
    """What is known before a start. ``variables`` are those of this shell that steer LLaMA-Factory;
    ``cards`` the ones that it would use, as far as they were seen.
    """

    launch: Launch
    findings: tuple[Finding, ...]
    variables: Mapping[str, str]
    cards: tuple[Gpu, ...] = ()
    estimate: Estimate | None = None

    @property
    def blockers(self) -> tuple[Finding, ...]:
        """The findings that a start is refused for."""
        return tuple(finding for finding in self.findings if finding.blocks)


def check(
    request: StartRequest,
    settings: OwnSettings,
    environ: Mapping[str, str],
    look: Look | None,
    state_root: Path | None = None,
) -> Check:
    """Read and judge what a request would start; without an environment, as far as that goes.

    ``look`` is asked last, so that the driver has the time of all other readings to answer.

    Raises:
        LlamaherdError: the request itself cannot be understood (see ``launch.understand``).
    """
    launch = understand(request, settings, environ, needs_environment=False)
    return check_launch(launch, look, state_root)


def check_launch(launch: Launch, look: Look | None, state_root: Path | None = None) -> Check:
    """The same for what is understood already. Of a service only its port is judged."""
    variables = {name: launch.environ[name] for name in PASSED_ON if name in launch.environ}
    if launch.config is None:
        return Check(launch, _about_service(launch), variables)
    facts = _facts(launch, launch.config, look, state_root)
    findings = preflight(facts)
    if launch.environment is None:
        action = Action("check", ("--env",))
        findings = (Finding("environment_missing", "danger", actions=(action,), blocks=True), *findings)
    return Check(launch, findings, variables, facts.machine.gpus or ())


def _about_service(launch: Launch) -> tuple[Finding, ...]:
    if launch.spec.kind != "service":
        return ()
    return tuple(service_findings(launch.spec.command, launch.environ, _ports_taken()))


def _ports_taken() -> frozenset[int]:
    return frozenset(listener.port for listener in Proc().listeners())


def with_estimate(
    checked: Check, measured: Sequence[Calibration] = (), lengths: TokenLengths | None = None
) -> Check:
    """The same with steps and memory, and what they show; rows are counted, which may take seconds."""
    launch, config = checked.launch, checked.launch.config
    if config is None:
        return checked
    estimate = estimate_training(
        config,
        launch.environment,
        launch.environ,
        processes=launch.processes,
        torchrun=launch.torchrun,
        cards=checked.cards,
        lengths=lengths,
        measured=measured,
    )
    findings = in_order((*checked.findings, *estimate_findings(config, estimate)))
    return replace(checked, estimate=estimate, findings=findings)


def _facts(
    launch: Launch, config: TrainingConfig, look: Look | None, state_root: Path | None
) -> PreflightFacts:
    environ, environment = launch.environ, launch.environment
    hub = _hub(config, environ)
    output = config.output_dir
    resume = config.text("resume_from_checkpoint")
    return PreflightFacts(
        config=config,
        environ=environ,
        settings=_settings(config, environment),
        torchrun=launch.torchrun,
        processes=launch.processes,
        reads_copy=launch.reads_copy,
        words=(*launch.words, *_copy_place(launch, state_root)),
        installed=None if environment is None else _installed(environment, environ),
        model=_model(config, hub),
        hub=hub,
        hub_place=None if hub is None else _place(Path(hub.cache)),
        adapters=_adapters(config),
        data=_data(config),
        deepspeed=_deepspeed(config),
        output=None if output is None else read_output(output),
        output_place=None if output is None else _output_place(output),
        resume=read_output(_placed(config, resume)) if resume else None,
        machine=_machine(environ, look, config),
    )


def _settings(config: TrainingConfig, environment: Environment | None) -> Settings:
    read = None if environment is None else read_fields(environment.sites)
    kinds = read or newest_settings()
    unknown = [key for key in config.values if key not in kinds]
    elsewhere = {key: releases_with(key) for key in unknown}
    return Settings(kinds, read is not None, {key: found for key, found in elsewhere.items() if found})


def _installed(environment: Environment, environ: Mapping[str, str]) -> Installed:
    versions = installed_versions(environment.sites)
    package = environment.package
    uv = shutil.which("uv", path=environ.get("PATH"))
    python = str(environment.python)
    dry_run = (
        ("uv", "pip", "install", "--dry-run", "--python", python)
        if uv
        else (python, "-m", "pip", "install", "--dry-run")
    )
    if package is None:
        return Installed(versions, dry_run=dry_run)
    return Installed(
        versions, basic_requirements(package), option_requirements(package), dry_run, template_names(package)
    )


def _hub(config: TrainingConfig, environ: Mapping[str, str]) -> HubModel | None:
    """The model by its hub's name. ``saves/model`` is a path if there is a folder ``saves``."""
    name = config.text("model_name_or_path")
    if not name or not is_hub_name(name) or _placed(config, name).exists():
        return None
    if "/" in name and _placed(config, name).parent.is_dir():
        return None
    cache = config.text("cache_dir")
    revision = config.text("model_revision") or "main"
    return find_hub_model(name, environ, None if cache is None else _placed(config, cache), revision)


def _model(config: TrainingConfig, hub: HubModel | None) -> ModelFolder | None:
    name = config.text("model_name_or_path")
    if not name:
        return None
    if hub is None:
        return read_model_folder(_placed(config, name))
    return None if hub.snapshot is None else read_model_folder(Path(hub.snapshot))


def _adapters(config: TrainingConfig) -> tuple[AdapterFolder, ...]:
    """Those that are named by a path; a hub's name is left to the run."""
    names = dataset_names(config, "adapter_name_or_path")
    found = []
    for name in names:
        place = _placed(config, name)
        if place.exists() or not is_hub_name(name) or "/" not in name or place.parent.is_dir():
            found.append(read_adapter_folder(place))
    return tuple(found)


def _data(config: TrainingConfig) -> DatasetInfo | None:
    folder, tokenized = config.dataset_dir, config.text("tokenized_path")
    names = (*dataset_names(config), *dataset_names(config, "eval_dataset"))
    if folder is None or not names or (tokenized and _placed(config, tokenized).is_dir()):
        return None
    return read_datasets(folder, tuple(dict.fromkeys(names)))


def _deepspeed(config: TrainingConfig) -> Deepspeed | None:
    written = config.values.get("deepspeed")
    if isinstance(written, dict):
        return deepspeed_of({str(key): value for key, value in written.items()})
    return None if config.deepspeed is None else read_deepspeed(config.deepspeed)


def _copy_place(launch: Launch, state_root: Path | None) -> tuple[str, ...]:
    """Where the copy of the config will lie."""
    return (str(jobs_folder(state_root)),) if launch.reads_copy and state_root is not None else ()


def _machine(environ: Mapping[str, str], look: Look | None, config: TrainingConfig) -> Machine:
    cards = visible_gpus(environ)
    port = environ.get("MASTER_PORT")
    taken = _ports_taken() if port else frozenset[int]()
    if look is None:
        return Machine(cards, ports_taken=taken)
    snapshot = look()
    host = snapshot.host
    return Machine(
        cards,
        gpus=None if config.flag("use_cpu") else _chosen(environ, snapshot.gpus),
        memory=host.memory,
        shm=host.shm,
        cpus=host.cpu_count,
        ports_taken=taken,
        jobs=(*snapshot.jobs, *snapshot.foreign),
    )


def _chosen(environ: Mapping[str, str], gpus: Sequence[Gpu]) -> tuple[Gpu, ...] | None:
    uuids = visible_cards(environ, gpus)
    return None if uuids is None else tuple(gpu for gpu in gpus if gpu.uuid in uuids)


def _output_place(output: Path) -> Place:
    place = _place(output)
    try:
        require_writable(output)
    except LlamaherdError:
        return replace(place, writable=False)
    return place


def _place(path: Path) -> Place:
    """Free bytes of the disk that a folder is on or would be made on."""
    existing = next((folder for folder in (path, *path.parents) if folder.exists()), Path("/"))
    try:
        return Place(str(path), shutil.disk_usage(existing).free)
    except OSError:
        return Place(str(path), None)


def _placed(config: TrainingConfig, written: str) -> Path:
    path = Path(os.path.expanduser(written.replace("\0", "")))  # noqa: PTH111  # keeps an unknown user's ~
    return path if config.cwd is None else config.cwd / path
