"""Ports of real sockets, and how rarely they are looked for."""

import os
import socket
from collections.abc import Iterable

from tui.collect.proc import Proc
from tui.operate.ports import PERIOD, PortFinder


class CountingProc(Proc):
    asked = 0

    def ports(self, pids: Iterable[int]) -> dict[int, int]:
        self.asked += 1
        return super().ports(pids)


def test_an_answer_is_good_for_a_while_and_for_the_same_processes() -> None:
    proc = CountingProc()
    now = 100.0
    finder = PortFinder(proc, lambda: now)
    before = finder.of([os.getpid()])
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        now += PERIOD - 0.1
        assert finder.of([os.getpid()]) == before
        assert proc.asked == 1
        assert port in finder.of([os.getpid(), 1 << 22]), "other processes are another question"
        now += 0.1
        assert finder.of([os.getpid()]) == tuple(sorted({*before, port}))
        assert proc.asked == 3
    now += PERIOD
    assert finder.of([]) == ()
    assert finder.of([os.getpid()]) == before
