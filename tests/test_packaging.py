"""The wheel: what is in it, and that it starts from another folder, away from the checkout."""

import ast
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from dataclasses import dataclass
from email.parser import Parser
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCES = ("pyproject.toml", "README.md", "LICENSE", "tui", "configs")


@dataclass(frozen=True)
class Installed:
    """A virtual environment that holds the built wheel; its dependencies are this environment's."""

    bin: Path
    home: Path

    def run(self, *command: str) -> "subprocess.CompletedProcess[str]":
        """Run a program of that environment from a folder that has nothing to do with the checkout."""
        environment = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}
        environment |= {"HOME": str(self.home), "LLAMAHERD_HOME": str(self.home / "state"), "LANG": "C.UTF-8"}
        program = str(self.bin / command[0])
        return subprocess.run(
            [program, *command[1:]],
            cwd=self.home,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built without network from a copy of the sources."""
    source = tmp_path_factory.mktemp("source")
    for name in SOURCES:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, source / name)
    output = tmp_path_factory.mktemp("wheel")
    _checked(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(output), str(source)]
    )
    (built,) = output.iterdir()
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The wheel in an environment of its own."""
    folder = tmp_path_factory.mktemp("installed")
    _checked([sys.executable, "-m", "venv", str(folder / "venv")])
    binaries = folder / "venv" / "bin"
    _checked([str(binaries / "pip"), "install", "--quiet", "--no-index", "--no-deps", str(wheel)])
    site_packages = next((folder / "venv" / "lib").glob("python3.*/site-packages"))
    # Appended to the search path, so that the dependencies come from here and the package does not.
    (site_packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    home = folder / "home"
    home.mkdir()
    return Installed(binaries, home)


def test_the_wheel_holds_everything_that_is_read_at_run_time_and_no_test(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    packaged = {
        f"tui/{path.relative_to(ROOT / 'tui')}"
        for path in (ROOT / "tui").rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    assert packaged - names == set()
    assert "tui/py.typed" in names
    assert any(name.startswith("tui/locales/zh") and name.endswith(".mo") for name in names)
    assert {f"tui/configs/{path.name}" for path in (ROOT / "configs").iterdir()} <= names
    assert any(name.startswith("tui/configs/") for name in names)
    top = {name.partition("/")[0] for name in names}
    assert len(top) == 2, f"more than the package and its metadata: {top}"


def test_the_version_has_one_place(wheel: Path) -> None:
    source = ast.parse((ROOT / "tui" / "__init__.py").read_text())
    (version,) = (
        ast.literal_eval(node.value)
        for node in source.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__version__"
    )
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        described = Parser().parsestr(archive.read(metadata).decode())
    assert described["Version"] == version
    assert version not in (ROOT / "pyproject.toml").read_text()


@pytest.mark.parametrize("command", [("llamaherd",), ("python", "-m", "tui")])
def test_the_installed_wheel_says_its_version(
    installed: Installed, wheel: Path, command: tuple[str, ...]
) -> None:
    said = installed.run(*command, "--version")
    assert said.returncode == 0, said.stderr
    assert said.stdout.split() == ["llamaherd", wheel.name.split("-")[1]]


def test_the_installed_wheel_shows_the_status(installed: Installed) -> None:
    where = installed.run("python", "-c", "import tui; print(tui.__file__)")
    assert where.stdout.startswith(str(installed.bin.parent)), where.stdout + where.stderr
    said = installed.run("llamaherd", "status", "--json")
    assert said.returncode == 0, said.stderr
    document = json.loads(said.stdout)
    assert document["schema"] == 1
    assert document["jobs"] == []
    assert document["host"]["memory"]["used"] > 0


def _checked(command: list[str]) -> None:
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, f"{command} gave {done.returncode}:\n{done.stdout}\n{done.stderr}"
