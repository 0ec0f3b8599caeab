"""llamaherd's own settings: one small YAML file, read once, never written.

It lies at ``$LLAMAHERD_CONFIG``, else in the user's configuration folder. Without it everything has a
default.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from tui.facts.errors import LlamaherdError
from tui.llamafactory.text_file import TextFileError, read_text_file
from tui.llamafactory.yaml_text import Document, YamlError, parse_yaml

FILE_VARIABLE = "LLAMAHERD_CONFIG"
_SHOWN = 100


@dataclass(frozen=True, slots=True)
class Settings:
    """Every key of the settings file.

    ``environment``: the training environment (a folder, a Python or a ``llamafactory-cli``).
    ``language``: that of the screen and the messages; ``None`` follows the locale.
    ``state_dir``: where job folders are written. ``price_per_hour``: of the instance, in any currency.
    ``readonly``: refuse everything that acts on a job.
    """

    environment: Path | None = None
    language: Literal["en", "zh"] | None = None
    state_dir: Path | None = None
    price_per_hour: Annotated[float, msgspec.Meta(ge=0, le=100_000)] | None = None
    readonly: bool = False


def load_settings(path: Path | None, environ: Mapping[str, str]) -> Settings:
    """The settings of ``path``, else of the usual place; a missing file means the defaults.

    A relative path in the file starts in the file's folder; ``~`` is the home folder.

    Raises:
        LlamaherdError: ``settings_invalid`` with ``path`` and what is known of ``line``, ``key``,
            ``nearest`` (the known key that is meant, for an unknown one), ``why`` (``unknown_key``,
            ``no_settings``, or a problem of ``text_file``) and ``detail`` (text).
    """
    path = path or settings_path(environ)
    document = _document(path)
    if document is None or document.value is None:
        return Settings()
    if not isinstance(document.value, dict):
        raise _invalid(path, why="no_settings")
    names = [field.name for field in fields(Settings)]
    for key in document.value:
        if key not in names:
            nearest = get_close_matches(str(key)[:100], names, n=1)
            raise _invalid(
                path,
                line=document.lines.get(str(key)),
                key=str(key)[:_SHOWN],
                nearest=nearest[0] if nearest else None,
                why="unknown_key",
            )

    def read_path(wanted: type, value: object) -> object:
        if wanted is not Path or not isinstance(value, str) or not value or "\0" in value:
            raise ValueError("Expected a path")
        return _placed(value, path.parent, environ.get("HOME"))

    try:
        return msgspec.convert(document.value, Settings, dec_hook=read_path)
    except msgspec.ValidationError as error:
        problem, _, key = str(error).rpartition(" - at `$.")
        key = key.rstrip("`")
        raise _invalid(path, line=document.lines.get(key), key=key, detail=problem) from error


def settings_path(environ: Mapping[str, str]) -> Path:
    """Where the settings file lies, whether it exists or not."""
    named = environ.get(FILE_VARIABLE)
    if named:
        return Path(named)
    import platformdirs  # only where it is needed: every start reads the settings

    return platformdirs.user_config_path("llamaherd") / "settings.yaml"


def _document(path: Path) -> Document | None:
    """The parsed file; ``None`` if it does not exist."""
    try:
        return parse_yaml(read_text_file(path))
    except TextFileError as error:
        if error.problem == "missing":
            return None
        raise _invalid(path, why=error.problem, detail=error.detail, line=error.line) from error
    except YamlError as error:
        raise _invalid(path, detail=error.problem, line=error.line) from error


def _placed(written: str, folder: Path, home: str | None) -> Path:
    if home and (written == "~" or written.startswith("~/")):
        return Path(home, written[2:])
    return folder / written


def _invalid(
    path: Path,
    *,
    line: int | None = None,
    key: str | None = None,
    nearest: str | None = None,
    why: str | None = None,
    detail: str | None = None,
) -> LlamaherdError:
    return LlamaherdError(
        "settings_invalid", path=str(path), line=line, key=key, nearest=nearest, why=why, detail=detail
    )
