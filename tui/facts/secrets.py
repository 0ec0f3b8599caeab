"""Masking of secrets, applied where text is read, before anything shows, stores or exports it.

Every pattern either starts at a literal, or only where a run of word characters starts, and no two
unbounded repeats follow each other: the time is linear in the length of the text.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

MASK = "***"
TEXT_LIMIT = 1 << 20
"""Characters of one text that are looked at; what follows is dropped, since it was not checked."""

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_NAME_LIMIT = 200
_PLAIN_NAME = re.compile(r"[-+]{0,3}[\w.-]{1,200}")

_SECRET_PARTS = ("secret", "password", "passwd", "passphrase", "apikey", "credential")
_SECRET_WORDS = frozenset({"authorization", "cookie", "webhook"})
_KEY_OWNERS = frozenset({"api", "private", "access", "secret", "auth", "account", "signing", "encryption"})
# Vocabulary, not secrets: pad_token, eos_token_id, token_type_ids.
_VOCABULARY_BEFORE = frozenset(
    {
        "pad",
        "eos",
        "bos",
        "unk",
        "sep",
        "cls",
        "mask",
        "special",
        "image",
        "video",
        "audio",
        "stop",
        "start",
        "end",
        "per",
        "max",
        "min",
        "num",
        "new",
        "first",
        "last",
        "next",
    }
)
_VOCABULARY_AFTER = frozenset(
    {"id", "ids", "type", "types", "count", "length", "limit", "embedding", "level"}
)
# A plural is a number of tokens (max_new_tokens) unless its owner says otherwise.
_PLURAL_OWNERS = frozenset({"api", "auth", "access", "hf", "hub", "refresh"})


def is_secret_name(name: str) -> bool:
    """Whether a variable, option or configuration key of this name holds a secret."""
    words = [word.lower() for word in _WORD.findall(name[-_NAME_LIMIT:])]
    for before, word, after in zip(["", *words], words, [*words[1:], ""], strict=False):
        if word in _SECRET_WORDS or any(part in word for part in _SECRET_PARTS):
            return True
        if word == "key" and before in _KEY_OWNERS:
            return True
        if word == "pwd" and before:
            return True
        if word == "tokens" and before in _PLURAL_OWNERS:
            return True
        if word.endswith("token") and before not in _VOCABULARY_BEFORE and after not in _VOCABULARY_AFTER:
            return True
    return False


def mask_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment with secret values masked; every other value is masked as text."""
    return {
        name: _mask_value(value) if is_secret_name(name) else mask_text(value)
        for name, value in environment.items()
    }


def mask_arguments(arguments: Sequence[str]) -> tuple[str, ...]:
    """A command line for showing or storing, never for running.

    After an option with a secret name everything up to the next option is masked: vLLM's
    ``--api-key`` takes several values.
    """
    return tuple(_masked_arguments(arguments))


def _masked_arguments(arguments: Sequence[str]) -> Iterator[str]:
    after_secret_option = False
    for argument in arguments:
        is_option = argument.startswith("-") and len(argument) > 1
        name, equals, value = argument.partition("=")
        if equals and _PLAIN_NAME.fullmatch(name) and is_secret_name(name):
            yield f"{name}={_mask_value(value)}"
        elif after_secret_option and not is_option:
            yield _mask_value(argument)
            continue
        else:
            yield mask_text(argument)
        after_secret_option = is_option and not equals and is_secret_name(argument)


