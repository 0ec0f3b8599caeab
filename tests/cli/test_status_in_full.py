"""``status`` with a stand-in driver: everything of the cards, and one process in full."""

import os

import pytest
from support.command_line import Herd
from support.fake_nvml import GIB, FakeNvml, FakeProcess, cards


@pytest.fixture
def seeing(herd: Herd, fake_nvml: FakeNvml) -> Herd:
    """The command line on a machine of two cards, one of which a process outside this container uses."""
    fake_nvml.write(
        cards(2), processes=[FakeProcess(914222, 3 * GIB, extra=True)], rules=["link 0 1 10 nvlink"]
    )
    return Herd.at(herd.home, {**herd.environment, **fake_nvml.env()})


def test_every_card_in_full(seeing: Herd) -> None:
    plain = seeing.run("status", cwd=seeing.home.parent)
    full = seeing.run("status", "--detail", cwd=seeing.home.parent)
    assert (plain.returncode, full.returncode) == (0, 0)
    assert "NVLink" not in plain.stdout
    assert full.stdout.count("by NVLink") == 2
    assert "PID 914222" in full.stdout
    document = seeing.document("status", "--detail")
    first = document["gpus"][0]
    assert first["detail"]["links"] == [{"index": 1, "kind": "nvlink"}]
    assert first["detail"]["unknown"] == {}
    assert first["memory"] | {"unified": False} == first["memory"]
    assert first["owners"][0]["unknown"]["cpu_used"] == "not_visible"


def test_one_process_in_full(seeing: Herd) -> None:
    secret = "hf_" + "Ab1" * 12
    pid = os.getpid()
    said = seeing.run("status", "--pid", str(pid), cwd=seeing.home.parent, variables={"HF_TOKEN": secret})
    assert said.returncode == 0, said.stderr
    assert said.stdout.startswith(f"PID {pid}\n")
    assert secret not in said.stdout
    document = seeing.document("status", "--pid", str(pid))
    assert (document["info"]["pid"], document["schema"]) == (pid, 1)
    assert document["visible"] == [gpu.uuid for gpu in cards(2)]
    assert document["devices"] == []
    assert any(row["pid"] == pid for row in document["tree"])


def test_a_pid_that_the_driver_alone_knows(seeing: Herd) -> None:
    said = seeing.run("status", "--pid", "914222", cwd=seeing.home.parent)
    assert (said.returncode, said.stdout) == (1, "")
    assert "914222" in said.stderr
    assert "outside this container" in said.stderr
