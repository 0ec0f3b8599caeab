"""Finding the Python environment that trains, by looking at its files.

Nothing of that environment is run and nothing is imported: importing torch takes seconds, and a broken
environment must be nameable. Its own ``bin`` comes first on the PATH of a job, because LLaMA-Factory
starts plain ``torchrun``.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from tui.facts.errors import LlamaherdError
from tui.llamafactory.argv import CLI_NAMES
from tui.llamafactory.installed import (
    find_package,
    is_file,
    package_versions,
    script_interpreter,
    site_folders,
)

EnvironmentSource = Literal["option", "settings", "VIRTUAL_ENV", "CONDA_PREFIX", "cwd", "usual_root", "PATH"]
Unusable = Literal["missing", "own_environment", "no_python", "no_llamafactory", "not_an_environment"]

USUAL_ROOTS: tuple[Path, ...] = tuple(
    Path(root)
    for root in (
        "/root/LLaMA-Factory",
        "/root/LlamaFactory",
        "/root/autodl-tmp/LLaMA-Factory",
        "/root/autodl-tmp/LlamaFactory",
        "/workspace/LLaMA-Factory",
        "/workspace/LlamaFactory",
        "~/LLaMA-Factory",
        "~/LlamaFactory",
        "/app",
        "/root/miniconda3",
        "/root/anaconda3",
        "/opt/conda",
        "~/miniconda3",
    )
)
"""Where rented images and the usual instructions put LLaMA-Factory or a conda with it."""

_VIRTUAL_FOLDERS = (".venv", "venv")


@dataclass(frozen=True, slots=True)
class Environment:
    """One usable training environment.

    ``prefix`` is what ``sys.prefix`` would be, ``python`` its interpreter, ``cli`` the console script
    (``None``: the package is there without a script that starts), ``package`` the folder of the package
    ``llamafactory``. ``versions`` has every package of ``installed.PACKAGES``, ``None`` if absent.
    """

    prefix: Path
    python: Path
    cli: Path | None
    source: EnvironmentSource
    package: Path | None = None
    versions: Mapping[str, str | None] = field(default_factory=dict)

    @property
    def bin(self) -> Path:
        """The folder of ``llamafactory-cli`` and ``torchrun``."""
        return (self.cli or self.python).parent

    @property
    def sites(self) -> tuple[Path, ...]:
        """The folders that its packages lie in."""
        return site_folders(self.prefix, self.python, self.cli)

    def command(self) -> tuple[str, ...]:
        """The argument vector that stands for ``llamafactory-cli``."""
        if self.cli is not None:
            return (str(self.cli),)
        return (str(self.python), "-m", "llamafactory.cli")


def find_environment(
    *,
    explicit: Path | None,
    settings: Path | None,
    environ: Mapping[str, str],
    cwd: Path,
    own_prefix: Path,
    roots: Sequence[Path] = USUAL_ROOTS,
) -> Environment:
    """The first environment with LLaMA-Factory, in the order of ``EnvironmentSource``.

    ``explicit`` and ``settings`` name a prefix, a folder with a ``.venv``, a Python or a
    ``llamafactory-cli``; if one of them is given, nothing else is tried. This program's own environment
    (``own_prefix``) never counts, wherever it turns up.

    Raises:
        LlamaherdError: ``environment_unusable`` with ``path`` and ``why`` (an ``Unusable``), or
            ``environment_not_found`` with ``looked`` (paths) and ``rejected`` (``"path: why"`` of those
            that exist).
    """
    own = _real(own_prefix)
    home = environ.get("HOME")
    named: tuple[tuple[EnvironmentSource, Path | None], ...] = (("option", explicit), ("settings", settings))
    for source, path in named:
        if path is not None:
            return _named_environment(cwd / _expanded(path, home), source, own)

    looked: dict[Path, Unusable] = {}
    for source, path in _candidates(environ, cwd, [_expanded(root, home) for root in roots]):
        if path in looked:
            continue
        found = _inspect(path, source, own)
        if isinstance(found, Environment):
            return found
        looked[path] = found
    raise LlamaherdError(
        "environment_not_found",
        looked=tuple(str(path) for path in looked),
        rejected=tuple(f"{path}: {why}" for path, why in looked.items() if why != "missing"),
    )


def runtime_environ(
    environment: Environment | None, base: Mapping[str, str], own_prefix: Path
) -> dict[str, str]:
    """The variables for a job: the training environment as if activated, this program's undone.

    What the user set stays, also a PYTHONPATH; only entries inside this program's own environment go.
    """
    own = _real(own_prefix)
    result = dict(base)
    for name in ("VIRTUAL_ENV", "VIRTUAL_ENV_PROMPT", "PYTHONHOME"):
        result.pop(name, None)
    if "CONDA_PREFIX" in result and _real(Path(result["CONDA_PREFIX"])) == own:
        for name in ("CONDA_PREFIX", "CONDA_DEFAULT_ENV", "CONDA_PROMPT_MODIFIER"):
            result.pop(name, None)
    path = _without(result.get("PATH", os.defpath), own)
    if environment is not None:
        if is_file(environment.prefix / "pyvenv.cfg"):
            result["VIRTUAL_ENV"] = str(environment.prefix)
        elif (environment.prefix / "conda-meta").is_dir():
            result["CONDA_PREFIX"] = str(environment.prefix)
        path = [str(environment.bin), *(entry for entry in path if entry != str(environment.bin))]
    result["PATH"] = os.pathsep.join(path)
    if "PYTHONPATH" in result:
        kept = _without(result["PYTHONPATH"], own)
        result["PYTHONPATH"] = os.pathsep.join(kept)
        if not kept:
            del result["PYTHONPATH"]
    return result


def _without(search_path: str, own: Path) -> list[str]:
    """The entries of a search path that lie outside this program's environment, if it has its own.

    A llamaherd installed into the system's Python owns nothing: ``/usr/bin`` stays.
    """
    entries = search_path.split(os.pathsep)
    if not is_file(own / "pyvenv.cfg"):
        return entries
    return [entry for entry in entries if not entry or not _real(Path(entry)).is_relative_to(own)]


def _candidates(
    environ: Mapping[str, str], cwd: Path, roots: Sequence[Path]
) -> Iterator[tuple[EnvironmentSource, Path]]:
    active: tuple[EnvironmentSource, ...] = ("VIRTUAL_ENV", "CONDA_PREFIX")
    for variable in active:
        if environ.get(variable):
            yield variable, Path(environ[variable])
    for name in _VIRTUAL_FOLDERS:
        yield "cwd", cwd / name
    for root in roots:
        for path in _within(root):
            yield "usual_root", path
    for folder in environ.get("PATH", "").split(os.pathsep):
        for name in CLI_NAMES:
            if folder and is_file(Path(folder) / name):
                yield "PATH", Path(folder) / name


def _within(root: Path) -> list[Path]:
    """Environments that a folder stands for: a source tree's, itself, a conda's."""
    return [*(root / name for name in _VIRTUAL_FOLDERS), root, *sorted((root / "envs").glob("*"))]


def _named_environment(path: Path, source: EnvironmentSource, own: Path) -> Environment:
    found: Environment | Unusable = "missing"
    paths = [path, *(path / name for name in _VIRTUAL_FOLDERS)]
    for candidate in paths:
        result = _inspect(candidate, source, own)
        if isinstance(result, Environment):
            return result
        if result != "missing" and found in {"missing", "not_an_environment"}:
            found = result
    raise LlamaherdError("environment_unusable", path=str(path), why=found)


def _inspect(path: Path, source: EnvironmentSource, own: Path) -> Environment | Unusable:
    """The environment at a prefix, a Python or a console script; or why there is none."""
    if is_file(path):
        if path.name in CLI_NAMES:
            return _from_script(_real(path), source, own)
        if not path.name.startswith("python"):
            return "not_an_environment"
        path = path.parent.parent
    if not os.access(path, os.F_OK):
        return "missing"
    if _real(path) == own:
        return "own_environment"
    if not os.access(path / "bin", os.X_OK):
        return "not_an_environment"
    python = _python_of(path)
    if python is None:
        return "no_python"
    return _with_llamafactory(path, python, _starting_script(path, python), source)


def _from_script(script: Path, source: EnvironmentSource, own: Path) -> Environment | Unusable:
    """The environment of a console script, which for ``~/.local/bin`` has its Python elsewhere."""
    prefix = script.parent.parent
    python = _python_of(prefix)
    interpreter = script_interpreter(script)
    if python is None and interpreter is not None and _is_python(interpreter):
        prefix, python = interpreter.parent.parent, interpreter
    if own in {_real(prefix), script.parent.parent}:
        return "own_environment"
    if python is None:
        return "no_python"
    return _with_llamafactory(prefix, python, script, source)


def _with_llamafactory(
    prefix: Path, python: Path, cli: Path | None, source: EnvironmentSource
) -> Environment | Unusable:
    sites = site_folders(prefix, python, cli)
    versions = package_versions(sites)
    package = find_package(sites)
    if package is None and versions["llamafactory"] is None:
        return "no_llamafactory"
    return Environment(prefix, python, cli, source, package, versions)


def _python_of(prefix: Path) -> Path | None:
    """The interpreter of a prefix; a link to a Python that was removed is none."""
    for name in ("python", "python3"):
        if _is_python(prefix / "bin" / name):
            return prefix / "bin" / name
    return None


def _is_python(path: Path) -> bool:
    return path.name.startswith("python") and is_file(path) and os.access(path, os.X_OK)


def _starting_script(prefix: Path, python: Path) -> Path | None:
    """The console script, unless its first line names another place: a copied or moved environment."""
    for name in CLI_NAMES:
        script = prefix / "bin" / name
        if not is_file(script) or not os.access(script, os.X_OK):
            continue
        interpreter = script_interpreter(script)
        if interpreter is None or (
            is_file(interpreter) and _real(interpreter.parent) == _real(python.parent)
        ):
            return script
    return None


def _real(path: Path) -> Path:
    """Links followed as far as they lead; ``Path.resolve`` raises on a loop."""
    return Path(os.path.realpath(path))


def _expanded(path: Path, home: str | None) -> Path:
    """``~`` by the given environment, not by the one of this process."""
    if home and path.parts[:1] == ("~",):
        return Path(home, *path.parts[1:])
    return path
