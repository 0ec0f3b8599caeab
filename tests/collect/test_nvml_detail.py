"""The details of the cards on the stand-in library: each figure, its absence, and how rarely it is read."""

from collections.abc import Iterator

import pytest
from support.fake_nvml import FakeGpu, FakeNvml, cards
from support.nvml_reader import Reader

from tui.facts.machine import EccErrors, GpuDetail, Link, Pcie
from tui.facts.unknown import UnknownReason

RATE = "nvmlDeviceGetPcieThroughput"


@pytest.fixture
def reader(fake_nvml: FakeNvml) -> Iterator[Reader]:
    reader = Reader(fake_nvml.env(count_calls=True))
    yield reader
    assert reader.end() == ""


def test_every_figure_in_its_unit(fake_nvml: FakeNvml, reader: Reader) -> None:
    gpu = FakeGpu(
        performance=2,
        fan=43,
        corrected=7,
        uncorrected=1,
        receive=12_000,
        send=5,
        generation=3,
        lanes=8,
    )
    fake_nvml.write([gpu])
    assert reader.card().detail == GpuDetail(
        performance=2,
        fan=0.43,
        pcie=Pcie(receive=12_000_000, send=5000, generation=3, lanes=8, most_lanes=16),
        ecc=EccErrors(corrected=7, uncorrected=1),
        mig=False,
    )


FIELDS_OF_CALL = {
    "nvmlDeviceGetPerformanceState": ("performance",),
    "nvmlDeviceGetFanSpeed": ("fan",),
    "nvmlDeviceGetEccMode": ("ecc",),
    "nvmlDeviceGetTotalEccErrors": ("ecc.corrected", "ecc.uncorrected"),
    "nvmlDeviceGetMigMode": ("mig",),
    RATE: ("pcie.receive", "pcie.send"),
    "nvmlDeviceGetCurrPcieLinkGeneration": ("pcie.generation",),
    "nvmlDeviceGetCurrPcieLinkWidth": ("pcie.lanes",),
    "nvmlDeviceGetMaxPcieLinkWidth": ("pcie.most_lanes",),
}


@pytest.mark.parametrize("call", FIELDS_OF_CALL)
@pytest.mark.parametrize(
    ("code", "reason"),
    [(3, "not_supported"), (13, "not_supported"), (4, "no_permission"), (999, "driver_error")],
)
def test_one_failing_call_costs_its_own_figure(
    fake_nvml: FakeNvml, reader: Reader, call: str, code: int, reason: UnknownReason
) -> None:
    fake_nvml.write(rules=[f"error {call} {code}"])
    card = reader.card()
    assert card.state == "ok"
    assert card.unknown == {}
    assert card.detail.unknown == dict.fromkeys(FIELDS_OF_CALL[call], reason)


def test_a_card_that_has_none_of_them_is_still_a_card(fake_nvml: FakeNvml, reader: Reader) -> None:
    fake_nvml.write(rules=[f"error {call} 3" for call in FIELDS_OF_CALL])
    card = reader.card()
    assert card.state == "ok"
    fields = ("performance", "fan", "pcie", "ecc", "mig")
    assert {name: card.detail.unknown[name] for name in fields} == dict.fromkeys(fields, "not_supported")
    assert (card.detail.pcie, card.detail.ecc, card.detail.mig) == (None, None, None)


def test_impossible_figures_are_unknown(fake_nvml: FakeNvml, reader: Reader) -> None:
    broken = 0xFFFFFFFF
    fake_nvml.write(
        [
            FakeGpu(
                performance=32,
                fan=broken,
                receive=broken,
                generation=broken,
                lanes=0,
                corrected=(1 << 64) - 1,
            )
        ]
    )
    detail = reader.card().detail
    assert detail.pcie == Pcie(None, 0, None, 0, 16)
    assert detail.ecc == EccErrors(None, 0)
    fields = ("performance", "fan", "pcie.receive", "pcie.generation", "ecc.corrected")
    assert detail.unknown == dict.fromkeys(fields, "out_of_range")


def test_ecc_that_is_switched_off_counts_nothing(fake_nvml: FakeNvml, reader: Reader) -> None:
    fake_nvml.write([FakeGpu(ecc=0)])
    detail = reader.card().detail
    assert detail.ecc is None
    assert detail.unknown == {"ecc": "not_supported"}


def test_a_card_cut_into_instances_names_them(fake_nvml: FakeNvml, reader: Reader) -> None:
    fake_nvml.write([FakeGpu(mig=1, instances=3)])
    detail = reader.card().detail
    assert detail.mig is True
    assert [uuid[-1] for uuid in detail.instances] == ["0", "1", "2"]
    assert all(uuid.startswith("MIG-") for uuid in detail.instances)


def test_how_the_cards_are_joined(fake_nvml: FakeNvml, reader: Reader) -> None:
    fake_nvml.write(cards(4), rules=["link 0 1 20 nvlink", "link 0 2 10", "link 2 3 40"])
    links = [gpu.detail.links for gpu in reader.read().gpus]
    assert links[0] == (Link(1, "nvlink"), Link(2, "switch"), Link(3, "system"))
    assert links[1][0] == Link(0, "nvlink")
    assert links[3][2] == Link(2, "node")


def test_a_lost_card_has_no_links_and_takes_no_other_with_it(fake_nvml: FakeNvml, reader: Reader) -> None:
    fake_nvml.write(cards(2), rules=["error * gpu=1 15"])
    reading = reader.read()
    assert [gpu.state for gpu in reading.gpus] == ["ok", "lost"]
    assert reading.gpus[0].detail.links == ()


def test_rare_figures_are_read_at_first_and_then_of_one_card_at_a_look(
    fake_nvml: FakeNvml, reader: Reader
) -> None:
    fake_nvml.write(cards(3))
    reader.read(at=0)
    assert fake_nvml.calls()[RATE] == 6
    reader.read(at=4)
    assert fake_nvml.calls()[RATE] == 6
    fake_nvml.write([FakeGpu(fan=77, receive=9, uuid=gpu.uuid) for gpu in cards(3)])
    seen = [[gpu.detail for gpu in reader.read(at=at).gpus] for at in (5, 6, 7, 8)]
    assert fake_nvml.calls()[RATE] == 12, "each card once, then none is old"
    assert all(detail.fan == 0.77 for details in seen for detail in details)
    rates = [[detail.pcie.receive if detail.pcie else None for detail in details] for details in seen]
    assert rates == [[9000, 0, 0], [9000, 9000, 0], [9000, 9000, 9000], [9000, 9000, 9000]]


def test_a_new_session_asks_again_how_the_cards_are_joined(fake_nvml: FakeNvml, reader: Reader) -> None:
    fake_nvml.write(cards(2))
    reader.read(at=0)
    fake_nvml.write(cards(2), rules=["link 0 1 10 nvlink"])
    assert reader.read(at=6).gpus[0].detail.links == (Link(1, "system"),)
    fake_nvml.write(cards(2), rules=["link 0 1 10 nvlink"], session=1)
    assert reader.read(at=7).gpus[0].detail.links == (Link(1, "nvlink"),)
