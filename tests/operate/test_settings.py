"""The settings file: every key, every error with its place."""

import os
from pathlib import Path

import pytest

from tui.facts.errors import LlamaherdError
from tui.operate.settings import Settings, load_settings, settings_path

EXAMPLE = Path(__file__).parent.parent.parent / "configs" / "settings.example.yaml"


def write(folder: Path, text: str) -> Path:
    path = folder / "settings.yaml"
    path.write_text(text)
    return path


def test_every_key(tmp_path: Path) -> None:
    text = "environment: /e\nlanguage: zh\nstate_dir: /s\nprice_per_hour: 2\nreadonly: true\n"
    assert load_settings(write(tmp_path, text), {}) == Settings(Path("/e"), "zh", Path("/s"), 2.0, True)


@pytest.mark.parametrize("text", ["", "# all left out\n", "{}", "environment:\nlanguage: null\n"])
def test_all_may_be_left_out(tmp_path: Path, text: str) -> None:
    assert load_settings(write(tmp_path, text), {}) == Settings()


def test_a_missing_file_means_the_defaults(tmp_path: Path) -> None:
    assert load_settings(tmp_path / "missing.yaml", {}) == Settings()
    assert load_settings(None, {"LLAMAHERD_CONFIG": str(tmp_path / "missing.yaml")}) == Settings()


def test_the_place_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert settings_path(os.environ) == tmp_path / "llamaherd" / "settings.yaml"
    assert settings_path({"LLAMAHERD_CONFIG": "/x.yaml"}) == Path("/x.yaml")
    named = write(tmp_path, "readonly: true\n")
    assert load_settings(None, {"LLAMAHERD_CONFIG": str(named)}).readonly


def test_paths_start_in_the_file_s_folder_or_at_home(tmp_path: Path) -> None:
    path = write(tmp_path, "environment: ~/LLaMA-Factory/.venv\nstate_dir: jobs\n")
    settings = load_settings(path, {"HOME": "/home/me"})
    assert settings.environment == Path("/home/me/LLaMA-Factory/.venv")
    assert settings.state_dir == tmp_path / "jobs"


@pytest.mark.parametrize(
    ("text", "line", "key", "detail"),
    [
        ("readonly: true\nlanguage: fr\n", 2, "language", "Invalid enum value 'fr'"),
        ("language: no\n", 1, "language", "Expected `str | null`, got `bool`"),
        ("\nreadonly: 'yes'\n", 2, "readonly", "Expected `bool`, got `str`"),
        ("price_per_hour: -1\n", 1, "price_per_hour", "Expected `float` >= 0.0"),
        ("price_per_hour: .nan\n", 1, "price_per_hour", "Expected `float` >= 0.0"),
        ("price_per_hour: ￥3\n", 1, "price_per_hour", "Expected `float | null`, got `str`"),
        ("environment: 3\n", 1, "environment", "Expected a path"),
        ("environment: ''\n", 1, "environment", "Expected a path"),
        ("state_dir: [a]\n", 1, "state_dir", "Expected a path"),
    ],
)
def test_a_wrong_value_is_named_with_its_line(
    tmp_path: Path, text: str, line: int, key: str, detail: str
) -> None:
    error = error_of(write(tmp_path, text))
    assert (error["line"], error["key"], error["detail"]) == (line, key, detail)


@pytest.mark.parametrize(
    ("key", "nearest"),
    [
        ("enviroment", "environment"),
        ("lang", "language"),
        ("Readonly", "readonly"),
        ("gpu", None),
        ("3", None),
    ],
)
def test_an_unknown_key_is_named_with_the_one_that_is_meant(
    tmp_path: Path, key: str, nearest: str | None
) -> None:
    error = error_of(write(tmp_path, f"# head\n{key}: x\n"))
    assert (error["why"], error["line"], error["key"], error["nearest"]) == ("unknown_key", 2, key, nearest)


def test_a_file_that_is_no_settings(tmp_path: Path) -> None:
    assert error_of(write(tmp_path, "- readonly\n"))["why"] == "no_settings"
    assert error_of(tmp_path)["why"] == "not_a_file"
    broken = error_of(write(tmp_path, "readonly: true\nlanguage: 'zh\n"))
    assert (broken["line"], broken["detail"]) == (2, "found unexpected end of stream")
    (tmp_path / "settings.yaml").write_bytes("language: zh # 中文\n".encode("gbk"))
    assert (error_of(tmp_path / "settings.yaml")["why"]) == "not_utf8"


def test_the_example_is_valid_and_shows_every_key(tmp_path: Path) -> None:
    settings = load_settings(EXAMPLE, {})
    assert settings.language == "zh"
    assert all(getattr(settings, key) is not None for key in Settings.__dataclass_fields__)


def error_of(path: Path) -> dict[str, object]:
    with pytest.raises(LlamaherdError) as caught:
        load_settings(path, {})
    assert caught.value.code == "settings_invalid"
    assert caught.value.values["path"] == str(path)
    return caught.value.values
