"""The tensors of a safetensors file, from its header.

The first 8 bytes are the length of a JSON text, which follows; the numbers behind it are never read.
"""

import os
import struct
from pathlib import Path

from tui.facts.weights import Tensor
from tui.llamafactory.json_file import JsonFileError, parse_json_object

_HEADER_LIMIT = 64 << 20  # a header of 100,000 tensors has 10 MB
_TENSOR_LIMIT = 200_000
_NUMBER_LIMIT = 1 << 40


def read_header(path: Path) -> tuple[list[Tensor], bool]:
    """The tensors that a safetensors file names, and whether the file holds all of them.

    Raises:
        ValueError: not such a file.
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        start = file.read(8)
        if len(start) < 8:
            raise ValueError("shorter than its own length")
        (length,) = struct.unpack("<Q", start)
        if not 2 <= length <= _HEADER_LIMIT:
            raise ValueError("no such header")
        text = file.read(length)
        size = os.fstat(file.fileno()).st_size
    if len(text) < length:
        raise ValueError("the header ends too early")
    try:
        header = parse_json_object(text)
    except JsonFileError as error:
        raise ValueError("the header is no JSON") from error
    if len(header) > _TENSOR_LIMIT:
        raise ValueError("too many tensors")
    tensors, end = [], 0
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        tensor, last = _tensor(name, entry)
        tensors.append(tensor)
        end = max(end, last)
    return tensors, 8 + length + end <= size


def _tensor(name: str, entry: object) -> tuple[Tensor, int]:
    if not isinstance(entry, dict):
        raise ValueError("a tensor without a description")
    shape, dtype, offsets = entry.get("shape"), entry.get("dtype"), entry.get("data_offsets")
    if not isinstance(shape, list) or not isinstance(dtype, str) or not isinstance(offsets, list):
        raise ValueError("a tensor without shape, type or place")
    numbers = [*shape, *offsets]
    if len(offsets) != 2 or not all(type(n) is int and 0 <= n <= _NUMBER_LIMIT for n in numbers):
        raise ValueError("a tensor with an impossible shape or place")
    return Tensor(name, tuple(shape), dtype), offsets[1]
