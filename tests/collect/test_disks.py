"""Disks on real folders, on made-up devices, and with a helper that hangs."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.waiting import wait_until

from tui.collect.disk_probe import Answer, probe
from tui.collect.disks import PLACES, PROBE, DiskReader, disks_of, mount_of, mount_types, read_shm
from tui.collect.proc import Proc
from tui.facts.machine import Disk, SharedMemory
from tui.facts.unknown import Unknown

GIB = 1 << 30
SILENT: Unknown = {"total": "timed_out", "free": "timed_out", "inodes_free": "timed_out"}
NO_FIGURES: Unknown = dict.fromkeys(SILENT, "not_supported")

MOUNTS = {"/": "overlay", "/root/autodl-tmp": "xfs", "/autodl-fs/data": "nfs4", "/mnt/nas": "fuse.juicefs"}


def answer(
    real: str, device: int, total: int = 50 * GIB, free: int = 20 * GIB, *, exists: bool = True
) -> Answer:
    return Answer(0, real, exists, device, total, free, 1000, 900)


SYSTEM = answer("/", 1, 30 * GIB, 5 * GIB)


def test_an_ordinary_instance() -> None:
    disks = disks_of(
        SYSTEM,
        {
            "/root/autodl-tmp": answer("/root/autodl-tmp", 2),
            "/root/autodl-fs": answer("/autodl-fs/data", 3, 200 * GIB),
            "/autodl-fs/data": answer("/autodl-fs/data", 3, 200 * GIB),
            "/root/autodl-nas": answer("/root", 1, exists=False),
            "/root/autodl-tmp/out": answer("/root/autodl-tmp", 2, exists=False),
            "/mnt/nas/runs/1": answer("/mnt/nas/runs", 4),
        },
        PLACES,
        MOUNTS,
    )
    assert [(disk.path, disk.role) for disk in disks] == [
        ("/", "system"),
        ("/root/autodl-tmp", "data"),
        ("/root/autodl-fs", "shared"),
        ("/mnt/nas", "shared"),
    ]
    assert disks[0] == Disk("/", 30 * GIB, 5 * GIB, 900, "system")


def test_a_pro_instance_has_one_disk() -> None:
    replies = {
        "/root/autodl-tmp": answer("/root/autodl-tmp", 1, 30 * GIB, 5 * GIB),
        "/root/LLaMA-Factory/saves/x": answer("/root/LLaMA-Factory", 1, exists=False),
    }
    assert [disk.path for disk in disks_of(SYSTEM, replies, PLACES, {"/": "overlay"})] == ["/"]


def test_a_silent_disk_is_named_once_and_none_is_invented() -> None:
    disks = disks_of(
        SYSTEM,
        {
            "/root/autodl-tmp": answer("/root/autodl-tmp", 2),
            "/root/autodl-fs": "timed_out",
            "/autodl-fs/data": "timed_out",
            "/root/autodl-nas": "timed_out",
            "/autodl-fs/data/out": "timed_out",
            "/far/out": "timed_out",
        },
        PLACES,
        MOUNTS,
    )
    assert [disk.path for disk in disks] == ["/", "/root/autodl-tmp", "/autodl-fs/data", "/far/out"]
    assert disks[2] == Disk("/autodl-fs/data", None, None, None, "shared", SILENT)


def test_errors_and_file_systems_without_figures_are_unknown() -> None:
    disks = disks_of(
        SYSTEM,
        {
            "/a": Answer(0, "/a", error="EACCES"),
            "/b": Answer(0, "/b", error="ESTALE"),
            "/c": Answer(0, "/c", True, 9, 0, 0, 0, 0),
            "/d": Answer(0, "/d", True, 10, GIB, 0, 0, 0),
        },
        PLACES,
        {"/": "ext4"},
    )
    by_path = {disk.path: disk for disk in disks}
    assert by_path["/a"].unknown["free"] == "no_permission"
    assert by_path["/b"].unknown["total"] == "unreadable_file"
    assert by_path["/c"] == Disk("/c", None, None, None, "data", NO_FIGURES)
    assert by_path["/d"] == Disk("/d", GIB, 0, None, "data", {"inodes_free": "not_supported"})


def test_mounts_are_read_as_text(tmp_path: Path) -> None:
    (tmp_path / "self").mkdir()
    (tmp_path / "self" / "mountinfo").write_text(
        "22 1 0:21 / / rw - overlay overlay rw\n"
        "23 22 0:50 / /my\\040disk rw shared:1 - nfs4 server:/x rw\n"
        "garbage\n\n - \n"
    )
    types = mount_types(Proc(tmp_path))
    assert types == {"/": "overlay", "/my disk": "nfs4"}
    assert mount_of("/my disk/a/b", types) == "/my disk"
    assert mount_of("/my disks", types) == "/"
    assert mount_of("/x", {}) == "/"
    assert mount_types(Proc(tmp_path / "none")) == {}


def test_real_folders_through_the_real_helper(tmp_path: Path) -> None:
    link = tmp_path / "link"
    (tmp_path / "data").mkdir()
    link.symlink_to(tmp_path / "data")
    reader = DiskReader(Proc(), places={str(link): "data"}, deadline=20)
    disks = reader.read([str(tmp_path / "not" / "yet"), "relative", "/nul\0byte", "/" + "x" * 5000])
    figures = os.statvfs(tmp_path)
    if tmp_path.stat().st_dev == Path("/").stat().st_dev:
        assert [disk.path for disk in disks] == ["/"]
    else:
        assert [disk.path for disk in disks] == ["/", str(link)]
    assert disks[-1].total == figures.f_blocks * figures.f_frsize
    assert disks[-1].free is not None
    assert not disks[-1].unknown


def test_a_path_that_is_no_text_comes_back_readable(tmp_path: Path) -> None:
    odd = os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xfe")
    Path(odd).mkdir()
    assert DiskReader(Proc(), places={}, deadline=20).read([odd])[0].path == "/"
    assert probe(3, odd).real.endswith("/\ufffd\ufffd")


def test_the_probe_finds_the_nearest_parent_and_names_errors(tmp_path: Path) -> None:
    there = probe(0, str(tmp_path))
    missing = probe(1, str(tmp_path / "a" / "b"))
    assert (there.exists, missing.exists) == (True, False)
    assert missing.real == there.real == str(tmp_path)
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    assert probe(2, str(loop / "x" / "y")).exists is False
    assert probe(2, "/" + "x" * 300).error == "ENAMETOOLONG"


HANGING = """
import json, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
paths = sys.argv[2:]
for number, path in enumerate(paths):
    if "hangs" not in path:
        print(json.dumps([number, path, True, 70 + number, 100, 50, 10, 5, ""]), flush=True)
