"""The number of rows in a parquet file, from its footer.

The file ends with the footer, its length (4 bytes, little endian) and ``PAR1``. The footer is a struct in
Thrift's compact protocol; its third field is the number of rows. Fields before it are skipped.
"""

import struct
from pathlib import Path

_MAGIC = b"PAR1"
_FOOTER_LIMIT = 64 << 20
_DEPTH_LIMIT = 32
_ROWS_FIELD = 3
_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)


def parquet_rows(path: Path) -> int:
    """The number of rows.

    Raises:
        ValueError: not a parquet file, or its footer cannot be understood.
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        size = file.seek(0, 2)
        if size < 12:
            raise ValueError("too short")
        file.seek(size - 8)
        end = file.read(8)
        (length,) = struct.unpack("<I", end[:4])
        if end[4:] != _MAGIC or not 0 < length <= min(_FOOTER_LIMIT, size - 8):
            raise ValueError("no parquet footer")
        file.seek(size - 8 - length)
        return _Compact(file.read(length)).rows()


class _Compact:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def rows(self) -> int:
        field = 0
        while (head := self._byte()) != 0:
            field = field + (head >> 4) if head >> 4 else self._signed()
            if field == _ROWS_FIELD:
                return self._signed()
            self._skip(head & 15, 0)
        raise ValueError("the footer does not tell its rows")

    def _skip(self, kind: int, depth: int) -> None:
        if depth > _DEPTH_LIMIT:
            raise ValueError("nested too deeply")
        if kind in (_TRUE, _FALSE):
            return
        if kind == _BYTE:
            self._byte()
        elif kind in (_I16, _I32, _I64):
            self._varint()
        elif kind == _DOUBLE:
            self._forward(8)
        elif kind == _BINARY:
            self._forward(self._varint())
        elif kind in (_LIST, _SET):
            self._skip_list(depth)
        elif kind == _MAP:
            count = self._varint()
            kinds = self._byte() if count else 0
            for _ in range(self._bounded(count)):
                self._skip(kinds >> 4, depth + 1)
                self._skip(kinds & 15, depth + 1)
        elif kind == _STRUCT:
            while (head := self._byte()) != 0:
                if head >> 4 == 0:
                    self._varint()
                self._skip(head & 15, depth + 1)
        else:
            raise ValueError("an unknown type")

    def _skip_list(self, depth: int) -> None:
        head = self._byte()
        count = head >> 4 if head >> 4 != 15 else self._varint()
        kind = head & 15
        if kind in (_TRUE, _FALSE):
            self._forward(count)  # inside a list a truth value takes a byte
            return
        for _ in range(self._bounded(count)):
            self._skip(kind, depth + 1)

    def _bounded(self, count: int) -> int:
        if count > len(self._data):
            raise ValueError("more entries than bytes")
        return count

    def _byte(self) -> int:
        if self._at >= len(self._data):
            raise ValueError("the footer ends too early")
        self._at += 1
        return self._data[self._at - 1]

    def _forward(self, count: int) -> None:
        if count > len(self._data) - self._at:
            raise ValueError("the footer ends too early")
        self._at += count

    def _varint(self) -> int:
        value = 0
        for shift in range(0, 70, 7):
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
        raise ValueError("a number without an end")

    def _signed(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)
