"""The figures of a card that are shown on demand: fan, PCIe, ECC, MIG, how the cards are joined.

A PCIe rate takes the driver 20 ms in each direction. So all but the first two figures are read once for
every card when a session opens, and then of one card at a look, each card every few seconds.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

from tui.collect.nvml.answers import Answers
from tui.collect.nvml.binding import Handle, pynvml
from tui.facts.machine import EccErrors, GpuDetail, Link, LinkKind, Pcie

AGAIN = 5.0
"""Seconds after which the rare figures of a card are old."""

_MAX_PERCENT = 200  # a fan may be asked for more than what counts as its highest speed
_MAX_KILOBYTES = 1_000_000_000  # per second
_MAX_GENERATION, _MAX_LANES = 16, 32
_MAX_ERRORS = 1 << 40
_MAX_INSTANCES = 64
_SLOWEST = 15  # the driver's own "unknown" is 32

_LEVELS: dict[int, LinkKind] = {
    pynvml.NVML_TOPOLOGY_INTERNAL: "board",
    pynvml.NVML_TOPOLOGY_SINGLE: "switch",
    pynvml.NVML_TOPOLOGY_MULTIPLE: "switches",
    pynvml.NVML_TOPOLOGY_HOSTBRIDGE: "host_bridge",
    pynvml.NVML_TOPOLOGY_NODE: "node",
    pynvml.NVML_TOPOLOGY_SYSTEM: "system",
}


@dataclass(frozen=True, slots=True)
class _Rare:
    at: float
    detail: GpuDetail


class DetailReader:
    """Reads the details of the cards of one session again and again."""

    def __init__(self) -> None:
        self._rare: dict[int, _Rare] = {}
        self._turn: int | None = None

    def forget(self) -> None:
        """A session was opened: everything may have changed."""
        self._rare.clear()

    def begin(self, now: float) -> None:
        """A look at all cards begins: one of them, the longest not read, may be read in full."""
        oldest = min(self._rare, key=lambda index: self._rare[index].at, default=None)
        is_old = oldest is not None and now - self._rare[oldest].at >= AGAIN
        self._turn = oldest if is_old else None

    def read(self, index: int, handle: Handle, count: int, now: float) -> GpuDetail:
        """The details of card ``index`` of ``count``.

        Raises:
            pynvml.NVMLError: the card is lost.
        """
        if index not in self._rare or index == self._turn:
            before = self._rare.pop(index, None)  # what raises now is read at the next look
            links = () if before is None else before.detail.links
            if len(links) < count - 1:  # a card was lost, or came back
                links = tuple(_links(index, handle, count))
            self._rare[index] = _Rare(now, replace(_rare(handle), links=links))
        rare = self._rare[index].detail
        answers = Answers()
        state = answers.ask("performance", lambda: int(pynvml.nvmlDeviceGetPerformanceState(handle)))
        percent = answers.ask("fan", lambda: int(pynvml.nvmlDeviceGetFanSpeed(handle)))
        percent = answers.within("fan", percent, 0, _MAX_PERCENT)
        return replace(
            rare,
            performance=answers.within("performance", state, 0, _SLOWEST),
            fan=None if percent is None else percent / 100,
            unknown={**rare.unknown, **answers.unknown},
        )


def _rare(handle: Handle) -> GpuDetail:
    answers = Answers()
    mig = answers.ask("mig", lambda: int(pynvml.nvmlDeviceGetMigMode(handle)[0]))
    return GpuDetail(
        pcie=_pcie(handle, answers),
        ecc=_ecc(handle, answers),
        mig=None if mig is None else mig == pynvml.NVML_FEATURE_ENABLED,
        instances=tuple(_instances(handle)) if mig == pynvml.NVML_FEATURE_ENABLED else (),
        unknown=answers.unknown,
    )


def _pcie(handle: Handle, answers: Answers) -> Pcie | None:
    def figure(field: str, highest: int, call: Callable[[], int]) -> int | None:
        return answers.within(field, answers.ask(field, call), 0, highest)

    def rate(field: str, counter: int) -> int | None:
        call = lambda: int(pynvml.nvmlDeviceGetPcieThroughput(handle, counter))  # noqa: E731
        kilobytes = figure(field, _MAX_KILOBYTES, call)
        return None if kilobytes is None else kilobytes * 1000

    found = Pcie(
        receive=rate("pcie.receive", pynvml.NVML_PCIE_UTIL_RX_BYTES),
        send=rate("pcie.send", pynvml.NVML_PCIE_UTIL_TX_BYTES),
        generation=figure(
            "pcie.generation",
            _MAX_GENERATION,
            lambda: int(pynvml.nvmlDeviceGetCurrPcieLinkGeneration(handle)),
        ),
        lanes=figure("pcie.lanes", _MAX_LANES, lambda: int(pynvml.nvmlDeviceGetCurrPcieLinkWidth(handle))),
        most_lanes=figure(
            "pcie.most_lanes", _MAX_LANES, lambda: int(pynvml.nvmlDeviceGetMaxPcieLinkWidth(handle))
        ),
    )
    if found == Pcie(None, None, None, None, None):
        answers.unknown["pcie"] = answers.unknown["pcie.receive"]
        return None
    return found


def _ecc(handle: Handle, answers: Answers) -> EccErrors | None:
    mode = answers.ask("ecc", lambda: int(pynvml.nvmlDeviceGetEccMode(handle)[0]))
    if mode != pynvml.NVML_FEATURE_ENABLED:
        answers.unknown.setdefault("ecc", "not_supported")
        return None

    def errors(field: str, kind: int) -> int | None:
        count = answers.ask(
            field,
            lambda: int(pynvml.nvmlDeviceGetTotalEccErrors(handle, kind, pynvml.NVML_VOLATILE_ECC)),
        )
        return answers.within(field, count, 0, _MAX_ERRORS)

    return EccErrors(
        errors("ecc.corrected", pynvml.NVML_MEMORY_ERROR_TYPE_CORRECTED),
        errors("ecc.uncorrected", pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED),
    )


def _instances(handle: Handle) -> Iterator[str]:
    """The uuids of the card's instances, in the order of CUDA's numbers."""
    with suppress(pynvml.NVMLError, AttributeError, UnicodeDecodeError):
        for number in range(min(int(pynvml.nvmlDeviceGetMaxMigDeviceCount(handle)), _MAX_INSTANCES)):
            with suppress(pynvml.NVMLError_NotFound):
                instance = pynvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, number)
                yield str(pynvml.nvmlDeviceGetUUID(instance))


def _links(index: int, handle: Handle, count: int) -> Iterator[Link]:
    """A peer that does not answer has no link; that it is lost is said where it is read itself."""
    for other in range(count):
        if other != index:
            with suppress(pynvml.NVMLError, AttributeError):
                kind = _link(handle, pynvml.nvmlDeviceGetHandleByIndex(other))
                if kind is not None:
                    yield Link(other, kind)


def _link(one: Handle, other: Handle) -> LinkKind | None:
    with suppress(pynvml.NVMLError, AttributeError):
        status = pynvml.nvmlDeviceGetP2PStatus(one, other, pynvml.NVML_P2P_CAPS_INDEX_NVLINK)
        if status == pynvml.NVML_P2P_STATUS_OK:
            return "nvlink"
    return _LEVELS.get(int(pynvml.nvmlDeviceGetTopologyCommonAncestor(one, other)))
