"""The translations' workshop: ``python tests/support/catalogue.py`` after a sentence was changed.

It collects the messages of the source, brings the Chinese catalogue up to date (translations of
unchanged messages stay, new messages are empty, obsolete ones go) and compiles it. It says what is
left to translate. Files come out the same for the same input: no dates, no line numbers.
"""

import ast
import io
import string
import sys
from collections.abc import Iterator
from pathlib import Path

from babel.messages.catalog import Catalog, Message
from babel.messages.extract import extract_from_dir
from babel.messages.mofile import read_mo, write_mo
from babel.messages.pofile import read_po, write_po

KEYWORDS: dict[str, tuple[int, ...] | None] = {"tr": None, "tr_noop": None, "tr_plural": (1, 2)}
_HEADER = "# Chinese translation of llamaherd."
_KEPT_HEADERS = ("Language:", "Plural-Forms:", "MIME-Version:", "Content-Type:", "Content-Transfer-Encoding:")


def paths(package: Path) -> tuple[Path, Path]:
    """The catalogue's source and its compiled form inside the package."""
    folder = package / "locales" / "zh_CN" / "LC_MESSAGES"
    return folder / "llamaherd.po", folder / "llamaherd.mo"


def extract(package: Path) -> Catalog:
    """Every message of the package's source."""
    catalog = Catalog()
    found = extract_from_dir(package, [("**.py", "python")], keywords=KEYWORDS, strip_comment_tags=True)
    for file, _line, message, _comments, context in found:
        catalog.add(message, locations=[(f"{package.name}/{file}", 0)], context=context)
    return catalog


def read(po: Path) -> Catalog:
    """The catalogue as it is; an empty one where there is no file."""
    if not po.exists():
        return Catalog(locale="zh_CN")
    with po.open("rb") as file:
        return read_po(file, locale="zh_CN", abort_invalid=True)


def updated(package: Path) -> Catalog:
    """The catalogue with exactly the messages of the source, and the translations it has for them."""
    catalog = read(paths(package)[0])
    catalog.update(extract(package), no_fuzzy_matching=True)
    catalog.header_comment = _HEADER
    catalog.fuzzy = False
    return catalog


def source_of(catalog: Catalog) -> bytes:
    """The catalogue as the bytes of a ``.po`` file, without dates, addresses and the tool's version."""
    file = io.BytesIO()
    write_po(file, catalog, width=110, sort_output=True, ignore_obsolete=True, include_lineno=False)
    header, blank, rest = file.getvalue().partition(b"\n\n")
    lines = header.decode().splitlines(keepends=True)
    kept = [line for line in lines if not line.startswith('"') or line[1:].startswith(_KEPT_HEADERS)]
    return "".join(kept).encode().rstrip(b"\n") + blank + rest


def compiled(catalog: Catalog) -> bytes:
    """The catalogue as the bytes of a ``.mo`` file."""
    file = io.BytesIO()
    write_mo(file, catalog)
    return file.getvalue()


def read_compiled(mo: Path) -> Catalog:
    """The compiled catalogue, read back."""
    with mo.open("rb") as file:
        return read_mo(file)


def messages(catalog: Catalog) -> Iterator[Message]:
    """The messages without the header."""
    return (message for message in catalog if message.id)


def texts(value: str | tuple[str, ...] | list[str] | None) -> tuple[str, ...]:
    """A message's id or translation as its forms: one, or singular and plural."""
    return (value or "",) if isinstance(value, str | None) else tuple(value)


def placeholders(text: str) -> set[str]:
    """The names in braces.

    Raises:
        ValueError: A brace is left open, or a placeholder is more than a plain name.
    """
    names = set()
    for _literal, name, spec, conversion in string.Formatter().parse(text):
        if name is None:
            continue
        if not name.isidentifier() or spec or conversion:
            raise ValueError(f"not a plain name: {name!r} in {text!r}")
        names.add(name)
    return names


def computed_messages(package: Path) -> list[str]:
    """Calls of ``tr`` whose message is put together at run time and so cannot be extracted."""
    bad = []
    for file in sorted(package.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if not (
                isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in KEYWORDS
            ):
                continue
            if any(isinstance(argument, ast.JoinedStr | ast.BinOp) for argument in node.args[:2]):
                bad.append(f"{file.name}:{node.lineno}")
    return bad


def main() -> int:
    """Update and compile; 1 while something is not translated."""
    package = Path(__file__).resolve().parents[2] / "tui"
    po, mo = paths(package)
    po.parent.mkdir(parents=True, exist_ok=True)
    catalog = updated(package)
    po.write_bytes(source_of(catalog))
    mo.write_bytes(compiled(read(po)))
    missing = [str(message.id) for message in messages(read(po)) if not all(texts(message.string))]
    print(f"{len(list(messages(catalog)))} messages, {len(missing)} to translate", *missing, sep="\n  ")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
