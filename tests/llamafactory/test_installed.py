"""Versions and places of packages, read from files."""

import json
from pathlib import Path

import pytest
from support.fake_prefix import add_distribution, add_package, make_prefix, site_of

from tui.llamafactory.installed import (
    PACKAGES,
    find_package,
    installed_versions,
    package_versions,
    script_interpreter,
    site_folders,
)


def test_versions_are_the_names_of_the_dist_info_folders(tmp_path: Path) -> None:
    site = site_of(
        make_prefix(tmp_path / "env", torch="2.13.0+cpu", transformers="4.57.1", torchdata="0.11.0")
    )
    add_distribution(site, "flash_attn", "2.7.4.post1")
    add_distribution(site, "Liger.Kernel", "0.6.0")
    found = package_versions([site])
    assert set(found) == set(PACKAGES)
    assert {name: version for name, version in found.items() if version is not None} == {
        "llamafactory": "0.9.5",
        "torch": "2.13.0+cpu",
        "transformers": "4.57.1",
        "flash_attn": "2.7.4.post1",
        "liger_kernel": "0.6.0",
    }


def test_the_rest_of_a_removed_package_is_not_a_package(tmp_path: Path) -> None:
    (tmp_path / "torch-2.0.0.dist-info").mkdir()
    (tmp_path / "~orch-2.1.0.dist-info").mkdir()
    add_distribution(tmp_path, "torch", "2.8.0")
    assert package_versions([tmp_path])["torch"] == "2.8.0"


def test_a_virtual_environment_over_a_base_sees_the_packages_of_the_base(tmp_path: Path) -> None:
    base = make_prefix(tmp_path / "base", llamafactory=None, torch="2.5.1", transformers="4.40.0")
    venv = make_prefix(tmp_path / "venv", transformers="4.57.1")
    python = venv / "bin" / "python"
    assert package_versions(site_folders(venv, python))["torch"] is None
    (venv / "pyvenv.cfg").write_text(f"home = {base}/bin\ninclude-system-site-packages = true\n")
    found = package_versions(site_folders(venv, python))
    assert (found["torch"], found["transformers"]) == ("2.5.1", "4.57.1")


class TestEditableInstallation:
    @pytest.fixture
    def source(self, tmp_path: Path) -> Path:
        """A source tree of LLaMA-Factory, with a space and a letter that a URL escapes."""
        tree = tmp_path / "LLaMA Factory 微调"
        add_package(tree / "src")
        return tree

    def test_by_direct_url(self, source: Path, tmp_path: Path) -> None:
        site = tmp_path / "site"
        info = add_distribution(site, "llamafactory", "0.9.6.dev0")
        document = {"url": source.as_uri(), "dir_info": {"editable": True}}
        (info / "direct_url.json").write_text(json.dumps(document))
        assert find_package([site]) == source / "src" / "llamafactory"
        assert package_versions([site])["llamafactory"] == "0.9.6.dev0"

    @pytest.mark.parametrize("name", ["_llamafactory.pth", "easy-install.pth", "llamafactory.egg-link"])
    def test_by_a_path_file(self, source: Path, tmp_path: Path, name: str) -> None:
        site = tmp_path / "site"
        site.mkdir()
        (site / name).write_text(f"import sys; sys.evil = 1\n# comment\n/nowhere\n{source}/src\n.\n")
        assert find_package([site]) == source / "src" / "llamafactory"
        assert package_versions([site])["llamafactory"] == "0.9.6.dev0"
        metadata = source / "src" / "llamafactory.egg-info"
        metadata.mkdir()
        (metadata / "PKG-INFO").write_text("Metadata-Version: 2.1\nName: llamafactory\nVersion: 0.9.2\n")
        assert package_versions([site])["llamafactory"] == "0.9.2"

    @pytest.mark.parametrize(
        "document",
        [
            "",
            "[",
            "[" * 100_000,
            "null",
            "[]",
            '{"url": 1}',
            '{"url": "file:///x"}',
            '{"url": "https://example.org/x", "dir_info": {"editable": true}}',
            '{"url": "file:///x", "dir_info": []}',
        ],
    )
    def test_a_record_that_names_no_tree(self, tmp_path: Path, document: str) -> None:
        info = add_distribution(tmp_path, "llamafactory", "0.9.5")
        (info / "direct_url.json").write_text(document)
        assert find_package([tmp_path]) is None

    def test_hostile_files_are_not_read(self, tmp_path: Path) -> None:
        (tmp_path / "folder.pth").mkdir()
        (tmp_path / "binary.pth").write_bytes(b"\xff\xfe\n" * 100)
        assert find_package([tmp_path]) is None


@pytest.mark.parametrize(
    ("lines", "interpreter"),
    [
        ("#!/env/bin/python3\nimport sys", "/env/bin/python3"),
        ("#! /env/bin/python3 -I\n", "/env/bin/python3"),
        ("#!/usr/bin/env python3\n", None),
        ("#!/bin/sh\n'''exec' /env/bin/python \"$0\" \"$@\"\n", "/env/bin/python"),
        ("#!/bin/sh\n'''exec' \"/env with space/bin/python\" \"$0\"\n", "/env with space/bin/python"),
        ("#!/bin/sh\necho\n", None),
        ("\x7fELF\0\0\0", None),
        ("", None),
    ],
)
def test_the_interpreter_of_a_script(tmp_path: Path, lines: str, interpreter: str | None) -> None:
    script = tmp_path / "llamafactory-cli"
    script.write_text(lines)
    assert script_interpreter(script) == (Path(interpreter) if interpreter else None)


def test_what_conda_leaves_counts_too(tmp_path: Path) -> None:
    site = site_of(make_prefix(tmp_path / "env"))
    egg = site / "deepspeed-0.16.9-py3.11.egg-info"
    egg.mkdir()
    (egg / "PKG-INFO").write_text("Version: 0.16.9\n")
    (site / "liger_kernel-0.6.0-py3.11.egg-info").write_text("Version: 0.6.0\n")
    (site / "no-version.egg-info").mkdir()
    (site / "empty-1.0.egg-info").mkdir()
    found = installed_versions([site])
    assert (found["deepspeed"], found["liger_kernel"]) == ("0.16.9", "0.6.0")
    assert not {"no", "empty"} & found.keys()
