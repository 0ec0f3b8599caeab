"""Models by their hub's name."""

from pathlib import Path

import pytest

from tui.llamafactory.hub_cache import find_hub_model, huggingface_cache, is_hub_name

NAME = "Qwen/Qwen3-0.6B"


def fill_huggingface(cache: Path) -> Path:
    folder = cache / "models--Qwen--Qwen3-0.6B"
    snapshot = folder / "snapshots" / "abc123"
    snapshot.mkdir(parents=True)
    (folder / "refs").mkdir()
    (folder / "refs" / "main").write_text("abc123\n")
    (folder / "blobs").mkdir()
    return snapshot


@pytest.mark.parametrize(
    ("text", "is_name"),
    [
        (NAME, True),
        ("gpt2", True),
        ("/root/model", False),
        ("./model", False),
        ("~/model", False),
        ("a/b/c", False),
        ("../model", False),
        ("a/..", False),
        ("", False),
        ("a\0b", False),
    ],
)
def test_what_can_be_a_name(text: str, is_name: bool) -> None:
    assert is_hub_name(text) is is_name


def test_huggingfaces_cache(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path)}
    cache = tmp_path / ".cache" / "huggingface" / "hub"
    assert (find_hub_model(NAME, environ).snapshot, find_hub_model(NAME, environ).cache) == (None, str(cache))
    snapshot = fill_huggingface(cache)
    assert find_hub_model(NAME, environ).snapshot == str(snapshot)
    assert find_hub_model(NAME, environ, revision="abc123").snapshot == str(snapshot)
    assert find_hub_model(NAME, environ, revision="other").snapshot is None
    assert find_hub_model(NAME, environ, revision="../../x").snapshot is None


def test_a_download_on_its_way(tmp_path: Path) -> None:
    fill_huggingface(tmp_path)
    assert not find_hub_model(NAME, {}, tmp_path).unfinished
    (tmp_path / "models--Qwen--Qwen3-0.6B" / "blobs" / "x.incomplete").touch()
    assert find_hub_model(NAME, {}, tmp_path).unfinished


@pytest.mark.parametrize(
    ("environ", "cache"),
    [
        ({"HOME": "/h"}, "/h/.cache/huggingface/hub"),
        ({"HOME": "/h", "XDG_CACHE_HOME": "/c"}, "/c/huggingface/hub"),
        ({"HOME": "/h", "HF_HOME": "/f"}, "/f/hub"),
        ({"HF_HOME": "/f", "HF_HUB_CACHE": "/g"}, "/g"),
    ],
)
def test_where_it_lies(environ: dict[str, str], cache: str) -> None:
    assert str(huggingface_cache(environ)) == cache


@pytest.mark.parametrize(("value", "offline"), [("1", True), ("ON", True), ("0", False), ("", False)])
def test_offline(tmp_path: Path, value: str, offline: bool) -> None:
    assert find_hub_model(NAME, {"HF_HUB_OFFLINE": value}, tmp_path).offline is offline


@pytest.mark.parametrize("place", ["models/Qwen/Qwen3-0___6B", "Qwen/Qwen3-0___6B"])
def test_modelscopes_cache(tmp_path: Path, place: str) -> None:
    environ = {"HOME": str(tmp_path), "USE_MODELSCOPE_HUB": "1"}
    cache = tmp_path / ".cache" / "modelscope" / "hub"
    assert find_hub_model(NAME, environ).snapshot is None
    (cache / place).mkdir(parents=True)
    found = find_hub_model(NAME, environ)
    assert (found.hub, found.snapshot) == ("modelscope", str(cache / place))
    (cache / "._____temp" / "Qwen" / "Qwen3-0___6B").mkdir(parents=True)
    assert find_hub_model(NAME, environ).unfinished
