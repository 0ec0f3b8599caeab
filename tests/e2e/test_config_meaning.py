"""The copy of a config that LLaMA-Factory gets means to it what the user's file would have meant."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.real_llamafactory import RealLlamaFactory

from tui.llamafactory.config import apply_overrides, dump, load_config
from tui.llamafactory.environment import find_environment

HERE = Path(__file__).parent
CASES: list[dict[str, Any]] = json.loads((HERE.parent / "data" / "omegaconf" / "cases.json").read_text())
READY = sorted((HERE.parent.parent / "configs").glob("*.yaml"))

pytestmark = pytest.mark.e2e


def ask(llamafactory: RealLlamaFactory, script: str, question: object = None) -> Any:
    done = subprocess.run(
        [str(llamafactory.environment / "bin" / "python"), str(HERE / script)],
        input=json.dumps(question),
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    return json.loads(done.stdout.splitlines()[-1])  # LLaMA-Factory logs to standard output first


def comparable(values: object) -> str:
    return json.dumps(values, sort_keys=True)


def test_the_recorded_cases_are_what_llamafactory_reads(llamafactory: RealLlamaFactory) -> None:
    told = ask(llamafactory, "read_with_omegaconf.py", CASES)
    for case, answer in zip(CASES, told, strict=True):
        assert comparable(answer.get("values")) == comparable(case.get("values")), case
        assert ("error" in answer) == ("error" in case), case


def test_the_copies_mean_the_same(llamafactory: RealLlamaFactory, tmp_path: Path) -> None:
    good = [case for case in CASES if case.get("values")]
    assert len(good) > 100
    copies: list[dict[str, Any]] = []
    for case in good:
        file = tmp_path / "train.yaml"
        file.write_text(case["text"])
        copy = dump(apply_overrides(load_config(file), case["overrides"]))
        copies.append({"text": copy, "overrides": []})
    answers = ask(llamafactory, "read_with_omegaconf.py", copies)
    for case, answer in zip(good, answers, strict=True):
        assert comparable(answer.get("values")) == comparable(case["values"]), case


def test_ready_configs_have_only_settings_that_exist(llamafactory: RealLlamaFactory) -> None:
    known = set(ask(llamafactory, "list_settings.py"))
    for path in READY:
        if path.stem != "settings.example":
            assert set(load_config(path).values) <= known, path.name


def test_the_environment_is_found_from_its_files(llamafactory: RealLlamaFactory, tmp_path: Path) -> None:
    found = find_environment(
        explicit=llamafactory.environment,
        settings=None,
        environ={},
        cwd=tmp_path,
        own_prefix=Path(sys.prefix),
        roots=(),
    )
    assert found.cli == llamafactory.command
    code = (
        "import json, sys; from importlib.metadata import version;"
        "print(json.dumps({name: version(name) for name in sys.argv[1:]}))"
    )
    installed = {name: version for name, version in found.versions.items() if version is not None}
    asked = subprocess.run(
        [str(found.python), "-c", code, *installed], capture_output=True, text=True, check=True, timeout=60
    )
    assert json.loads(asked.stdout) == installed
    assert {"llamafactory", "transformers", "torch"} <= installed.keys()


def test_an_environment_without_pip_is_found(llamafactory: RealLlamaFactory, tmp_path: Path) -> None:
    uv_made = llamafactory.link_without_pip(tmp_path / "uv")
    found = find_environment(
        explicit=None,
        settings=None,
        environ={"VIRTUAL_ENV": str(uv_made)},
        cwd=tmp_path,
        own_prefix=Path(sys.prefix),
        roots=(),
    )
    assert (found.prefix, found.cli) == (uv_made, uv_made / "bin" / "llamafactory-cli")
    assert found.versions["llamafactory"]
