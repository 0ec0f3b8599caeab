"""Real LLaMA-Factory on the CPU: an environment and a tiny model, made once, outside the tree.

Both lie in ``$LLAMAHERD_TEST_CACHE`` (default: ``llamaherd-tests`` in the XDG cache folder), in folders
named by a hash of what they are made from; remove the cache and the next run makes it again.
"""

import fcntl
import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import yaml

LLAMAFACTORY = "llamafactory==0.9.5"
PYTHONS = ("python3.11", sys.executable, "python3.12", "python3.13", "python3")
"""Candidates, best first: the pins were measured under 3.11, and LLaMA-Factory 0.9.5 needs it or newer."""

_E2E = Path(__file__).parent.parent / "e2e"
_REQUIREMENTS = _E2E / "requirements.txt"
_MODEL_MAKER = _E2E / "make_tiny_model.py"
_PROBE = "import ensurepip, sys, venv; print(sys.version.split()[0] if sys.version_info >= (3, 11) else '')"
_INSTALL_SECONDS = 3000
_OWN_SETTINGS = ("LLAMAHERD_", "CUDA_", "NVIDIA_", "TORCH", "HF_", "PYTHON", "NPROC_", "NNODES", "MASTER_")
"""Beginnings of the variables that would steer a run from outside."""


class NoPythonError(Exception):
    """No interpreter here can hold LLaMA-Factory."""


@dataclass(frozen=True, slots=True)
class RealLlamaFactory:
    """An environment with LLaMA-Factory, and a model to train in it."""

    environment: Path
    model: Path

    @property
    def command(self) -> Path:
        """Its ``llamafactory-cli``."""
        return self.environment / "bin" / "llamafactory-cli"

    def write_project(
        self, folder: Path, *, rows: int = 200, dataset_dir: str = "data", **values: object
    ) -> Path:
        """A folder with model, dataset (``rows`` rows) and ``train.yaml``, whose path is returned.

        Every path in the config is relative to ``folder``. ``values`` replace or extend the config;
        ``None`` removes a key.
        """
        data = folder / dataset_dir
        data.mkdir(parents=True)
        (folder / "tiny-qwen3").symlink_to(self.model)
        samples = [
            {"instruction": f"add {n} and {n + 1}", "input": "", "output": f"the sum is {2 * n + 1}"}
            for n in range(rows)
        ]
        (data / "sums.json").write_text(json.dumps(samples))
        (data / "dataset_info.json").write_text(json.dumps({"sums": {"file_name": "sums.json"}}))
        config = {**_CONFIG, "dataset_dir": dataset_dir, **values}
        path = folder / "train.yaml"
        path.write_text(
            yaml.safe_dump(
                {key: value for key, value in config.items() if value is not None}, sort_keys=False
            )
        )
        return path

    def link_without_pip(self, folder: Path) -> Path:
        """The same environment as uv makes it: no pip in it, packages linked from a cache."""
        python = str(self.environment / "bin" / "python")
        _run([python, "-m", "venv", "--without-pip", str(folder)], seconds=120)
        real, linked = (
            next((root / "lib").glob("python3.*/site-packages")) for root in (self.environment, folder)
        )
        for package in real.iterdir():
            if package.name.partition("-")[0] not in {"pip", "setuptools", "wheel"}:
                (linked / package.name).symlink_to(package)
        for name in ("llamafactory-cli", "torchrun"):
            script = folder / "bin" / name
            _, _, body = (self.environment / "bin" / name).read_text().partition("\n")
            script.write_text(f"#!{folder}/bin/python\n{body}")
            script.chmod(0o755)
        return folder


_CONFIG: dict[str, object] = {
    "model_name_or_path": "tiny-qwen3",
    "stage": "sft",
    "do_train": True,
    "finetuning_type": "lora",
    "lora_rank": 4,
    "lora_target": "all",
    "dataset": "sums",
    "template": "qwen3_nothink",
    "cutoff_len": 128,
    "output_dir": "out",
    "logging_steps": 2,
    "save_steps": 1000,
    "report_to": "none",
    "per_device_train_batch_size": 1,
    "gradient_accumulation_steps": 2,
    "learning_rate": 0.001,
    "num_train_epochs": 1.0,
    "use_cpu": True,
}


