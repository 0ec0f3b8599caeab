"""What a process calls itself: the notebook of a kernel, the part of a server.

Jupyter tells a kernel its notebook in the environment; older ones only in the connection file, which
also holds the key of the kernel: nothing but the name is kept of it.
"""

import json
import os
import stat
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import PurePath

_SESSION = "JPY_SESSION_NAME"
_FILE_SESSION = "jupyter_session"
_FILE_LIMIT = 64 << 10
_TITLE_LIMIT = 200
_KERNELS = ("ipykernel_launcher", "ipykernel", "ipykernel_launcher.py")
_SERVER_PREFIX = "VLLM::"
_NAMES = {"tensorboard": "TensorBoard", "tensorboard.main": "TensorBoard"}


def own_title(command: Sequence[str], environment: Mapping[str, str], comm: str = "") -> str | None:
    """``train.ipynb``, ``EngineCore``, ``TensorBoard``; ``None`` for a process without such a name."""
    words = [PurePath(word).name for word in command[:4]]
    if any(word in _KERNELS for word in words):
        return _notebook(command, environment)
    program = command[0] if command else comm
    if program.startswith(_SERVER_PREFIX):
        return program.removeprefix(_SERVER_PREFIX)[:_TITLE_LIMIT] or None
    return next((_NAMES[word] for word in words[:3] if word in _NAMES), None)


def _notebook(command: Sequence[str], environment: Mapping[str, str]) -> str | None:
    name = environment.get(_SESSION) or _of_connection_file(_connection_file(command))
    return PurePath(name).name[:_TITLE_LIMIT] or None if name else None


def _connection_file(command: Sequence[str]) -> str | None:
    for word, following in zip(command, [*command[1:], ""], strict=True):
        if word == "-f":
            return following or None
        if word.startswith(("--f=", "-f=")):
            return word.partition("=")[2] or None
    return None


def _of_connection_file(path: str | None) -> str | None:
    """The name in it. The path is another process's word, so anything but a small file is left alone."""
    if path is None or "\0" in path or not PurePath(path).name.endswith(".json"):
        return None
    with suppress(OSError, ValueError, RecursionError):
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
        with os.fdopen(descriptor, "rb") as file:
            if stat.S_ISREG(os.fstat(descriptor).st_mode):
                content = json.loads(file.read(_FILE_LIMIT))
                name = content.get(_FILE_SESSION) if isinstance(content, dict) else None
                return name if isinstance(name, str) else None
    return None
