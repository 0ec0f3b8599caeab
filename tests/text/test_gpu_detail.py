"""The long form of cards, owners and one process, in both languages."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from support.samples import (
    CUDA_0,
    CUDA_1,
    EVIL,
    GIB,
    HOST_PROCESS,
    MIB,
    NOW,
    UNEXPLAINED,
    busy,
    gpu,
    hostile,
    rank,
)

from tui.facts.machine import (
    Cause,
    Driver,
    EccErrors,
    Gpu,
    GpuDetail,
    GpuMemory,
    Link,
    Pcie,
    ProcessInfo,
)
from tui.facts.process import DeviceUse, ProcessDetail, TreeRow
from tui.facts.unknown import UnknownReason
from tui.text.cells import width
from tui.text.gpu_detail import LINKS, card_facts, detail_report, owner_head
from tui.text.owner_sentences import CAUSES, cause_lines, evidence_text, unexplained_text
from tui.text.process_report import process_report
from tui.text.report import status_report
from tui.text.translate import Language, set_language

DETAIL = GpuDetail(
    performance=2,
    fan=0.43,
    pcie=Pcie(receive=12_000_000, send=None, generation=4, lanes=8, most_lanes=16),
    ecc=EccErrors(corrected=3, uncorrected=0),
    mig=True,
    instances=("MIG-1",),
    links=(Link(1, "nvlink"), Link(2, "node")),
)
NOTEBOOK = replace(
    rank(0, 77, 2.5, job=None),
    kind="notebook",
    rank=None,
    title="train.ipynb",
    cpu_used=1.25,
    resident=3 * GIB,
    started_at=NOW - 3600,
)


def facts(card: Gpu) -> Mapping[str, str]:
    return dict(card_facts(card))


def test_every_figure_of_a_card_has_a_line() -> None:
    card = replace(gpu(used=7.0), detail=DETAIL, throttle=("sw_power_cap", "hw_thermal", "new_reason"))
    assert facts(card) == {
        "UUID": CUDA_0,
        "Memory": ("7.0/24.0 GiB used, 430 MiB reserved, 16.6 GiB free, at most 7.0 GiB since this watches"),
        "Clocks": "2520 MHz, memory 10501 MHz",
        "P-state": "P2",
        "Held back by": "power limit, slowed down by the hardware: too hot",
        "Fan": "43%",
        "PCIe": "generation 4, 8 of 16 lanes, 11 MiB/s in, -/s out",
        "ECC": "3 errors corrected, 0 not, since the driver was loaded",
        "MIG": "on, 1 instance",
        "Joined to": "GPU 1 by NVLink, GPU 2 by one processor",
        "Read": "0 s ago",
    }


def test_what_a_card_does_not_have_is_said_with_its_reason() -> None:
    unknown: dict[str, UnknownReason] = dict.fromkeys(
        ("performance", "fan", "pcie", "ecc", "mig"), "not_supported"
    )
    card = replace(gpu(), detail=GpuDetail(unknown=unknown), unknown={"throttle": "no_permission"})
    shown = facts(card)
    assert {shown[label] for label in ("P-state", "Fan", "PCIe", "ECC", "MIG")} == {"not supported here"}
    assert shown["Held back by"] == "no permission to read it"
    assert "Joined to" not in shown


def test_a_card_that_shares_the_memory_of_the_host_has_no_gauge() -> None:
    memory = GpuMemory(None, None, None, None, unified=True)
    unknown: dict[str, UnknownReason] = dict.fromkeys(
        ("memory.total", "memory.used", "memory.free"), "not_supported"
    )
    card = replace(gpu(), memory=memory, unknown=unknown)
    assert facts(card)["Memory"] == "shares the memory of the host"
    shown = status_report(replace(busy(), gpus=(card,)), 100)
    assert "shared with the host" in shown
    assert "GPU memory: not supported" not in shown


def test_old_figures_are_dimmed_and_their_age_is_said() -> None:
    fresh = status_report(busy(), 120, colour=True)
    old = status_report(
        replace(busy(), gpus=tuple(replace(card, age=75.0) for card in busy().gpus)), 120, colour=True
    )
    assert "\x1b[2m21.4/24.0 GiB\x1b[0m" in old
    assert "\x1b[2m21.4/24.0 GiB\x1b[0m" not in fresh
    assert "These readings are old: 75 s ago." in old


def test_who_was_asked_is_said_where_it_was_not_the_library() -> None:
    snapshot = replace(busy(), driver=Driver("550", source="nvidia_smi"))
    assert "nvidia-smi was asked" in status_report(snapshot, 120)
    assert "nvidia-smi" not in status_report(busy(), 120)


def test_an_owner_is_named_with_what_it_calls_itself() -> None:
    assert owner_head(NOTEBOOK) == "PID 77  notebook train.ipynb  2.5 GiB"
    shown = status_report(replace(busy(), gpus=(gpu(owners=(NOTEBOOK,)),)), 200)
    row = next(line for line in shown.splitlines() if " 77 " in line)
    assert all(text in row for text in ("notebook train.ipynb", "2.5 GiB", "1.2", "3.0 GiB"))


def test_how_each_row_was_proved() -> None:
    card = gpu(used=8.0)
    exact = rank(0, 50, 7.0)
    assert "lists this PID with 7.0 GiB" in evidence_text(card, exact)
    assert "taken to be its own" in evidence_text(card, replace(exact, evidence="sole_holder"))
    paired = replace(exact, evidence="inferred", host_pid=914222)
    assert "PID 914222 of the host with 7.0 GiB" in evidence_text(card, paired)
    unsized = rank(0, 50, None)
    assert evidence_text(card, unsized).endswith("the driver gives no size for it.")
    assert "nothing can be done to it from here" in evidence_text(card, HOST_PROCESS)
    hidden = replace(UNEXPLAINED, memory=GIB)
    assert evidence_text(card, hidden) == (
        "8.0 GiB are in use on this card, and the rows with a size leave 1.0 GiB of it."
    )


def test_a_row_without_a_process_names_the_suspects_before_it_says_nobody() -> None:
    hidden = replace(UNEXPLAINED, causes=(Cause("nothing_visible"),))
    assert unexplained_text(hidden) == "no visible process holds it"
    suspected = replace(UNEXPLAINED, causes=(Cause("unsized", (50, 60)), Cause("driver_reserve")))
    assert unexplained_text(suspected) == "no process explains it for sure; perhaps PID 50 60"
    assert [message for message, _ in cause_lines(suspected)] == [
        "The driver gives no size for a process that holds the card: PID 50 60.",
        "This driver counts what it keeps for itself as used, some hundred MiB.",
    ]
    many = replace(UNEXPLAINED, causes=(Cause("orphaned", tuple(range(20))),))
    assert unexplained_text(many).endswith("0 1 2 3 4 5 6 7 …")


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("cells", [40, 80, 200])
def test_it_fits_any_width_in_any_language(language: Language, cells: int) -> None:
    set_language(language)
    hidden = replace(UNEXPLAINED, causes=tuple(Cause(code, (50, 60)) for code in CAUSES))
    links = tuple(Link(index, kind) for index, kind in enumerate(LINKS))
    card = replace(
        gpu(owners=(rank(0, 50, 7.0), NOTEBOOK, HOST_PROCESS, hidden)), detail=replace(DETAIL, links=links)
    )
    shown = detail_report(replace(busy(), gpus=(card, gpu(1, CUDA_1))), cells)
    assert max(width(line) for line in shown.splitlines()) <= cells
    assert "{" not in shown


def process(
    environment: Mapping[str, str], command: tuple[str, ...] = ("python", "train.py")
) -> ProcessDetail:
    info = ProcessInfo(
        50, 7, 500, "disk_wait", "root", command, "train", 1, environment, resident=GIB, started_at=NOW - 60
    )
    rows = (
        TreeRow(7, 70, 0, "other", None, "sleeping", ("bash",), 3 * MIB, 0.0),
        TreeRow(50, 500, 1, "train", 1, "disk_wait", command, GIB, 1.5),
    )
    return ProcessDetail(
        info=info,
        role="rank",
        job="1130-1541-lora",
        cwd="/root/work",
        executable="/usr/bin/python3.11",
        wchan="nvidia_ioctl",
        devices=(DeviceUse(0, mapped=True, index=1, uuid=CUDA_1, memory=2 * GIB), DeviceUse(3, mapped=False)),
        inherited=False,
        visible=(CUDA_1,),
        ports=(7860, 8000),
        tree=rows,
    )


def test_one_process_in_full() -> None:
    shown = process_report(
        process({"PATH": "/bin", "CUDA_VISIBLE_DEVICES": "1", "HF_TOKEN": "***"}),
        (gpu(), gpu(1, CUDA_1)),
        NOW,
        100,
    )
    for text in (
        "training rank 1",
        "waiting in the kernel, in nvidia_ioctl",
        "GPU 1 mapped 2.0 GiB, /dev/nvidia3 open",
        "7860 8000",
        "HF_TOKEN=***",
    ):
        assert text in shown
    assert shown.index("CUDA_VISIBLE_DEVICES=1") < shown.index("HF_TOKEN"), "what chooses cards stands first"
    assert "    50  training rank 1  1.0 GiB  1.5 CPU  python train.py" in shown


def test_hostile_text_breaks_nothing() -> None:
    detail = process({EVIL: EVIL, "A": "sk-" + "a1B2" * 8}, ("python", EVIL))
    shown = process_report(detail, hostile().gpus, NOW, 60) + "\n" + detail_report(hostile(), 60)
    assert not set("\x1b\x00\x07\u202e\u2066") & set(shown)
    assert "a1B2a1B2" not in shown
    assert max(width(line) for line in shown.splitlines()) <= 60
