"""The catalogue holds exactly the messages of the source, all translated, compiled as committed."""

from pathlib import Path

import pytest
from support.catalogue import (
    computed_messages,
    extract,
    messages,
    paths,
    placeholders,
    read,
    read_compiled,
    source_of,
    texts,
    updated,
)

import tui

PACKAGE = Path(tui.__file__).parent
PO, MO = paths(PACKAGE)
UPDATE = "run: python tests/support/catalogue.py"


def test_the_source_has_messages() -> None:
    assert "{count} s ago" in {message.id for message in messages(extract(PACKAGE))}


def test_every_message_is_translated_and_none_is_left_over() -> None:
    catalog = read(PO)
    untranslated = [
        message.id for message in messages(catalog) if message.fuzzy or not all(texts(message.string))
    ]
    assert untranslated == []
    assert not catalog.obsolete
    wanted = {message.id for message in messages(extract(PACKAGE))}
    assert {message.id for message in messages(catalog)} == wanted, UPDATE
    assert PO.read_bytes() == source_of(updated(PACKAGE)), UPDATE


def test_translations_fill_the_same_places() -> None:
    for message in messages(read(PO)):
        wanted = placeholders(texts(message.id)[-1])
        for text in (*texts(message.id)[:1], *texts(message.string)):
            assert placeholders(text) <= wanted, text
        assert all(placeholders(text) == wanted for text in texts(message.string)), message.id


def test_the_compiled_file_is_the_source() -> None:
    source = {texts(message.id): texts(message.string) for message in messages(read(PO))}
    assert {texts(message.id): texts(message.string) for message in messages(read_compiled(MO))} == source, (
        UPDATE
    )


def test_translations_are_calm() -> None:
    for message in messages(read(PO)):
        for text in (*texts(message.id), *texts(message.string)):
            assert "!" not in text
            assert "！" not in text
            assert all(ord(character) < 0x1F000 for character in text), text


def test_messages_are_written_out() -> None:
    assert computed_messages(PACKAGE) == []


def test_computed_messages_are_noticed(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text("tr(f'{x} left')\ntr('a' + b)\ntr('fine')\ntr(TABLE[x])\n")
    assert computed_messages(tmp_path) == ["bad.py:1", "bad.py:2"]


@pytest.mark.parametrize("text", ["{a.b}", "{0}", "{}", "{a!r}", "{a:.2f}", "open {", "}"])
def test_only_plain_placeholders_are_allowed(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        placeholders(text)
