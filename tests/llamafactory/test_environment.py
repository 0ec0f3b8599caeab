"""Where the training environment is found, and where it must not be."""

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support.fake_prefix import add_package, add_script, make_prefix, site_of

from tui.facts.errors import LlamaherdError
from tui.llamafactory.environment import USUAL_ROOTS, Environment, find_environment, runtime_environ

Find = Callable[..., Environment]


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """This program's own virtual environment, into which somebody also put LLaMA-Factory."""
    return make_prefix(tmp_path / "llamaherd-venv")


@pytest.fixture
def cwd(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def find(own: Path, cwd: Path, tmp_path: Path) -> Find:
    """The search in a world where nothing is found by itself."""

    def search(
        *,
        explicit: Path | None = None,
        settings: Path | None = None,
        roots: tuple[Path, ...] = (),
        **environ: str,
    ) -> Environment:
        return find_environment(
            explicit=explicit,
            settings=settings,
            environ={"HOME": str(tmp_path / "home"), **environ},
            cwd=cwd,
            own_prefix=own,
            roots=roots,
        )

    return search


def test_the_order_of_the_places(find: Find, tmp_path: Path, cwd: Path) -> None:
    on_path = make_prefix(tmp_path / "on-path")
    root = tmp_path / "LLaMA-Factory"
    make_prefix(root / ".venv")
    venv = make_prefix(cwd / "venv")
    dot_venv = make_prefix(cwd / ".venv")
    conda = make_prefix(tmp_path / "conda")
    active = make_prefix(tmp_path / "active")
    settings = make_prefix(tmp_path / "settings")
    option = make_prefix(tmp_path / "option")

    def source_and_prefix(explicit: Path | None, settings: Path | None, **environ: str) -> tuple[str, Path]:
        search_path = os.pathsep.join(["/nowhere", str(on_path / "bin")])
        found = find(explicit=explicit, settings=settings, roots=(root,), PATH=search_path, **environ)
        return found.source, found.prefix

    variables = {"VIRTUAL_ENV": str(active), "CONDA_PREFIX": str(conda)}
    assert source_and_prefix(option, settings, **variables) == ("option", option)
    assert source_and_prefix(None, settings, **variables) == ("settings", settings)
    assert source_and_prefix(None, None, **variables) == ("VIRTUAL_ENV", active)
    assert source_and_prefix(None, None, CONDA_PREFIX=str(conda)) == ("CONDA_PREFIX", conda)
    assert source_and_prefix(None, None) == ("cwd", dot_venv)
    shutil.rmtree(dot_venv)
    assert source_and_prefix(None, None) == ("cwd", venv)
    shutil.rmtree(venv)
    assert source_and_prefix(None, None) == ("usual_root", root / ".venv")
    shutil.rmtree(root)
    assert source_and_prefix(None, None) == ("PATH", on_path)


def test_an_environment_without_llamafactory_is_passed_over(find: Find, tmp_path: Path) -> None:
    base = make_prefix(tmp_path / "miniconda3", llamafactory=None, torch="2.8.0")
    make_prefix(base / "envs" / "notebook", llamafactory=None)
    wanted = make_prefix(base / "envs" / "train")
    found = find(roots=(base,), CONDA_PREFIX=str(base))
    assert (found.source, found.prefix) == ("usual_root", wanted)


def test_usual_roots_in_the_home_folder_follow_the_given_home(find: Find, tmp_path: Path) -> None:
    wanted = make_prefix(tmp_path / "home" / "LLaMA-Factory" / ".venv")
    home_roots = tuple(root for root in USUAL_ROOTS if root.parts[0] == "~")
    assert find(roots=home_roots).prefix == wanted


class TestOwnEnvironment:
    """Its own environment never counts, however it comes into sight."""

    def test_as_the_active_one(self, find: Find, own: Path) -> None:
        with pytest.raises(LlamaherdError) as caught:
            find(VIRTUAL_ENV=str(own), CONDA_PREFIX=str(own))
        assert caught.value.code == "environment_not_found"
        assert caught.value.values["rejected"] == (f"{own}: own_environment",)

    def test_through_a_link_to_it(self, find: Find, own: Path, cwd: Path) -> None:
        (cwd / ".venv").symlink_to(own)
        with pytest.raises(LlamaherdError) as caught:
            find()
        assert caught.value.code == "environment_not_found"

    def test_on_the_path_also_as_a_linked_script(self, find: Find, own: Path, tmp_path: Path) -> None:
        (tmp_path / "bin").mkdir()
        (tmp_path / "bin" / "llamafactory-cli").symlink_to(own / "bin" / "llamafactory-cli")
        with pytest.raises(LlamaherdError) as caught:
            find(PATH=os.pathsep.join([str(own / "bin"), str(tmp_path / "bin")]))
        assert caught.value.code == "environment_not_found"

    @pytest.mark.parametrize("below", [".", "bin/python", "bin/llamafactory-cli"])
    def test_named_outright(self, find: Find, own: Path, below: str) -> None:
        with pytest.raises(LlamaherdError) as caught:
            find(explicit=own / below)
        assert (caught.value.code, caught.value.values["why"]) == ("environment_unusable", "own_environment")

    def test_another_environment_of_the_same_python_is_not_it(self, find: Find, own: Path, cwd: Path) -> None:
        other = make_prefix(cwd / ".venv")
        assert (own / "bin" / "python").resolve() == (other / "bin" / "python").resolve()
        assert find(VIRTUAL_ENV=str(own)).prefix == other


class TestNamedEnvironment:
    @pytest.mark.parametrize("below", [".", "bin/python", "bin/llamafactory-cli"])
    def test_prefix_python_or_script(self, find: Find, tmp_path: Path, below: str) -> None:
        prefix = make_prefix(tmp_path / "env")
        found = find(explicit=prefix / below)
        assert (found.prefix, found.python) == (prefix, prefix / "bin" / "python")
        assert found.cli == prefix / "bin" / "llamafactory-cli"

    def test_a_source_tree_stands_for_its_environment(self, find: Find, tmp_path: Path) -> None:
        wanted = make_prefix(tmp_path / "LLaMA-Factory" / ".venv")
        assert find(explicit=tmp_path / "LLaMA-Factory").prefix == wanted

    def test_a_relative_path_starts_in_the_given_folder(self, find: Find, cwd: Path) -> None:
        wanted = make_prefix(cwd / "env")
        assert find(explicit=Path("env")).prefix == wanted

    def test_the_home_folder(self, find: Find, tmp_path: Path) -> None:
        wanted = make_prefix(tmp_path / "home" / "env")
        assert find(settings=Path("~/env")).prefix == wanted

    @pytest.mark.parametrize("place", ["explicit", "settings"])
    def test_an_unusable_one_is_an_error_and_nothing_else_is_tried(
        self, find: Find, tmp_path: Path, cwd: Path, place: str
    ) -> None:
        make_prefix(cwd / ".venv")
        with pytest.raises(LlamaherdError) as caught:
            find(**{place: tmp_path / "missing"})
        assert caught.value.code == "environment_unusable"
        assert caught.value.values == {"path": str(tmp_path / "missing"), "why": "missing"}

    def test_why_it_is_unusable(self, find: Find, tmp_path: Path) -> None:
        (tmp_path / "folder").mkdir()
        (tmp_path / "train.yaml").write_text("stage: sft\n")
        make_prefix(tmp_path / "other", llamafactory=None)
        broken = make_prefix(tmp_path / "broken", python=False)
        (broken / "bin" / "python").symlink_to(tmp_path / "removed-python")
        for path, why in {
            "folder": "not_an_environment",
            "train.yaml": "not_an_environment",
            "other": "no_llamafactory",
            "broken": "no_python",
        }.items():
            with pytest.raises(LlamaherdError) as caught:
                find(explicit=tmp_path / path)
            assert caught.value.values["why"] == why


class TestScriptOnThePath:
    def test_a_link_is_followed_to_its_environment(self, find: Find, tmp_path: Path) -> None:
        prefix = make_prefix(tmp_path / "opt" / "venv")
        (tmp_path / "bin").mkdir()
        (tmp_path / "bin" / "lmf").symlink_to(prefix / "bin" / "llamafactory-cli")
        found = find(PATH=str(tmp_path / "bin"))
        assert (found.prefix, found.bin) == (prefix, prefix / "bin")

    def test_a_user_installation_has_its_python_elsewhere(self, find: Find, tmp_path: Path) -> None:
        system = make_prefix(tmp_path / "system", llamafactory=None, torch="2.8.0")
        user = tmp_path / "home" / ".local"
        add_package(site_of(user))
        (user / "bin").mkdir()
        add_script(user, shebang=str(system / "bin" / "python"))
        found = find(PATH=str(user / "bin"))
        assert (found.prefix, found.python) == (system, system / "bin" / "python")
        assert found.bin == user / "bin"  # torchrun was put there too
        assert found.versions["torch"] == "2.8.0"
        assert found.versions["llamafactory"] == "0.9.6.dev0"

    def test_a_script_of_a_shell_names_no_environment(self, find: Find, tmp_path: Path) -> None:
        (tmp_path / "bin").mkdir()
        add_script(tmp_path, shebang="/bin/bash")
        with pytest.raises(LlamaherdError) as caught:
            find(PATH=str(tmp_path / "bin"))
        assert caught.value.values["rejected"] == (f"{tmp_path / 'bin' / 'llamafactory-cli'}: no_python",)


class TestCommand:
    def test_the_console_script(self, find: Find, tmp_path: Path) -> None:
        prefix = make_prefix(tmp_path / "env")
        assert find(explicit=prefix).command() == (str(prefix / "bin" / "llamafactory-cli"),)

    def test_without_a_console_script_the_module(self, find: Find, tmp_path: Path) -> None:
        prefix = make_prefix(tmp_path / "env", cli=False)
        found = find(explicit=prefix)
        assert found.cli is None
        assert found.command() == (str(prefix / "bin" / "python"), "-m", "llamafactory.cli")

    @pytest.mark.parametrize("old", ["/gone/bin/python", sys.executable])
    def test_a_moved_environment_has_a_script_that_starts_elsewhere(
        self, find: Find, tmp_path: Path, old: str
    ) -> None:
        prefix = make_prefix(tmp_path / "moved", shebang=old)
        assert find(explicit=prefix).cli is None

    def test_a_long_path_is_written_for_a_shell(self, find: Find, tmp_path: Path) -> None:
        prefix = make_prefix(tmp_path / "with space")
        script = prefix / "bin" / "llamafactory-cli"
        script.write_text(f"#!/bin/sh\n'''exec' '{prefix}/bin/python' \"$0\" \"$@\"\n' '''\n")
        assert find(explicit=prefix).cli == script
        script.write_text("#!/bin/sh\n'''exec' '/gone/bin/python' \"$0\" \"$@\"\n' '''\n")
        assert find(explicit=prefix).cli is None

    def test_a_relocatable_script_works_out_its_python(self, find: Find, tmp_path: Path) -> None:
        prefix = make_prefix(tmp_path / "env")
        script = prefix / "bin" / "llamafactory-cli"
        script.write_text("#!/bin/sh\n'''exec' \"$(dirname -- \"$0\")\"/'python' \"$0\" \"$@\"\n' '''\n")
        assert find(explicit=prefix).cli == script


class TestRuntimeEnviron:
    def test_the_environment_comes_first_and_llamaherds_is_undone(
        self, find: Find, own: Path, tmp_path: Path
    ) -> None:
        found = find(explicit=make_prefix(tmp_path / "env"))
        result = runtime_environ(
            found,
            {
                "PATH": f"{own}/bin:/usr/bin::{found.bin}:/bin",
                "VIRTUAL_ENV": str(own),
                "VIRTUAL_ENV_PROMPT": "llamaherd",
                "PYTHONHOME": "/usr",
                "PYTHONPATH": f"/home/me/lib:{own}/lib",
                "CONDA_PREFIX": "/root/miniconda3",
                "HF_TOKEN": "kept",
            },
            own,
        )
        assert result == {
            "PATH": f"{found.bin}:/usr/bin::/bin",
            "VIRTUAL_ENV": str(found.prefix),
            "PYTHONPATH": "/home/me/lib",
            "CONDA_PREFIX": "/root/miniconda3",
            "HF_TOKEN": "kept",
        }

    def test_llamaherd_in_a_conda_environment(self, find: Find, tmp_path: Path) -> None:
        conda = tmp_path / "conda" / "envs" / "train"
        found = find(explicit=make_prefix(conda))
        (conda / "pyvenv.cfg").unlink()
        (conda / "conda-meta").mkdir()
        own = tmp_path / "conda"
        base = {"PATH": f"{own}/bin:/bin", "CONDA_PREFIX": str(own), "CONDA_DEFAULT_ENV": "base"}
        result = runtime_environ(found, base, own)
        # Nothing marks the folders of that conda as llamaherd's alone: they stay behind the environment's.
        assert result == {"PATH": f"{conda}/bin:{own}/bin:/bin", "CONDA_PREFIX": str(conda)}

    def test_the_systems_folders_are_nobodys_own(self, find: Find, tmp_path: Path) -> None:
        found = find(explicit=make_prefix(tmp_path / "env"))
        result = runtime_environ(found, {"PATH": "/usr/bin:/bin"}, Path("/usr"))
        assert result["PATH"] == f"{found.bin}:/usr/bin:/bin"

    def test_a_python_path_that_was_only_ours_goes(self, find: Find, own: Path, tmp_path: Path) -> None:
        found = find(explicit=make_prefix(tmp_path / "env"))
        assert "PYTHONPATH" not in runtime_environ(found, {"PYTHONPATH": f"{own}/lib"}, own)


def test_nothing_found_names_where_it_looked(find: Find, cwd: Path, tmp_path: Path) -> None:
    with pytest.raises(LlamaherdError) as caught:
        find(roots=(tmp_path / "LLaMA-Factory",), VIRTUAL_ENV=str(tmp_path / "gone"))
    assert caught.value.code == "environment_not_found"
    looked = caught.value.values["looked"]
    assert isinstance(looked, tuple)
    for place in (tmp_path / "gone", cwd / ".venv", cwd / "venv", tmp_path / "LLaMA-Factory" / ".venv"):
        assert str(place) in looked
    assert caught.value.values["rejected"] == ()


def test_a_loop_of_links_is_no_environment(find: Find, cwd: Path) -> None:
    (cwd / ".venv").symlink_to(cwd / "venv")
    (cwd / "venv").symlink_to(cwd / ".venv")
    with pytest.raises(LlamaherdError) as caught:
        find()
    assert caught.value.code == "environment_not_found"
