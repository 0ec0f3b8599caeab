"""What runs next once a run has ended: a shutdown, a loop, another run.

A stop ends the run, not the shell that started it. So the chain of its parents is read before: their
command lines, and the script that a shell runs. What was typed at a prompt stands in no command line.
"""

import os
import re
import stat
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path, PurePath

from tui.facts.job import Behind, BehindCode
from tui.facts.machine import ProcessInfo

_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "fish", "ksh", "busybox"})
_RESTARTERS = frozenset({"supervisord", "runsv", "s6-supervise", "systemd", "watch", "runit", "pm2"})
_STAYING = frozenset(
    {"init", "sshd", "sshd-session", "tmux", "screen", "login", "tini", "dumb-init", "docker-init"}
    | {"containerd-shim", "jupyter-lab", "jupyter-labhub", "jupyter-notebook", "jupyter", "autopanel"}
)
"""Parents that live on as they are, so that nothing above them is moved by the end of the run."""

_STAYING_KINDS = ("webui", "notebook", "monitor")
"""The same, by what they are: they start a run when a person says so."""

_PASSING = frozenset({"nohup", "setsid", "timeout", "script", "env", "nice", "su", "sudo", "boot.sh"})
"""Parents that start nothing of their own once what runs below them has ended."""

_SHUTDOWN = re.compile(r"(?:^|[\s;&|(])(?:\S*/)?(?:shutdown|poweroff|halt)(?=$|[\s;&|)])")
_LOOP = re.compile(r"(?:^|[\s;&|(])(?:for|while|until)\s")
_RUN = re.compile(
    r"(?:^|[\s;&|(/])(?:llamafactory-cli|lmf|llamafactory\.cli|torchrun|deepspeed|accelerate\s+launch)\s"
    r"|launcher\.py|src/train\w*\.py"
)
_PARTS = re.compile(r"[;\n]|&&|\|\|")
_COMMENT = re.compile(r"(?m)(?:^|\s)#.*$")
_SCRIPT_LIMIT = 64 << 10


def behind(pid: int, infos: Mapping[int, ProcessInfo], cwds: Mapping[int, str]) -> tuple[Behind, ...]:
    """What goes on behind the run whose topmost process is ``pid``, the nearest parent first.

    Args:
        pid: the run's topmost process.
        infos: all processes.
        cwds: the working directories of its parents, where a script's relative name starts.
    """
    found: list[Behind] = []
    for parent in parents(pid, infos):
        info = infos[parent]
        if info.kind in _STAYING_KINDS or _name(info.command) in _STAYING:
            break
        codes = _codes(info.command, cwds.get(parent))
        words = " ".join(info.command)[:500]
        found += (Behind(code, parent, words) for code in codes)
        if "prompt" in codes:
            break
    return tuple(found)


def parents(pid: int, infos: Mapping[int, ProcessInfo]) -> list[int]:
    """The chain of parents that are in sight, nearest first, without PID 1."""
    chain: list[int] = []
    info = infos.get(pid)
    while info is not None and info.ppid > 1 and info.ppid not in chain and info.ppid in infos:
        chain.append(info.ppid)
        info = infos[info.ppid]
    return chain


def _codes(command: Sequence[str], cwd: str | None) -> list[BehindCode]:
    name = _name(command)
    if name in _RESTARTERS:
        return ["restarter"]
    if name in _PASSING or not command:
        return []
    if name not in _SHELLS:
        return ["program"]
    text = _script(command[1:], cwd)
    if text is None:
        return ["prompt"]
    plain = _COMMENT.sub("", text.replace("\\\n", " "))
    codes: list[BehindCode] = []
    if _SHUTDOWN.search(plain):
        codes.append("shutdown")
    if _LOOP.search(plain):
        codes.append("loop")
    if sum(bool(_RUN.search(part)) for part in _PARTS.split(plain)) > 1:
        codes.append("next_run")
    return codes


def _name(command: Sequence[str]) -> str:
    """The program, or the script that an interpreter runs where that is what people know."""
    if not command:
        return ""
    # A login shell is "-bash"; sshd and tmux write a title: "sshd: root@pts/0".
    program = PurePath(command[0].removeprefix("-").partition(":")[0]).name
    if program.startswith("python"):
        return next((PurePath(word).name for word in command[1:2] if not word.startswith("-")), program)
    return program


def _script(arguments: Sequence[str], cwd: str | None) -> str | None:
    """What a shell was told to run; ``None`` for one that reads a prompt."""
    position = 0
    while position < len(arguments) and arguments[position].startswith(("-", "+")):
        word = arguments[position]
        if not word.startswith("--") and "c" in word[1:]:
            return arguments[position + 1] if position + 1 < len(arguments) else ""
        position += 2 if word in ("-o", "+o", "--rcfile", "--init-file") else 1
    if position >= len(arguments):
        return None
    return _read(arguments[position], cwd)


def _read(name: str, cwd: str | None) -> str:
    """The beginning of a script; a file that cannot be read has nothing to say."""
    if "\0" in name or (cwd is None and not name.startswith("/")):
        return ""
    with suppress(OSError):
        descriptor = os.open(
            Path(cwd or "/") / name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
        )
        with os.fdopen(descriptor, "rb") as file:
            if stat.S_ISREG(os.fstat(descriptor).st_mode):
                return file.read(_SCRIPT_LIMIT).decode("utf-8", "replace")
    return ""