def run_environment(scratch: Path) -> dict[str, str]:
    """Variables for a run that is offline, single-threaded, and writes below ``scratch`` only.

    ``TMPDIR`` is a folder of ``scratch`` too: keep its path short, since the sockets of the tokeniser's
    processes lie in it and a socket's path ends at 107 bytes.
    """
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(_OWN_SETTINGS)}
    inherited.pop("VIRTUAL_ENV", None)
    home, temporary = scratch / "home", scratch / "t"
    for folder in (home, temporary):
        folder.mkdir(exist_ok=True)
    return inherited | {
        "HOME": str(home),
        "TMPDIR": str(temporary),
        "XDG_CACHE_HOME": str(home / "cache"),
        "XDG_CONFIG_HOME": str(home / "config"),
        "XDG_STATE_HOME": str(home / "state"),
        "HF_HOME": str(home / "huggingface"),
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
        "CUDA_VISIBLE_DEVICES": "",
    }


def provide_llamafactory() -> RealLlamaFactory:
    """The environment and the model, made if the cache does not hold them; minutes the first time.

    Raises:
        NoPythonError: no Python 3.11 or newer with venv and pip.
        AssertionError: a step of the making failed; the text has its last lines.
    """
    python, version = _find_python()
    cache = _cache_folder()
    key = _hash(_REQUIREMENTS.read_text(), LLAMAFACTORY, version, platform.machine())
    environment = cache / key
    model = cache / f"{key}-model-{_hash(_MODEL_MAKER.read_text())}"
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _make_once(environment, lambda folder: _make_environment(folder, python))
        _make_once(model, lambda folder: _make_model(folder, environment))
    return RealLlamaFactory(environment, model)


def _make_once(folder: Path, make: Callable[[Path], None]) -> None:
    """Make a folder in its final place (an environment cannot be moved); the mark is written last, so
    a half-made one is known and made again.
    """
    mark = folder.with_name(f"{folder.name}.complete")
    if mark.exists() and folder.is_dir():
        return
    mark.unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)
    make(folder)
    mark.touch()


def _make_environment(folder: Path, python: str) -> None:
    _run([python, "-m", "venv", str(folder)], seconds=120)
    install = [
        str(folder / "bin" / "python"),
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
    ]
    _run([*install, "-r", str(_REQUIREMENTS)], seconds=_INSTALL_SECONDS)
    _run([*install, "--no-deps", LLAMAFACTORY], seconds=_INSTALL_SECONDS)
    # Imported without a guard by LLaMA-Factory; the real one needs the libraries of a CUDA build.
    stub = next((folder / "lib").glob("python3.*/site-packages")) / "torchaudio"
    stub.mkdir()
    (stub / "__init__.py").write_text('"""Stands in for the real package, which nothing here calls."""\n')


def _make_model(folder: Path, environment: Path) -> None:
    _run([str(environment / "bin" / "python"), str(_MODEL_MAKER), str(folder)], seconds=300)


def _find_python() -> tuple[str, str]:
    """The interpreter for the environment, and its version."""
    for name in PYTHONS:
        path = shutil.which(name)
        if path is None:
            continue
        probe = subprocess.run([path, "-c", _PROBE], capture_output=True, text=True, check=False, timeout=60)
        if version := probe.stdout.strip():
            return path, version
    raise NoPythonError("LLaMA-Factory needs Python 3.11 or newer with venv and pip; none is on PATH")


def _cache_folder() -> Path:
    if own := os.environ.get("LLAMAHERD_TEST_CACHE"):
        return Path(own).absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "llamaherd-tests"


def _hash(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:12]


def _run(command: list[str], *, seconds: float) -> None:
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=seconds
    )
    assert done.returncode == 0, f"{' '.join(command)} gave {done.returncode}:\n{done.stderr[-4000:]}"
