"""What speaks for a process that does not descend from the keeper."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from support.folders import RECORD
from support.jobs import PROC
from support.waiting import wait_until

from tui.collect.proc import Proc
from tui.facts.job import Identity, JobRecord
from tui.jobs.folder import JobFolder
from tui.jobs.identity import identify
from tui.jobs.strays import TOKEN_VARIABLE, find_strays, token

SLEEP = [sys.executable, "-I", "-S", "-c", "import time; time.sleep(600)"]


class Card(Proc):
    """A machine on which some processes hold a GPU, and some have an environment that never answers."""

    def __init__(self, holders: set[int], hung: set[int]) -> None:
        super().__init__()
        self.holders = holders
        self.hung = hung
        self.asked: list[int] = []

    def device_minors(self, pid: int, prefix: str = "/dev/nvidia") -> frozenset[int]:
        return frozenset({0} if pid in self.holders else ())

    def has_environment_entry(self, pid: int, entry: bytes) -> bool:
        self.asked.append(pid)
        if pid in self.hung:
            threading.Event().wait(2.0)
        return super().has_environment_entry(pid, entry)


@pytest.fixture
def carrier() -> Iterator[Identity]:
    """A process with the job's token, in a session of its own, without a terminal."""
    environ = {TOKEN_VARIABLE: token(RECORD.id, RECORD.nonce)}
    child = subprocess.Popen(SLEEP, env=environ, stdin=subprocess.DEVNULL, start_new_session=True)
    try:
        wait_until(lambda: PROC.command(child.pid) == tuple(SLEEP), 10, "exec")
        identity = identify(child.pid, PROC)
        assert identity is not None
        yield identity
    finally:
        child.kill()
        child.wait()


def record_since(identity: Identity, ticks: int) -> JobRecord:
    return replace(RECORD, main=replace(identity, pid=4_000_000, start=identity.start + ticks))


def test_a_token_is_a_hint_and_with_a_gpu_a_proof(carrier: Identity, tmp_path: Path) -> None:
    folder, record = JobFolder(tmp_path), record_since(carrier, -1)
    (hint,) = find_strays(record, folder, Card(set(), set()))
    assert (hint.process.pid, hint.why, hint.proven) == (carrier.pid, "token", False)
    (proof,) = find_strays(record, folder, Card({carrier.pid}, set()))
    assert (proof.process.pid, proof.why, proof.proven) == (carrier.pid, "device", True)


def test_who_was_there_before_the_job_is_none_of_it(carrier: Identity, tmp_path: Path) -> None:
    card = Card({carrier.pid}, set())
    assert find_strays(record_since(carrier, +1), JobFolder(tmp_path), card) == ()


def test_another_life_of_the_machine_has_no_strays(carrier: Identity, tmp_path: Path) -> None:
    record = replace(RECORD, main=replace(carrier, boot_id="another"))
    assert find_strays(record, JobFolder(tmp_path), PROC) == ()
    assert find_strays(RECORD, JobFolder(tmp_path), PROC) == ()


def test_an_environment_that_never_answers_is_no_evidence(carrier: Identity, tmp_path: Path) -> None:
    card = Card({carrier.pid}, {carrier.pid})
    assert find_strays(record_since(carrier, -1), JobFolder(tmp_path), card) == ()
    assert carrier.pid in card.asked
    assert os.getpid() not in card.asked
