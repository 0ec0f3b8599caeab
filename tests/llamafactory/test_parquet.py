"""The rows of parquet files that pyarrow wrote, and files that are none."""

import random
from pathlib import Path

import pytest

from tui.llamafactory.parquet import parquet_rows

FILES = Path(__file__).parent.parent / "data" / "parquet"
ROWS = FILES / "rows.parquet"


@pytest.mark.parametrize(("name", "rows"), [("rows", 123), ("none", 0)])
def test_rows_of_a_real_file(name: str, rows: int) -> None:
    """Three row groups, nested columns and a map; and a table without rows."""
    assert parquet_rows(FILES / f"{name}.parquet") == rows


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1" * 3, b"\0" * 100, b"PAR1\xff\xff\xff\x7fPAR1"])
def test_what_is_no_parquet_file(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"."):
        parquet_rows(path)


def test_damage_is_an_error_or_a_number_never_a_hang(tmp_path: Path) -> None:
    """Any byte of the footer may be wrong."""
    data = ROWS.read_bytes()
    chance = random.Random(11)
    path = tmp_path / "a.parquet"
    footer = int.from_bytes(data[-8:-4], "little")
    for _ in range(2000):
        damaged = bytearray(data)
        for _ in range(chance.randint(1, 4)):
            damaged[len(data) - 8 - chance.randint(1, footer)] = chance.randrange(256)
        path.write_bytes(damaged)
        try:
            assert isinstance(parquet_rows(path), int)
        except ValueError:
            continue


def test_nesting_has_an_end(tmp_path: Path) -> None:
    """Structs within structs beyond any real schema."""
    footer = b"\x15\x04" + b"\x1c" * 10_000
    path = tmp_path / "a.parquet"
    path.write_bytes(b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1")
    with pytest.raises(ValueError, match="deep"):
        parquet_rows(path)
