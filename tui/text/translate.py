"""Translation by the standard library's gettext; the message id is the English sentence.

Placeholders are plain names, ``tr("Stopping {job}", job=...)``, filled after the translation. The
language is state of the process, set once at start and again when a person changes it on the screen.
"""

import gettext
import threading
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Literal

Language = Literal["en", "zh"]

DOMAIN = "llamaherd"
LOCALES = Path(__file__).parent.parent / "locales"

_LOCALE_VARIABLES = ("LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG")  # the order of gettext
_SILENT_LOCALES = frozenset({"C", "POSIX"})

_lock = threading.Lock()
_language: Language = "en"
_catalogue: gettext.NullTranslations | None = None


def set_language(language: Language | None) -> None:
    """Speak this language from now on; ``None`` is the language of the source, English."""
    global _language, _catalogue  # one language per process, like the locale itself
    with _lock:
        _language = language or "en"
        _catalogue = None


def language() -> Language:
    """The language that is spoken now."""
    return _language


def tr(message: str, /, **values: object) -> str:
    """The message in the current language, with its placeholders filled.

    A placeholder without a value stays as it is: a slip in a sentence must not cost the sentence.
    """
    text = _current().gettext(message)
    return text.format_map(_Values(values)) if values else text


def tr_plural(singular: str, plural: str, count: int, /, **values: object) -> str:
    """Like ``tr`` for a sentence that depends on a number, which fills ``{count}``."""
    return _current().ngettext(singular, plural, count).format_map(_Values({"count": count, **values}))


def tr_noop(message: str) -> str:
    """Marks a message of a table for the catalogue; whoever shows it calls ``tr``."""
    return message


def language_from(
    environment: Mapping[str, str],
    *,
    setting: str | None = None,
    flag: str | None = None,
    on_autodl: bool = False,
) -> Language:
    """The language to speak: the flag, else the setting, else what the locale says.

    A locale that says nothing (unset, C, POSIX) means English, but Chinese on AutoDL, whose images
    set no locale and whose users read Chinese. AutoDL names itself in the environment, too.
    """
    for wish in (flag, setting):
        if wish in {"en", "zh"}:
            return "zh" if wish == "zh" else "en"
    for name in _LOCALE_VARIABLES:
        if value := environment.get(name, ""):
            if spoken := _language_of(value):
                return spoken
            break
    autodl = on_autodl or any(name.startswith("AutoDL") for name in environment)
    return "zh" if autodl else "en"


def _language_of(locale: str) -> Language | None:
    """The first language of a locale (``zh_CN.UTF-8``, or a list ``fr:zh``) that is spoken here."""
    names = [part.split(".")[0].split("@")[0] for part in locale.split(":")]
    spoken = [name for name in names if name not in _SILENT_LOCALES and name]
    for name in spoken:
        if name.startswith("zh"):
            return "zh"
        if name.startswith("en"):
            return "en"
    return "en" if spoken else None


def _current() -> gettext.NullTranslations:
    global _catalogue  # see set_language
    with _lock:
        if _catalogue is None:
            _catalogue = _load(_language)
        return _catalogue


@lru_cache(maxsize=2)
def _load(language: Language) -> gettext.NullTranslations:
    if language == "en":
        return gettext.NullTranslations()
    return gettext.translation(DOMAIN, LOCALES, ["zh_CN"], fallback=True)


class _Values(dict[str, object]):
    def __missing__(self, name: str) -> str:
        return f"{{{name}}}"
