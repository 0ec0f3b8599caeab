"""The command line as a person uses it, and every process that it leaves."""

import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.waiting import wait_until

BIN = Path(sys.executable).parent


@dataclass(frozen=True, slots=True)
class Herd:
    """``llamaherd`` with a state folder of its own, whose path also marks all that descends from it."""

    home: Path
    environment: Mapping[str, str]

    @classmethod
    def at(cls, home: Path, environment: Mapping[str, str]) -> "Herd":
        """Its variables are ``environment`` plus what every call here needs."""
        path = f"{BIN}{os.pathsep}{environment.get('PATH', os.defpath)}"
        return cls(home, {**environment, "PATH": path, "LLAMAHERD_HOME": str(home), "LANG": "C.UTF-8"})

    def run(
        self, *words: str | Path, cwd: Path, variables: Mapping[str, str] | None = None
    ) -> "subprocess.CompletedProcess[str]":
        """Run one command line in ``cwd`` and give what it said and its exit code."""
        return subprocess.run(
            ["llamaherd", *map(str, words)],
            cwd=cwd,
            env={**self.environment, **(variables or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def typed(self, *words: str | Path, cwd: Path, answer: str) -> tuple[int, str]:
        """The exit code and the words of a command at a real terminal, where ``answer`` is typed."""
        terminal, inside = pty.openpty()
        with subprocess.Popen(
            ["llamaherd", *map(str, words)],
            cwd=cwd,
            env=dict(self.environment),
            stdin=inside,
            stdout=inside,
            stderr=inside,
        ) as process:
            os.close(inside)
            os.write(terminal, answer.encode())
            said = bytearray()
            with suppress(OSError):  # the terminal's end
                while data := os.read(terminal, 4096):
                    said += data
            code = process.wait(60)
        os.close(terminal)
        return code, said.decode(errors="replace")

    def document(
        self, *words: str | Path, cwd: Path = Path("/"), variables: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """The JSON document of a command line that must succeed."""
        said = self.run(words[0], "--json", *words[1:], cwd=cwd, variables=variables)
        assert said.returncode == 0, f"{words} gave {said.returncode}: {said.stdout}{said.stderr}"
        document: dict[str, Any] = json.loads(said.stdout)
        return document

    def start(self, *words: str | Path, cwd: Path, variables: Mapping[str, str] | None = None) -> str:
        """Start a job; its id."""
        job: str = self.document("start", *words, cwd=cwd, variables=variables)["job"]["id"]
        return job

    def job(self, job: str) -> dict[str, Any]:
        """What ``status`` says of a job."""
        (found,) = (entry for entry in self.document("status")["jobs"] if entry["id"] == job)
        assert isinstance(found, dict)
        return found

    def wait_for_step(self, job: str, step: int, seconds: float = 180) -> dict[str, Any]:
        """The job, as soon as ``status`` shows it at ``step`` or beyond."""

        def reached() -> dict[str, Any] | None:
            shown = self.job(job)
            assert shown["state"] in {"starting", "running"}, f"{shown}\n{self.log(job)}"
            return shown if ((shown["progress"] or {}).get("step") or 0) >= step else None

        return wait_until(reached, seconds, f"{job} at step {step}")

    def wait_for_end(self, job: str, seconds: float = 180) -> dict[str, Any]:
        """The job, as soon as ``jobs`` shows it ended."""

        def ended() -> dict[str, Any] | None:
            (found,) = (entry for entry in self.document("jobs")["jobs"] if entry["id"] == job)
            assert isinstance(found, dict)
            return found if found["state"] == "ended" else None

        return wait_until(ended, seconds, f"{job} ended")

    def log(self, job: str) -> str:
        """The last lines of a job's log."""
        return self.run("logs", job, cwd=Path("/")).stdout[-3000:]

    def processes_of(self, job: str) -> dict[int, str]:
        """PID and command of every process that carries the job's token."""
        return _carriers(f"LLAMAHERD_JOB={job}.".encode())

    def processes(self) -> dict[int, str]:
        """PID and command of every process that descends from a call here, keepers included."""
        return _carriers(self._mark)

    def wait_until_nothing_runs(self) -> None:
        """Keepers and samplers may need a moment more than their job."""
        try:
            wait_until(lambda: not self.processes(), 15, "nothing left")
        except AssertionError:
            raise AssertionError(f"left behind: {self.processes()}") from None

    def end_all(self) -> None:
        """What a failed test left: this is the only user of this state folder, so all of it goes."""

        def all_ended() -> bool:
            left = self.processes()
            for pid in left:
                self.end(pid)
            return not left

        wait_until(all_ended, 15, "the processes of the test ended")

    def end(self, pid: int) -> None:
        """SIGKILL to a process that descends from a call here, looked at through an open handle."""
        try:
            handle = os.pidfd_open(pid)
        except ProcessLookupError:
            return
        try:
            if _carries(pid, self._mark):
                signal.pidfd_send_signal(handle, signal.SIGKILL)
        except ProcessLookupError:
            return
        finally:
            os.close(handle)

    @property
    def _mark(self) -> bytes:
        return f"LLAMAHERD_HOME={self.home}\0".encode()


def _carriers(entry: bytes) -> dict[int, str]:
    """PID and command of every process, zombies apart, whose environment has ``entry``."""
    pids = (int(folder.name) for folder in Path("/proc").glob("[0-9]*"))
    return {
        pid: _read(pid, "cmdline").replace(b"\0", b" ").decode(errors="replace")
        for pid in pids
        if _carries(pid, entry)
    }


def _carries(pid: int, entry: bytes) -> bool:
    return b"\0" + entry in b"\0" + _read(pid, "environ")


def _read(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""
