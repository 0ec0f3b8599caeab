"""From what a person asked for to a job that is ready to start.

Everything that can be known to fail is refused here, before a process exists: a config that cannot be
read, no LLaMA-Factory, a folder that cannot be written. The user's files are only read; the run gets a
resolved copy in its own folder.
"""

import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tui.facts.errors import EXIT_REFUSED, EXIT_USAGE, LlamaherdError
from tui.jobs.client import JOB_FOLDER, FoundJob, JobSpec, start_job
from tui.llamafactory import command as commands
from tui.llamafactory.config import TrainingConfig, apply_overrides, dump, load_config, resolve
from tui.llamafactory.environment import USUAL_ROOTS, Environment, find_environment, runtime_environ
from tui.operate.settings import Settings
from tui.operate.trial import trial_overrides

CONFIG_PATTERNS = ("*.yaml", "*.yml")
_WEBUI_CONFIGS = "saves/*/*/*/training_args.yaml"  # model, method, name
_DEVICE_NODES = "nvidia[0-9]*"
_SHOWN = 200


@dataclass(frozen=True, slots=True)
class Trial:
    """``steps`` to train; ``with_pauses``: an evaluation and a save among them."""

    steps: int
    with_pauses: bool = False


@dataclass(frozen=True, slots=True)
class StartRequest:
    """What a person asked for: a config with overrides, or a pasted command. ``cwd`` is absolute."""

    cwd: Path
    config: Path | None = None
    overrides: tuple[str, ...] = ()
    pasted: tuple[str, ...] = ()
    environment: Path | None = None
    gpus: tuple[int, ...] | None = None
    trial: Trial | None = None


@dataclass(frozen=True, slots=True)
class Launch:
    """A job ready to start, and what is worth showing of it before.

    ``config`` is the training's, with its overrides; ``None`` for a service and for a command without a
    file. ``reads_copy``: the run gets a copy of it, not the file that was named.
    ``torchrun``: whether LLaMA-Factory will train in several processes under an agent; ``None`` when
    only the number of cards decides and that is unknown. ``processes``: how many will train here.
    ``words``: what LLaMA-Factory's launcher would split at spaces, for torchrun.
    """

    spec: JobSpec
    environment: Environment | None
    torchrun: bool | None
    config: TrainingConfig | None = None
    reads_copy: bool = True
    processes: int | None = None
    words: tuple[str, ...] = ()

    @property
    def environ(self) -> Mapping[str, str]:
        """All variables of the job."""
        return {**self.spec.environ, **self.spec.environment}


def prepare(request: StartRequest, settings: Settings, environ: Mapping[str, str]) -> Launch:
    """Understand and check a request; nothing is started and nothing is left behind.

    Raises:
        LlamaherdError: what is wrong, and what to do.
    """
    if settings.readonly:
        raise LlamaherdError("readonly", exit_code=EXIT_REFUSED, deed="start")
    launch = understand(request, settings, environ)
    torn = commands.torn_word(launch.words) if launch.torchrun else None
    if torn is not None:
        raise LlamaherdError("command_space_in_path", path=torn[:_SHOWN])
    if launch.spec.output_dir is not None:
        require_writable(Path(launch.spec.output_dir))
    return launch


def understand(
    request: StartRequest, settings: Settings, environ: Mapping[str, str], *, needs_environment: bool = True
) -> Launch:
    """What a request means. Without ``needs_environment`` none has to be found; it is then ``None``.

    Raises:
        LlamaherdError: the config, the command, an override or the environment cannot be used.
    """
    if not request.cwd.is_dir():
        raise LlamaherdError("cwd_missing", path=str(request.cwd))
    if request.pasted:
        return _from_pasted(request, settings, environ, needs_environment=needs_environment)
    return _from_config(request, settings, environ, needs_environment=needs_environment)


def start(launch: Launch, root: Path) -> FoundJob:
    """Start a prepared job under a keeper of its own; returns once it runs, or has already ended.

    Raises:
        LlamaherdError: ``keeper_failed``, ``state_not_writable``; ``command_space_in_path`` for a state
            root that torchrun's command line would tear apart.
    """
    if launch.torchrun and launch.reads_copy and any(letter.isspace() for letter in str(root)):
        raise LlamaherdError("command_space_in_path", path=str(root))
    return start_job(launch.spec, root)


def find_configs(cwd: Path, limit: int = 200) -> tuple[Path, ...]:
    """Training configs to offer: in ``cwd`` and its ``configs``, then those that the WebUI has written
    below ``saves``, the newest first, then the ones that came along.
    """
    found = [
        *_configs_in(cwd),
        *_configs_in(cwd / "configs"),
        *sorted(cwd.glob(_WEBUI_CONFIGS), key=_changed_at, reverse=True),
        *_configs_in(shipped_configs()),
    ]
    return tuple(path for path in dict.fromkeys(found) if not path.name.startswith("settings."))[:limit]


def _configs_in(folder: Path) -> list[Path]:
    return [path for pattern in CONFIG_PATTERNS for path in sorted(folder.glob(pattern))]


