"""Processes are judged once, and again when what they were judged by has changed."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from tui.collect.proc import Proc, ProcessStat
from tui.collect.processes import ProcessReader
from tui.llamafactory.processes import ProcessRole, classify
from tui.operate.identify import Identifier

TRAIN = ("llamafactory-cli", "train", "x.yaml")


class Machine:
    """A folder of processes, and how often one was judged."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._root = root
        self.judged: list[tuple[str, ...]] = []
        self.table: dict[int, ProcessStat] = {}
        self.identifier = Identifier(ProcessReader(Proc(root), lambda: 0.0))

        def counting(
            argv: tuple[str, ...],
            comm: str,
            environ: Mapping[str, str] | None,
            parent: tuple[str, ...] | None = None,
        ) -> ProcessRole:
            self.judged.append(argv)
            return classify(argv, comm, environ, parent)

        monkeypatch.setattr("tui.operate.identify.classify", counting)

    def run(self, pid: int, *argv: str, ppid: int = 1, comm: str = "python", start: int = 5) -> None:
        folder = self._root / str(pid)
        folder.mkdir(exist_ok=True)
        (folder / "cmdline").write_bytes(b"".join(word.encode() + b"\0" for word in argv))
        (folder / "environ").write_bytes(b"A=1\0")
        (folder / "stat").write_text(
            f"{pid} ({comm}) S {ppid} 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 1 0 {start} 0 0\n"
        )
        self.table[pid] = ProcessStat(pid, comm, "S", ppid, 0, 0, 0, 0, 0, start, 0)

    def look(self) -> dict[int, tuple[str, str]]:
        population = self.identifier.identify(self.table)
        return {pid: (info.kind, population.roles[pid].role) for pid, info in population.infos.items()}


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


def test_what_has_not_changed_is_not_judged_again(machine: Machine) -> None:
    machine.run(10, *TRAIN)
    machine.run(11, *TRAIN, ppid=10, comm="pt_data_worker")
    first = machine.look()
    assert first == {10: ("train", "main"), 11: ("data_worker", "data_worker")}
    machine.look()
    machine.judged.clear()
    for _ in range(5):
        assert machine.look() == first
    assert machine.judged == []


def test_a_new_title_parent_or_process_is_judged_anew(machine: Machine) -> None:
    machine.run(10, *TRAIN)
    machine.run(11, *TRAIN, ppid=10)
    for _ in range(3):
        assert machine.look()[11] == ("data_worker", "pool")
    machine.run(11, *TRAIN, ppid=10, comm="pt_data_worker")
    assert machine.look()[11] == ("data_worker", "data_worker")
    machine.run(11, *TRAIN, ppid=1, comm="python")
    assert machine.look()[11] == ("train", "main"), "its parent is gone"
    machine.run(11, "vim", start=9)
    assert machine.look()[11] == ("other", "other"), "the PID was reused"
    del machine.table[11]
    assert machine.look() == {10: ("train", "main")}


def test_a_trainer_becomes_the_wrapper_of_the_agent_that_it_starts(machine: Machine) -> None:
    machine.run(10, *TRAIN)
    assert machine.look()[10] == ("train", "main")
    machine.run(20, "python", "/opt/bin/torchrun", "/x/llamafactory/launcher.py", "x.yaml", ppid=10)
    assert machine.look()[10] == ("train", "wrapper")
