"""Everything that is known of each card and its owners, as text."""

from tui.facts.machine import Gpu, GpuDetail, LinkKind, Owner
from tui.facts.snapshot import Snapshot
from tui.text import units
from tui.text.gpu_report import command_text, owner_name, short_gpu_name
from tui.text.layout import Page, labelled
from tui.text.names import PROCESS_STATES, THROTTLES
from tui.text.outside import outside
from tui.text.owner_sentences import cause_lines, evidence_text
from tui.text.translate import tr, tr_noop, tr_plural

LINKS: dict[LinkKind, str] = {
    "nvlink": "NVLink",
    "board": tr_noop("one board"),
    "switch": tr_noop("one PCIe switch"),
    "switches": tr_noop("several PCIe switches"),
    "host_bridge": tr_noop("one PCIe root"),
    "node": tr_noop("one processor"),
    "system": tr_noop("between processors"),
}


def detail_report(snapshot: Snapshot, width: int = 80, colour: bool = False, ascii: bool = False) -> str:
    """Every card of the snapshot in full, with the proof of every owner."""
    page = Page(max(40, width), colour, ascii)
    blocks = [_card(page, gpu, snapshot) for gpu in snapshot.gpus]
    return "\n\n".join("\n".join(block) for block in blocks)


def _card(page: Page, gpu: Gpu, snapshot: Snapshot) -> list[str]:
    lines = [page.heading(f"GPU {gpu.index}  {short_gpu_name(gpu.name)}")]
    lines += labelled(page, card_facts(gpu), 2)
    for owner in gpu.owners:
        lines += ["", *_owner(page, gpu, owner, snapshot.taken_at)]
    return lines


def card_facts(gpu: Gpu) -> list[tuple[str, str]]:
    """Labels and values of one card, in the order of reading."""
    detail, memory = gpu.detail, gpu.memory
    facts = [("UUID", outside(gpu.uuid) or units.UNKNOWN)]
    if memory.unified:
        facts.append((tr("Memory"), tr("shares the memory of the host")))
    else:
        parts = [
            tr("{size} used", size=units.sizes(memory.used, memory.total)),
            tr("{size} reserved", size=units.size(memory.reserved)),
            tr("{size} free", size=units.size(memory.free)),
            tr("at most {size} since this watches", size=units.size(gpu.peak_memory)),
        ]
        facts.append((tr("Memory"), tr(", ").join(parts)))
    clocks = gpu.clocks
    if clocks is not None:
        text = tr(
            "{graphics} MHz, memory {memory} MHz",
            graphics=_megahertz(clocks.graphics),
            memory=_megahertz(clocks.memory),
        )
        facts.append((tr("Clocks"), text))
    facts += [
        (tr("P-state"), _or_reason(detail, "performance", f"P{detail.performance}")),
        (tr("Held back by"), _throttles(gpu)),
        (tr("Fan"), _or_reason(detail, "fan", units.percent(detail.fan))),
        ("PCIe", _or_reason(detail, "pcie", _pcie(detail))),
        ("ECC", _or_reason(detail, "ecc", _ecc(detail))),
        ("MIG", _or_reason(detail, "mig", _mig(detail))),
    ]
    if detail.links:
        facts.append((tr("Joined to"), _links(detail)))
    if gpu.age is not None:
        facts.append((tr("Read"), units.age(gpu.age)))
    return facts


def _or_reason(detail: GpuDetail, field: str, text: str) -> str:
    reason = detail.unknown.get(field)
    return text if reason is None else units.reason(reason)


def _megahertz(hertz: int | None) -> str:
    return units.UNKNOWN if hertz is None else str(hertz // 1_000_000)


def _throttles(gpu: Gpu) -> str:
    if "throttle" in gpu.unknown:
        return units.reason(gpu.unknown["throttle"])
    return tr(", ").join(tr(words) for name, words in THROTTLES.items() if name in gpu.throttle) or tr(
        "nothing"
    )


def _pcie(detail: GpuDetail) -> str:
    if detail.pcie is None:
        return units.UNKNOWN
    pcie = detail.pcie
    return tr(
        "generation {generation}, {lanes} of {most} lanes, {receive}/s in, {send}/s out",
        generation=pcie.generation if pcie.generation is not None else units.UNKNOWN,
        lanes=pcie.lanes if pcie.lanes is not None else units.UNKNOWN,
        most=pcie.most_lanes if pcie.most_lanes is not None else units.UNKNOWN,
        receive=units.size(pcie.receive),
        send=units.size(pcie.send),
    )


def _ecc(detail: GpuDetail) -> str:
    if detail.ecc is None:
        return units.UNKNOWN
    corrected, uncorrected = detail.ecc.corrected, detail.ecc.uncorrected
    return tr(
        "{corrected} errors corrected, {uncorrected} not, since the driver was loaded",
        corrected=units.UNKNOWN if corrected is None else corrected,
        uncorrected=units.UNKNOWN if uncorrected is None else uncorrected,
    )


def _mig(detail: GpuDetail) -> str:
    if not detail.mig:
        return tr("off")
    return tr_plural("on, {count} instance", "on, {count} instances", len(detail.instances))


def _links(detail: GpuDetail) -> str:
    return tr(", ").join(
        tr("GPU {index} by {link}", index=link.index, link=tr(LINKS[link.kind])) for link in detail.links
    )


def _owner(page: Page, gpu: Gpu, owner: Owner, now: float) -> list[str]:
    lines = page.paragraph(owner_head(owner), 2, "warn" if owner.evidence == "hidden" else "accent")
    if owner.pid is not None:
        lines += labelled(page, owner_facts(owner, now), 4)
    lines += page.paragraph(evidence_text(gpu, owner), 4)
    for message, advice in cause_lines(owner):
        lines += page.paragraph(message, 4)
        lines += page.paragraph(advice, 6, "dim") if advice else []
    return lines


def owner_head(owner: Owner) -> str:
    """``PID 4242  training rank 0  20.1 GiB``."""
    if owner.pid is None:
        who = tr("unexplained") if owner.host_pid is None else tr("not visible")
    else:
        who = f"PID {owner.pid}  {owner_name(owner)}"
    return f"{who}  {units.size(owner.memory)}"


def owner_facts(owner: Owner, now: float) -> list[tuple[str, str]]:
    """Labels and values of one owner, besides its memory on the card."""
    return [
        (tr("Command"), command_text(owner.command) or units.UNKNOWN),
        (tr("User"), outside(owner.user or units.UNKNOWN, 60)),
        (tr("State"), tr(PROCESS_STATES[owner.state])),
        (tr("Job"), outside(owner.job or units.UNKNOWN, 80)),
        (tr("Started"), units.UNKNOWN if owner.started_at is None else units.clock(owner.started_at, now)),
        ("CPU", units.cpus(owner.cpu_used)),
        (tr("Host memory"), units.size(owner.resident)),
    ]