def _changed_at(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def shipped_configs() -> Path:
    """The configs of this installation: inside the package, or beside it in a checkout."""
    package = Path(__file__).parent.parent
    inside = package / "configs"
    return inside if inside.is_dir() else package.parent / "configs"


def visible_gpus(environ: Mapping[str, str], devices: Path = Path("/dev")) -> int:
    """How many cards a job will see: what CUDA_VISIBLE_DEVICES leaves of the device nodes.

    The driver is not asked, since it may hang; a container has nodes for its own cards only.
    """
    nodes = len(list(devices.glob(_DEVICE_NODES)))
    chosen = environ.get("CUDA_VISIBLE_DEVICES")
    if chosen is None:
        return nodes
    named = [entry for entry in chosen.split(",") if entry.strip()]
    # CUDA stops at the first invalid entry, and -1 is the usual way of saying none.
    return named.index("-1") if "-1" in named else len(named)


def require_writable(folder: Path) -> None:
    """Prove that an output folder can be made and written, by a nameless file that is gone at once.

    Raises:
        LlamaherdError: ``output_not_writable`` with ``path`` and ``why``.
    """
    existing = next((path for path in (folder, *folder.parents) if path.exists()), Path("/"))
    try:
        with tempfile.TemporaryFile(dir=existing) as file:
            file.write(b"\0")
    except OSError as error:
        raise LlamaherdError(
            "output_not_writable", path=str(folder), why=error.strerror or type(error).__name__
        ) from error


def _from_config(
    request: StartRequest, settings: Settings, environ: Mapping[str, str], *, needs_environment: bool
) -> Launch:
    if request.config is None:
        raise LlamaherdError("command_empty", exit_code=EXIT_USAGE)
    path = request.cwd / request.config
    training = resolve(apply_overrides(load_config(path), request.overrides), request.cwd)
    if request.trial is not None:
        words = trial_overrides(training, request.trial.steps, with_pauses=request.trial.with_pauses)
        training = apply_overrides(training, words)
    environment = _environment(request, settings, environ, None, required=needs_environment)
    chosen = _gpu_choice(request)
    cards = visible_gpus({**environ, **chosen})
    torchrun = commands.uses_torchrun({**environ, **chosen}, cards)
    spec = JobSpec(
        kind="training",
        name=path.stem,
        command=commands.training_command(environment, Path(JOB_FOLDER, "config.yaml")),
        cwd=str(request.cwd),
        environ=runtime_environ(environment, environ, Path(sys.prefix)),
        environment={**chosen, **commands.job_environment("training", torchrun, JOB_FOLDER)},
        config=str(path),
        config_text=dump(training),
        output_dir=_text(training.output_dir),
    )
    processes = commands.process_count({**environ, **chosen}, cards)
    words = commands.launcher_words(environment, ())
    return Launch(spec, environment, torchrun, training, processes=processes, words=words)


def _from_pasted(
    request: StartRequest, settings: Settings, environ: Mapping[str, str], *, needs_environment: bool
) -> Launch:
    pasted = commands.parse_command_line(request.pasted)
    named = commands.named_environment(pasted)
    # vLLM may live in an environment of its own, or simply be on the PATH.
    required = needs_environment and pasted.subcommand != commands.VLLM
    environment = _environment(request, settings, environ, named, required=required)
    chosen = {**pasted.environment, **_gpu_choice(request)}
    cards = visible_gpus({**environ, **chosen})
    torchrun = commands.pasted_uses_torchrun(pasted, {**environ, **chosen}, cards)
    config = request.cwd / pasted.config if pasted.config else None
    training = _pasted_config(pasted, config, request.cwd)
    typed = request.cwd / pasted.output_dir if pasted.output_dir else None
    spec = JobSpec(
        kind=pasted.kind,
        name=config.stem if config else pasted.subcommand,
        command=commands.replace_cli(pasted.argv, environment),
        cwd=str(request.cwd),
        environ=runtime_environ(environment, environ, Path(sys.prefix)),
        environment={**chosen, **commands.job_environment(pasted.kind, torchrun, JOB_FOLDER)},
        config=_text(config),
        # The run reads the file that was named, or no file: this copy is to be looked at only.
        config_text=dump(training.shown()) if training is not None else None,
        output_dir=_text(typed or (training.output_dir if training is not None else None)),
    )
    by_launcher = pasted.launch == "cli"
    return Launch(
        spec,
        environment,
        torchrun,
        training,
        reads_copy=False,
        processes=commands.process_count({**environ, **chosen}, cards) if by_launcher else None,
        words=commands.launcher_words(environment, pasted.argv[1:]) if by_launcher else (),
    )


def _pasted_config(pasted: commands.PastedCommand, config: Path | None, cwd: Path) -> TrainingConfig | None:
    """The settings of a pasted training, from its file or its options."""
    if pasted.kind != "training":
        return None
    if config is not None:
        return resolve(apply_overrides(load_config(config), pasted.overrides), cwd)
    return resolve(TrainingConfig(pasted.options, cwd), cwd) if pasted.options else None


def _environment(
    request: StartRequest,
    settings: Settings,
    environ: Mapping[str, str],
    pasted: Path | None,
    *,
    required: bool,
) -> Environment | None:
    try:
        return find_environment(
            explicit=request.environment or pasted,
            settings=settings.environment,
            environ=environ,
            cwd=request.cwd,
            own_prefix=Path(sys.prefix),
            # The folder that one calls from, too, where --cwd names another.
            roots=(Path.cwd(), *USUAL_ROOTS),
        )
    except LlamaherdError as error:
        if required or request.environment is not None:
            raise
        if error.code not in ("environment_not_found", "environment_unusable"):
            raise
        return None


def _gpu_choice(request: StartRequest) -> dict[str, str]:
    """The choice of cards as CUDA reads it, in the order that NVML and ``status`` count them."""
    if request.gpus is None:
        return {}
    return {
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "CUDA_VISIBLE_DEVICES": ",".join(str(index) for index in request.gpus),
    }


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)
