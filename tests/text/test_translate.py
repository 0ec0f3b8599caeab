"""Which language is spoken, and that a sentence always comes out."""

import threading

import pytest

from tui.text.translate import Language, language, language_from, set_language, tr, tr_noop, tr_plural


@pytest.mark.parametrize(
    ("environment", "setting", "flag", "on_autodl", "expected"),
    [
        ({}, None, None, False, "en"),
        ({}, None, None, True, "zh"),
        ({"AutoDLContainerUUID": "x"}, None, None, False, "zh"),
        ({"LANG": "zh_CN.UTF-8"}, None, None, False, "zh"),
        ({"LANG": "zh_TW"}, None, None, False, "zh"),
        ({"LANG": "C.UTF-8"}, None, None, True, "zh"),
        ({"LANG": "C.UTF-8"}, None, None, False, "en"),
        ({"LC_ALL": "POSIX", "LANG": "zh_CN.UTF-8"}, None, None, False, "en"),
        ({"LANG": "en_US.UTF-8"}, None, None, True, "en"),
        ({"LANG": "fr_FR.UTF-8"}, None, None, True, "en"),
        ({"LC_MESSAGES": "zh_CN", "LANG": "en_US"}, None, None, False, "zh"),
        ({"LANGUAGE": "fr:zh_CN:en", "LANG": "en_US"}, None, None, False, "zh"),
        ({"LANGUAGE": "", "LANG": "zh_CN"}, None, None, False, "zh"),
        ({"LANG": "zh_CN"}, "en", None, True, "en"),
        ({"LANG": "zh_CN"}, "en", "zh", False, "zh"),
        ({"LANG": "zh_CN"}, None, "en", True, "en"),
        ({}, "klingon", "klingon", False, "en"),
    ],
)
def test_flag_then_setting_then_locale_then_place(
    environment: dict[str, str], setting: str | None, flag: str | None, on_autodl: bool, expected: Language
) -> None:
    assert language_from(environment, setting=setting, flag=flag, on_autodl=on_autodl) == expected


def test_values_are_filled_after_the_translation() -> None:
    assert tr("{count} s ago", count=3) == "3 s ago"
    set_language("zh")
    assert tr("{count} s ago", count=3) == "3 秒前"
    assert language() == "zh"
    set_language(None)
    assert language() == "en"


def test_a_missing_value_costs_its_place_and_not_the_sentence() -> None:
    assert tr("Stopping {job} of {who}", job="a") == "Stopping a of {who}"
    assert tr("no placeholders") == "no placeholders"


def test_values_are_never_read_as_a_format() -> None:
    assert tr("{job}", job="{0.__class__} {job}") == "{0.__class__} {job}"


def test_plural() -> None:
    assert tr_plural("{count} GPU", "{count} GPUs", 1) == "1 GPU"
    assert tr_plural("{count} GPU", "{count} GPUs", 2) == "2 GPUs"
    set_language("zh")
    assert tr_plural("{count} GPU", "{count} GPUs", 1) == "1 张 GPU"


def test_an_unknown_message_stays_english() -> None:
    set_language("zh")
    assert tr("no such sentence exists") == tr_noop("no such sentence exists")


def test_threads_may_speak_while_the_language_changes() -> None:
    heard: set[str] = set()
    stop = threading.Event()

    def speak() -> None:
        while not stop.is_set():
            heard.add(tr("{count} s ago", count=1))

    threads = [threading.Thread(target=speak) for _ in range(3)]
    for thread in threads:
        thread.start()
    for turn in range(200):
        set_language("zh" if turn % 2 else "en")
    stop.set()
    for thread in threads:
        thread.join()
    assert heard <= {"1 s ago", "1 秒前"}
