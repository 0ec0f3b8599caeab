"""Runs and services that llamaherd did not start, imitated: the command lines, sessions and reactions to
signals of the real ones, without torch, vLLM, DeepSpeed or a card.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from support.waiting import wait_until

_LIFE = """
import json, os, signal, subprocess, sys, time
from pathlib import Path

yard = Path(os.environ["YARD"])
here = Path(__file__).parent

def enrol(name):
    start = Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()[19]
    new = yard / f".{os.getpid()}"
    new.write_bytes(start + b" " + name.encode())
    new.rename(yard / str(os.getpid()))

def linger():
    while True:
        time.sleep(1)

def got(name):
    def note(number, _):
        (yard / f"{name}-got-{number}").touch()
        sys.exit(1)
    return note

def wait(child):  # Popen.wait holds a lock that a signal handler would wait for in vain
    while child.poll() is None:
        time.sleep(0.02)
    return True

def ignore():
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
"""

_PROGRAMS: Mapping[str, str] = {
    # The wrapper kills its agent when it is interrupted, as subprocess.run does.
    "bin/llamafactory-cli": """
enrol("cli")
if sys.argv[1] != "train":
    signal.signal(signal.SIGINT, got("service"))
    linger()
if os.environ.get("FORCE_TORCHRUN"):
    command = [sys.executable, str(here / "torchrun"), "--nproc_per_node", "2",
               str(here.parent / "llamafactory" / "launcher.py"), sys.argv[2]]
    agent = subprocess.Popen(command)
    def interrupted(number, _):
        (yard / "wrapper-got-2").touch()
        agent.kill()
        sys.exit(1)
    signal.signal(signal.SIGINT, interrupted)
    wait(agent)
    sys.exit(1)
signal.signal(signal.SIGINT, got("trainer"))
linger()
""",
    "bin/torchrun": """
enrol("agent")
ranks = []
for rank in range(2):
    environ = dict(os.environ, LOCAL_RANK=str(rank), RANK=str(rank), MASTER_PORT="29999")
    ranks.append(subprocess.Popen([sys.executable, *sys.argv[3:]], env=environ, start_new_session=True))
def forward(number, _):
    (yard / f"agent-got-{number}").touch()
    for rank in ranks:
        os.killpg(rank.pid, number)
    for rank in ranks:
        wait(rank)
    sys.exit(1)
signal.signal(signal.SIGINT, forward)
signal.signal(signal.SIGTERM, forward)
for rank in ranks:
    wait(rank)
""",
    "llamafactory/launcher.py": """
enrol("rank")
if os.environ.get("STUBBORN"):
    ignore()
linger()
""",
    "bin/deepspeed": """
enrol("agent")
rank = [sys.executable, "-u", sys.argv[3], "--local_rank=0", *sys.argv[4:]]
child = subprocess.Popen(rank, env=dict(os.environ, LOCAL_RANK="0", RANK="0"))
def end(number, _):
    (yard / f"agent-got-{number}").touch()
    child.terminate()
    sys.exit(wait(child) and 1)
signal.signal(signal.SIGINT, end)
signal.signal(signal.SIGTERM, end)
wait(child)
""",
    "src/train.py": """
enrol("rank")
linger()
""",
    "bin/vllm": """
enrol("server")
code = ("import os, subprocess, sys, time, signal; from pathlib import Path;"
        "s = Path('/proc/self/stat').read_bytes().rpartition(b')')[2].split()[19];"
        "Path(os.environ['YARD'], str(os.getpid())).write_bytes(s + b' engine');"
        "w = subprocess.Popen(['VLLM::Worker', '-c', sys.argv[1], 'x'], executable=os.environ['EXE'])"
        " if len(sys.argv[1]) > 1 else None;"
        "signal.signal(signal.SIGINT, signal.SIG_IGN); time.sleep(600)")
os.environ["EXE"] = sys.executable
subprocess.Popen(["VLLM::EngineCore", "-c", code, code.replace("len(sys.argv[1]) > 1", "False")],
                 executable=sys.executable, start_new_session=True)
signal.signal(signal.SIGINT, got("service"))
linger()
""",
    "ipykernel_launcher.py": """
enrol("kernel")
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
linger()
""",
}


def make_programs(folder: Path) -> Path:
    """The programs below ``folder``; each enrols in the folder that ``YARD`` names."""
    for name, body in _PROGRAMS.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_LIFE + body)
    (folder / "yard").mkdir()
    return folder


@contextmanager
def running(
    folder: Path, command: Sequence[str | Path], count: int, **variables: str
) -> Iterator["subprocess.Popen[bytes]"]:
    """The command, once ``count`` processes of it stand; whatever is left of it is ended by identity."""
    yard = folder / "yard"
    before = len(enrolled(yard))
    environ = {**os.environ, "YARD": str(yard), **variables}
    words = [str(word) for word in command]
    with subprocess.Popen(words, cwd=folder, env=environ, stdin=subprocess.DEVNULL) as process:
        try:
            wait_until(lambda: len(enrolled(yard)) >= before + count, 20, f"{count} of {words[1]} stand")
            yield process
        finally:
            process.kill()
            for pid in alive(yard):
                os.kill(pid, signal.SIGKILL)


def enrolled(yard: Path) -> dict[int, tuple[int, str]]:
    """PID to start ticks and name of all that ever enrolled."""
    found = {}
    for path in yard.iterdir():
        if path.name.isdigit():
            start, _, name = path.read_text().partition(" ")
            found[int(path.name)] = (int(start), name)
    return found


def alive(yard: Path) -> dict[int, str]:
    """PID to name of those that run, by identity."""
    from tui.collect.proc import Proc

    table = Proc().table()
    return {
        pid: name
        for pid, (start, name) in enrolled(yard).items()
        if pid in table and table[pid].start == start and table[pid].lives_on
    }


PYTHON = sys.executable
