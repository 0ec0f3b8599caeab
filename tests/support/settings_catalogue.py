"""Makes ``tui/llamafactory/known_settings.json``: ``python tests/support/settings_catalogue.py``.

It downloads the releases below and reads their fields from the source; nothing of them is installed.
"""

import json
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from tui.llamafactory.fields import llamafactory_fields, transformers_fields

RELEASES = {
    "llamafactory": ("0.9.3", "0.9.4", "0.9.5"),
    "transformers": ("4.52.4", "4.57.1", "5.6.2"),
}
READERS = {"llamafactory": llamafactory_fields, "transformers": transformers_fields}


def read_release(package: str, release: str) -> dict[str, str]:
    """Setting to kind."""
    with tempfile.TemporaryDirectory() as folder:
        download = ["download", "--quiet", "--no-deps", "--python-version", "3.11", "--only-binary=:all:"]
        subprocess.run(
            [sys.executable, "-m", "pip", *download, "-d", folder, f"{package}=={release}"], check=True
        )
        (wheel,) = Path(folder).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            wanted = [name for name in archive.namelist() if name.endswith("_args.py") or "args_" in name]
            archive.extractall(folder, wanted)
        return dict(sorted(READERS[package](Path(folder, package)).items()))


def main() -> None:
    """Write the file."""
    catalogue = {
        package: {release: read_release(package, release) for release in releases}
        for package, releases in RELEASES.items()
    }
    target = Path(__file__).parents[2] / "tui" / "llamafactory" / "known_settings.json"
    target.write_text(json.dumps(catalogue, indent=0) + "\n")
    print(
        {package: {name: len(keys) for name, keys in found.items()} for package, found in catalogue.items()}
    )


if __name__ == "__main__":
    main()