print('[1, "torn', end="", flush=True)
if any("hangs" in path for path in paths):
    time.sleep(60)
"""


def test_a_hanging_disk_costs_the_deadline_and_only_its_own_figures(tmp_path: Path) -> None:
    reader = DiskReader(Proc(), places={}, deadline=2.5, command=(sys.executable, "-I", "-c", HANGING))
    began = time.monotonic()
    disks = reader.read(["/good", "/hangs"])
    assert 2.4 < time.monotonic() - began < 10
    assert [disk.path for disk in disks] == ["/", "/good", "/hangs"]
    assert (disks[1].total, disks[1].free) == (100, 50)
    assert disks[2] == Disk("/hangs", None, None, None, "shared", SILENT)
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    assert not [pid for pid in children if b"hangs" in Path(f"/proc/{pid}/cmdline").read_bytes()]


def test_a_helper_that_cannot_be_killed_is_not_joined_by_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process in state D takes no SIGKILL, which a kill without effect stands for."""
    started: list[subprocess.Popen[bytes]] = []
    start, kill = subprocess.Popen.__init__, subprocess.Popen.kill

    def note(self: subprocess.Popen[bytes], argv: list[str], **options: object) -> None:
        started.append(self)
        start(self, argv, **options)  # type: ignore[call-overload]  # the options pass through

    monkeypatch.setattr(subprocess.Popen, "__init__", note)
    monkeypatch.setattr(subprocess.Popen, "kill", lambda self: None)
    reader = DiskReader(Proc(), places={}, deadline=2.0, command=(sys.executable, "-I", "-c", HANGING))
    try:
        assert [disk.total for disk in reader.read(["/hangs", "/good"])][1:] == [100, None]
        began = time.monotonic()
        again = reader.read(["/hangs", "/good"])
        assert [disk.total for disk in again][1:] == [100, None]
        assert again[2].unknown == SILENT
        assert time.monotonic() - began < 10, "a path that hangs was asked again"
        assert len(started) == 2
    finally:
        for child in started:
            kill(child)
            child.wait()
    monkeypatch.undo()
    assert reader.read(["/good"])[1].total == 100
    assert reader.read(["/hangs"])[1].unknown == SILENT


def test_a_helper_that_fails_or_is_missing_is_not_a_time_out() -> None:
    for command in [(sys.executable, "-c", "raise SystemExit(3)"), ("/nonexistent/python",)]:
        disks = DiskReader(Proc(), places=PLACES, deadline=20, command=command).read(["/x"])
        assert [disk.path for disk in disks if disk.path not in PLACES] == ["/", "/x"]
        assert disks[-1].unknown["free"] == "unreadable_file"


def test_the_helper_ends_by_itself_when_nobody_waits_for_it(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    # The shortest deadline: the helper must end although its question may still be out.
    with subprocess.Popen([*PROBE, "0", str(tmp_path)], stdout=subprocess.PIPE) as child:
        wait_until(lambda: child.poll() is not None, 20, "the helper's end")
        assert child.returncode == 0
    with subprocess.Popen([*PROBE, "20", str(fifo)], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert json.loads(child.stdout.readline())[1] == str(fifo)


def test_shared_memory(tmp_path: Path) -> None:
    shm = read_shm(tmp_path)
    assert shm.total is not None
    assert shm.free is not None
    assert 0 <= shm.free <= shm.total
    assert read_shm(tmp_path / "none") == SharedMemory(None, None)