# What looks like a secret wherever it stands.
_SHAPES = re.compile(
    r"""
    -----BEGIN[ ][A-Z ]{0,40}PRIVATE[ ]KEY-----[^-]*(?:-----END[ ][A-Z ]{0,40}-----)?
    | (?<![A-Za-z0-9]) (?:
        hf_[A-Za-z0-9]{16,}
      | sk-[A-Za-z0-9_-]{16,}
      | gh[pousr]_[A-Za-z0-9]{16,}
      | github_pat_[A-Za-z0-9_]{16,}
      | glpat-[A-Za-z0-9_-]{16,}
      | xox[abprs]-[A-Za-z0-9-]{10,}
      | (?:AKIA|ASIA)[A-Z0-9]{16}
      | LTAI[A-Za-z0-9]{12,}
      | AIza[A-Za-z0-9_-]{30,}
    )
    | (?<![A-Za-z0-9_-]) eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{5,}(?:\.[A-Za-z0-9_-]+)?
    """,
    re.VERBOSE,
)
_WANDB_KEY = re.compile(
    r"((?:wandb|api.?key)[^\n]{0,80}?)(?<![0-9a-f])[0-9a-f]{40}(?![0-9a-f])", re.IGNORECASE
)
_AUTHORIZATION = re.compile(
    r"""(authorization["']?\s{0,3}[:=]\s{0,3}["']?)(?:(?:bearer|basic|token|digest)\s{1,3})?[^\s"',;]+""",
    re.IGNORECASE,
)
_COOKIE = re.compile(r"""(\bcookie["']?\s{0,3}:\s{0,3}["']?)[^\n"']+""", re.IGNORECASE)
_BEARER = re.compile(r"(\bbearer\s{1,3})[A-Za-z0-9._~+/=-]{8,}", re.IGNORECASE)
_URL_LOGIN = re.compile(r"://[^\s/?#]+@")
_LOGIN = re.compile(r"(?<![\w.-])([\w.-]{1,64}:)(?!//)[^\s:@/]{1,256}@(?=[\w.-])")

# ``name=value``, ``"name": value`` and ``--name value``; the value is matched only if the name is secret.
_ASSIGNMENT = re.compile(
    r"""
    (?<![\w.-]) (?P<option>--?)? (?P<name>[A-Za-z_][\w.-]{0,199})
    (?: (?P<quote>["']?) (?P<prose>\s{0,3}:\s{1,3}) | ["']?\s{0,3}[:=]\s{0,3} | (?P<space>[ ]{1,3}) )
    """,
    re.VERBOSE | re.ASCII,
)
_VALUE = re.compile(r""" "[^"\n]*" | '[^'\n]*' | ["']?[^\s,;&"'}\])]+ """, re.VERBOSE)
# "Add pad token: <|endoftext|>" is prose about vocabulary; a secret has no such characters.
_PROSE_TOKEN = re.compile(r"[A-Za-z0-9_./+=~-]{8,}")
_NO_SECRETS = frozenset({"", "true", "false", "none", "null", MASK})


def mask_text(text: str) -> str:
    """Any text (a log line, a YAML file, one argument) with what looks like a secret masked."""
    text = text[:TEXT_LIMIT]
    text = _SHAPES.sub(MASK, text)
    text = _AUTHORIZATION.sub(rf"\1{MASK}", text)
    text = _COOKIE.sub(rf"\1{MASK}", text)
    text = _BEARER.sub(rf"\1{MASK}", text)
    text = _WANDB_KEY.sub(rf"\1{MASK}", text)
    text = _URL_LOGIN.sub(f"://{MASK}@", text)
    text = _LOGIN.sub(rf"\1{MASK}@", text)
    return _mask_assignments(text)


def _mask_assignments(text: str) -> str:
    kept: list[str] = []
    done = 0
    for head in _ASSIGNMENT.finditer(text):
        if head.start() < done or not is_secret_name(head["name"]):
            continue
        if head["space"] and not head["option"]:
            continue
        in_prose = head["prose"] and not head["quote"] and head["name"].lower() == "token"
        value = (_PROSE_TOKEN if in_prose else _VALUE).match(text, head.end())
        if value is None:
            continue
        kept += text[done : head.end()], _mask_value(value[0])
        done = value.end()
    return "".join([*kept, text[done:]])


def _mask_value(value: str) -> str:
    quote = value[:1] if value[:1] in {'"', "'"} else ""
    inner = value[1:-1] if quote and len(value) > 1 and value.endswith(quote) else value
    if inner.lower() in _NO_SECRETS:
        return value
    return f"{quote}{MASK}{quote}" if quote and value.endswith(quote) and len(value) > 1 else MASK
