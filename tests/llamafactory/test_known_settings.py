"""The settings of known releases."""

from tui.llamafactory.known_settings import known_releases, newest_settings, releases_with


def test_the_newest_releases_are_the_fallback() -> None:
    settings = newest_settings()
    assert settings["lora_rank"] == "whole"
    assert settings["eval_strategy"] == "word"
    assert "enable_jit_checkpoint" in settings
    assert "save_safetensors" not in settings


def test_releases_that_take_a_setting() -> None:
    assert releases_with("enable_jit_checkpoint") == ("transformers 5.6.2",)
    assert releases_with("kt_optimize_rule") == ("llamafactory 0.9.4",)
    assert releases_with("lora_rnak") == ()


def test_every_release_is_whole() -> None:
    for package, releases in known_releases().items():
        for release, settings in releases.items():
            assert len(settings) > 100, f"{package} {release}"
            assert set(settings.values()) <= {"whole", "number", "flag", "word", "other"}
