"""A process is its PID, its start, and the life of the machine and of the container."""

import os
import subprocess
import sys
from dataclasses import replace

from support.waiting import wait_until

from tui.collect.proc import Proc
from tui.facts.job import Member
from tui.jobs.identity import identify, identity_of, same, same_boot


def test_this_process_is_itself_and_nobody_else() -> None:
    proc = Proc()
    me = identify(os.getpid(), proc)
    assert me is not None
    assert same(me, proc)
    assert not same(replace(me, start=me.start + 1), proc)
    assert not same(replace(me, pid=1), proc)
    assert identity_of(Member(me.pid, me.start), me) == me


def test_another_life_of_machine_or_container_is_another_process() -> None:
    proc = Proc()
    me = identify(os.getpid(), proc)
    assert me is not None
    for other in (replace(me, boot_id="another"), replace(me, init_start=me.init_start + 1)):
        assert not same_boot(other, proc)
        assert not same(other, proc)


def test_a_zombie_is_still_itself_and_a_reaped_process_is_nobody() -> None:
    proc = Proc()
    child = subprocess.Popen([sys.executable, "-I", "-S", "-c", ""])
    wait_until(lambda: (stat := proc.stat(child.pid)) is not None and not stat.alive, 10, "zombie")
    identity = identify(child.pid, proc)
    assert identity is not None
    assert same(identity, proc)
    child.wait()
    assert not same(identity, proc)
    assert identify(child.pid, proc) is None
