"""Settings of releases that are not the one at hand: a key may come from a newer one, or be gone.

``known_settings.json`` holds, per release, every setting and its kind; it is made from the published
packages by ``tests/support/settings_catalogue.py``.
"""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from tui.llamafactory.fields import Kind

_FILE = Path(__file__).with_name("known_settings.json")
_Releases = Mapping[str, Mapping[str, Mapping[str, Kind]]]


@cache
def known_releases() -> _Releases:
    """Package to release to setting to kind; releases from old to new."""
    releases: _Releases = json.loads(_FILE.read_text("ascii"))
    return releases


def newest_settings() -> dict[str, Kind]:
    """The settings of the newest releases, for when no environment can be asked."""
    newest = [list(releases.values())[-1] for releases in known_releases().values()]
    return {name: kind for settings in newest for name, kind in settings.items()}


def releases_with(key: str) -> tuple[str, ...]:
    """The releases that take a setting, such as ``llamafactory 0.9.5``; from old to new."""
    return tuple(
        f"{package} {release}"
        for package, releases in known_releases().items()
        for release, settings in releases.items()
        if key in settings
    )
