"""Which packages a LLaMA-Factory asks for, in the words of its own source, and whether a version fits.

Its metadata is no guide: a source tree has none, and what it checks when it starts is stricter or looser.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_FILE_LIMIT = 256 * 1024
_LISTS = 50
_CHECK = re.compile(r'check_version\(\s*f?"([A-Za-z0-9_.-]{1,60})([^"]{0,80})"')
_LISTED = re.compile(
    r"^([A-Za-z0-9_.-]{1,60})[ ]*((?:[<>=!~]=?[^\n#;]{1,80})?)[ ]*(?:[#;].*)?$", re.MULTILINE
)
_CLAUSE = re.compile(r"(<=|>=|==|!=|<|>|~=)\s*([0-9][0-9A-Za-z.+-]{0,40})")
_TEMPLATE = re.compile(r'^register_template\(\s*name="([^"\n]{1,80})"', re.MULTILINE)
_RELEASE = re.compile(r"(?:v)?(\d+(?:\.\d+)*)")


@dataclass(frozen=True, slots=True)
class Requirement:
    """A package and its range, as written: ``>=4.55.0,<=5.6.0``, or ``""`` for any version."""

    name: str
    range: str = ""

    def __str__(self) -> str:
        return f"{self.name}{self.range}"

    def allows(self, version: str) -> bool:
        """Whether a version is in the range; what follows the release number (``rc1``, ``+cu121``) is
        not looked at, and a range in another language allows everything.
        """
        found = _release(version)
        return all(_fits(found, operator, _release(bound)) for operator, bound in _CLAUSE.findall(self.range))


def basic_requirements(package: Path) -> tuple[Requirement, ...]:
    """What LLaMA-Factory checks whenever it starts, unless DISABLE_VERSION_CHECK is on."""
    text = _text(package / "extras" / "misc.py")
    _, found, body = text.partition("def check_dependencies")
    return tuple(_requirements(body.partition("\ndef ")[0])) if found else ()


def option_requirements(package: Path) -> tuple[Requirement, ...]:
    """What it checks for single options (DeepSpeed, Liger, …) before a training, and what the lists in
    ``requirements`` of a source tree ask for.
    """
    checked = _requirements(_text(package / "hparams" / "parser.py"))
    lists = sorted((package.parent.parent / "requirements").glob("*.txt"))
    listed = [line for path in lists[:_LISTS] for line in _LISTED.findall(_text(path))]
    return (*checked, *(Requirement(name, bounds.replace(" ", "")) for name, bounds in listed))


def template_names(package: Path) -> frozenset[str]:
    """The chat templates it knows; empty if they cannot be read."""
    text = _text(package / "data" / "template.py")
    return frozenset(_TEMPLATE.findall(text))


def _requirements(text: str) -> Iterator[Requirement]:
    for name, bounds in _CHECK.findall(text):
        yield Requirement(name, bounds.replace(" ", ""))


def _release(version: str) -> tuple[int, ...]:
    match = _RELEASE.match(version)
    return tuple(int(part) for part in match[1].split(".")) if match else ()


def _fits(found: tuple[int, ...], operator: str, bound: tuple[int, ...]) -> bool:
    width = max(len(found), len(bound))
    left, right = (part + (0,) * (width - len(part)) for part in (found, bound))
    if operator == "~=":
        return left >= right and found[: len(bound) - 1] == bound[:-1]
    return {
        "<=": left <= right,
        ">=": left >= right,
        "==": left == right,
        "!=": left != right,
        "<": left < right,
        ">": left > right,
    }[operator]


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_FILE_LIMIT).decode(errors="replace")
    except OSError:
        return ""
