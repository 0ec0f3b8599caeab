"""Python environments that consist of files only: what an environment search may look at."""

import sys
from pathlib import Path


def make_prefix(
    prefix: Path,
    *,
    llamafactory: str | None = "0.9.5",
    cli: bool = True,
    python: bool = True,
    shebang: str | None = None,
    **versions: str,
) -> Path:
    """A virtual environment with LLaMA-Factory as pip or uv leave it; ``versions`` are other packages.

    Its Python is a link to the one that runs the tests, as in every virtual environment of it.
    """
    (prefix / "bin").mkdir(parents=True)
    (prefix / "pyvenv.cfg").write_text("home = /usr/bin\ninclude-system-site-packages = false\n")
    site = site_of(prefix)
    site.mkdir(parents=True)
    if python:
        (prefix / "bin" / "python").symlink_to(sys.executable)
    if llamafactory is not None:
        add_distribution(site, "llamafactory", llamafactory)
        add_package(site)
        if cli:
            add_script(prefix, shebang=shebang)
    for name, version in versions.items():
        add_distribution(site, name, version)
    return prefix


def site_of(prefix: Path) -> Path:
    return prefix / "lib" / "python3.11" / "site-packages"


def add_distribution(site: Path, name: str, version: str) -> Path:
    folder = site / f"{name}-{version}.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    return folder


def add_package(parent: Path) -> Path:
    """The package ``llamafactory`` itself, as far as it is looked at."""
    package = parent / "llamafactory"
    (package / "extras").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "extras" / "env.py").write_text('import os\n\nVERSION = "0.9.6.dev0"\n')
    return package


def add_script(prefix: Path, name: str = "llamafactory-cli", *, shebang: str | None = None) -> Path:
    script = prefix / "bin" / name
    script.write_text(
        f"#!{shebang or prefix / 'bin' / 'python'}\nfrom llamafactory.cli import main\nmain()\n"
    )
    script.chmod(0o755)
    return script
