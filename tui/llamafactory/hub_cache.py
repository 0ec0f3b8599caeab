"""Where a model that is named by its hub lies, or would be downloaded to.

Hugging Face keeps ``models--ORG--NAME`` with snapshots that link into blobs; a file on its way ends in
``.incomplete``. ModelScope keeps ``ORG/NAME`` (dots written as ``___``), directly or below ``models``,
and what is on its way below ``._____temp``.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Hub = Literal["huggingface", "modelscope"]

_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,95}(?:/[\w.-]{1,96})?", re.ASCII)
_REVISION = re.compile(r"[\w./-]{1,200}", re.ASCII)
_TRUE = {"1", "true", "y"}
_OFFLINE = {"1", "on", "yes", "true"}
_ENTRIES = 10_000


@dataclass(frozen=True, slots=True)
class HubModel:
    """A model named by its hub. ``cache`` is the folder that holds all models of that hub; ``snapshot``
    where this one lies, if it does; ``unfinished``: a download of it was begun and not ended.
    ``offline``: the run is told not to ask the hub.
    """

    name: str
    hub: Hub
    cache: str
    snapshot: str | None = None
    unfinished: bool = False
    offline: bool = False


def is_hub_name(text: str) -> bool:
    """Whether a text can be a hub's name of a model: ``name`` or ``org/name``."""
    return _NAME.fullmatch(text) is not None and ".." not in text and "--" not in text


def find_hub_model(
    name: str, environ: Mapping[str, str], cache_dir: Path | None = None, revision: str = "main"
) -> HubModel:
    """Look for a model in the cache that the run would use; ``cache_dir`` is the config's own."""
    if environ.get("USE_MODELSCOPE_HUB", "").lower() in _TRUE:
        return _modelscope(name, environ, cache_dir)
    cache = cache_dir or huggingface_cache(environ)
    folder = cache / f"models--{name.replace('/', '--')}"
    return HubModel(
        name,
        "huggingface",
        str(cache),
        _snapshot(folder, revision),
        any(entry.endswith(".incomplete") for entry in _names(folder / "blobs")),
        any(environ.get(key, "").lower() in _OFFLINE for key in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")),
    )


def huggingface_cache(environ: Mapping[str, str]) -> Path:
    """The cache folder of Hugging Face's hub, by its variables in their order."""
    for variable in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "TRANSFORMERS_CACHE"):
        if environ.get(variable):
            return Path(environ[variable])
    home = Path(environ.get("HOME", "/"))
    caches = Path(environ.get("XDG_CACHE_HOME") or home / ".cache")
    return Path(environ.get("HF_HOME") or caches / "huggingface") / "hub"


def _modelscope(name: str, environ: Mapping[str, str], cache_dir: Path | None) -> HubModel:
    home = Path(environ.get("HOME", "/"))
    cache = cache_dir or Path(environ.get("MODELSCOPE_CACHE") or home / ".cache" / "modelscope" / "hub")
    written = name.replace(".", "___")
    places = [cache / "models" / written, cache / written, cache / "hub" / "models" / written]
    found = next((place for place in places if _is_folder(place)), None)
    unfinished = any(
        _is_folder(folder / "._____temp" / written) for folder in (cache, cache / "models", cache / "hub")
    )
    return HubModel(name, "modelscope", str(cache), None if found is None else str(found), unfinished)


def _snapshot(folder: Path, revision: str) -> str | None:
    if _REVISION.fullmatch(revision) is None or ".." in revision:
        return None
    try:
        commit = (folder / "refs" / revision).read_bytes()[:200].decode("ascii", "replace").strip()
    except OSError:
        commit = revision
    if _REVISION.fullmatch(commit) is None or "/" in commit or ".." in commit:
        return None
    found = folder / "snapshots" / commit
    return str(found) if _is_folder(found) else None


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:
        return False


def _names(folder: Path) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [entry.name for entry, _ in zip(entries, range(_ENTRIES), strict=False)]
    except OSError:
        return []
