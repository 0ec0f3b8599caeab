"""What is installed in a Python prefix, read from its files only.

A uv-made environment has no pip, and asking the interpreter would cost a second and may fail, so the
``*.dist-info`` folders are read: their names hold name and version (the wheel specification).
"""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

PACKAGES = (
    "llamafactory",
    "transformers",
    "torch",
    "accelerate",
    "peft",
    "trl",
    "datasets",
    "deepspeed",
    "bitsandbytes",
    "flash_attn",
    "liger_kernel",
    "vllm",
    "gradio",
)
"""Packages that decide what a training can do; names as in dist-info folders."""

_FILE_LIMIT = 64 * 1024
_PACKAGE = "llamafactory"
_VERSION_LINE = re.compile(r"""^VERSION\s*=\s*["']([^"'\n]{1,40})["']""", re.MULTILINE)
_METADATA_VERSION = re.compile(r"^Version:[ \t]*(\S{1,40})", re.MULTILINE)


def site_folders(prefix: Path, python: Path, script: Path | None = None) -> tuple[Path, ...]:
    """Folders that packages of this interpreter lie in, in the order of ``sys.path``.

    ``script`` is a console script that may lie in another prefix (``~/.local/bin``).
    """
    prefixes = [prefix, python.parent.parent]
    if script is not None:
        prefixes.insert(0, script.parent.parent)
    base = _base_prefix(prefix)
    if base is not None:
        prefixes.append(base)
    if Path("/usr") in prefixes:
        prefixes.append(Path("/usr/local"))
    folders = [folder for each in prefixes for folder in _site_folders_of(each)]
    return tuple(dict.fromkeys(folders))


def package_versions(sites: Sequence[Path]) -> dict[str, str | None]:
    """Version per name of ``PACKAGES``; the first folder that has it counts, as in Python."""
    found = installed_versions(sites)
    versions = {name: found.get(name) for name in PACKAGES}
    if _PACKAGE not in found:
        versions[_PACKAGE] = _source_version(find_package(sites))
    return versions


def installed_versions(sites: Sequence[Path]) -> dict[str, str]:
    """Version of everything installed, by the names of dist-info folders in small letters."""
    found: dict[str, str] = {}
    for site in sites:
        for name, version in _distributions(site):
            found.setdefault(name, version)
    return found


def find_package(sites: Sequence[Path]) -> Path | None:
    """The folder of the package ``llamafactory``, also where it was installed as editable."""
    for site in sites:
        for parent in (site, *_editable_parents(site)):
            package = parent / _PACKAGE
            if is_file(package / "__init__.py"):
                return package
    return None


def script_interpreter(script: Path) -> Path | None:
    """The Python that a console script names in its first lines; ``None`` if it cannot be told.

    Long paths and paths with spaces are written as ``#!/bin/sh`` and ``'''exec' '/path/python' "$0"``.
    """
    lines = read_start(script).split("\n", 2)
    if not lines[0].startswith("#!"):
        return None
    words = lines[0][2:].split()
    if words[:1] == ["/bin/sh"] and len(lines) > 1:
        quoted = re.match(r"""'''exec' (?:'([^']+)'|"([^"]+)"|(\S+))""", lines[1])
        path = (quoted[1] or quoted[2] or quoted[3]) if quoted else "$"
        return None if "$" in path else Path(path)  # a relocatable script works it out when it runs
    if not words or words[0] == "/usr/bin/env":
        return None
    return Path(words[0])


def _site_folders_of(prefix: Path) -> Iterator[Path]:
    for pattern in (
        "lib/python3*/site-packages",
        "lib64/python3*/site-packages",
        "lib/python3*/dist-packages",
    ):
        yield from sorted(prefix.glob(pattern))


def _base_prefix(prefix: Path) -> Path | None:
    """The prefix below a virtual environment that also uses the packages of its base."""
    options: dict[str, str] = {}
    for line in read_start(prefix / "pyvenv.cfg").splitlines():
        name, equals, value = line.partition("=")
        if equals:
            options[name.strip().lower()] = value.strip()
    if options.get("include-system-site-packages", "").lower() != "true" or "home" not in options:
        return None
    return Path(options["home"]).parent


def _distributions(site: Path) -> Iterator[tuple[str, str]]:
    """Names in small letters with underscores; conda leaves ``NAME-VERSION-pyX.Y.egg-info`` of some."""
    for entry in _entries(site):
        stem, ending = entry.stem, entry.suffix
        name, _, version = stem.partition("-")
        is_wheel = ending == ".dist-info" and is_file(entry / "METADATA")
        is_egg = ending == ".egg-info" and (is_file(entry) or is_file(entry / "PKG-INFO"))
        version = version.partition("-py")[0] if is_egg else version
        if version and (is_wheel or is_egg):
            yield name.replace(".", "_").replace("-", "_").lower(), version


def _editable_parents(site: Path) -> Iterator[Path]:
    """Folders that an editable install puts on ``sys.path``: ``.pth`` lines, ``.egg-link``, direct_url."""
    for entry in _entries(site):
        if entry.name.endswith((".pth", ".egg-link")):
            for line in read_start(entry).splitlines():
                if line and not line.startswith(("#", "import ", "import\t")):
                    yield site / line.strip()
        elif entry.name.startswith(f"{_PACKAGE}-") and entry.name.endswith(".dist-info"):
            source = _editable_source(entry / "direct_url.json")
            if source is not None:
                yield from (source / "src", source)


def _editable_source(direct_url: Path) -> Path | None:
    try:
        document = json.loads(read_start(direct_url) or "null")
    except (ValueError, RecursionError):
        return None
    if not isinstance(document, dict) or not isinstance(document.get("url"), str):
        return None
    directory = document.get("dir_info")
    if not isinstance(directory, dict) or directory.get("editable") is not True:
        return None
    url = urlsplit(document["url"])
    return Path(unquote(url.path)) if url.scheme == "file" else None


def _source_version(package: Path | None) -> str | None:
    """The version of a source tree without dist-info (``setup.py develop``, a bare ``.pth``)."""
    if package is None:
        return None
    told = _METADATA_VERSION.search(read_start(package.parent / f"{_PACKAGE}.egg-info" / "PKG-INFO"))
    told = told or _VERSION_LINE.search(read_start(package / "extras" / "env.py"))
    return told[1] if told else None


def is_file(path: Path) -> bool:
    """Whether this is a regular file that can be seen; a folder without permission hides its files."""
    try:
        return path.is_file()
    except OSError:
        return False


def read_start(path: Path) -> str:
    """The start of a small text file; ``""`` if it is no readable regular file."""
    if not is_file(path):
        return ""
    try:
        with path.open("rb") as file:
            return file.read(_FILE_LIMIT).decode(errors="replace")
    except OSError:
        return ""


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []
