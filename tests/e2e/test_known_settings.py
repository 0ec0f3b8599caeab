"""The settings that are read from source, and those kept as data, are the ones that LLaMA-Factory takes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from support.real_llamafactory import RealLlamaFactory

from tui.llamafactory.environment import find_environment
from tui.llamafactory.fields import read_fields
from tui.llamafactory.known_settings import known_releases
from tui.llamafactory.requirements import basic_requirements, option_requirements, template_names

HERE = Path(__file__).parent
TEMPLATES = (
    "import json; from llamafactory.data.template import TEMPLATES; print(json.dumps(sorted(TEMPLATES)))"
)

pytestmark = pytest.mark.e2e


def ask(llamafactory: RealLlamaFactory, *arguments: str) -> set[str]:
    done = subprocess.run(
        [str(llamafactory.environment / "bin" / "python"), *arguments],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    answer: list[str] = json.loads(done.stdout.splitlines()[-1])
    return set(answer)


def test_settings_templates_and_ranges(llamafactory: RealLlamaFactory, tmp_path: Path) -> None:
    environment = find_environment(
        explicit=llamafactory.environment,
        settings=None,
        environ={},
        cwd=tmp_path,
        own_prefix=Path(sys.prefix),
        roots=(),
    )
    settings = ask(llamafactory, str(HERE / "list_settings.py"))
    assert set(read_fields(environment.sites) or ()) == settings
    releases = known_releases()
    versions = {name: environment.versions[name] for name in ("llamafactory", "transformers")}
    assert {key for name, release in versions.items() for key in releases[name][str(release)]} == settings

    package = environment.package
    assert package is not None
    assert template_names(package) == ask(llamafactory, "-c", TEMPLATES)
    names = [requirement.name for requirement in basic_requirements(package)]
    assert names == ["transformers", "datasets", "accelerate", "peft", "trl"]
    assert "deepspeed" in {requirement.name for requirement in option_requirements(package)}
