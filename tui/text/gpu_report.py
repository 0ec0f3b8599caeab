"""The cards and who holds their memory, as text."""

from collections.abc import Sequence
from pathlib import PurePath

from tui.facts.finding import Finding
from tui.facts.machine import Driver, DriverError, Evidence, Gpu, Owner, ThrottleReason
from tui.facts.secrets import mask_arguments
from tui.facts.snapshot import Snapshot
from tui.facts.unknown import UnknownReason
from tui.text import units
from tui.text.cells import width
from tui.text.findings import finding_text
from tui.text.layout import Cell, Column, Page, Style, Table
from tui.text.names import EVIDENCE, EVIDENCE_MEANINGS, PROCESS_KINDS, PROCESS_STATES, THROTTLES
from tui.text.outside import outside
from tui.text.owner_sentences import unexplained_text
from tui.text.sentences import driver_text
from tui.text.translate import tr, tr_noop

_NAME_LIMIT = 80
_COMMAND_LIMIT = 300
_STALE_SECONDS = 10.0
_HOT = 85.0  # degrees Celsius
_MAKER_WORDS = ("NVIDIA ", "GeForce ", "Tesla ", "Graphics Device ")

# The other reasons are the rule: the power limit under load, idle without one.
_WORRYING: tuple[ThrottleReason, ...] = ("hw_slowdown", "sw_thermal", "hw_thermal", "hw_power_brake")

_FIELDS = {
    "memory": tr_noop("GPU memory"),
    "memory.total": tr_noop("GPU memory"),
    "memory.used": tr_noop("GPU memory"),
    "memory.free": tr_noop("GPU memory"),
    "memory.reserved": tr_noop("reserved memory"),
    "utilization": tr_noop("utilization"),
    "temperature": tr_noop("temperature"),
    "power": tr_noop("power"),
    "power_limit": tr_noop("power limit"),
}


def gpu_lines(page: Page, snapshot: Snapshot) -> list[str]:
    """The section of the cards: a line per card, their owners, and what is not known and why."""
    if not snapshot.gpus:
        message, advice = _why_no_gpu(snapshot)
        return [page.heading("GPU"), *page.paragraph(message, 2, "warn"), *page.paragraph(advice, 2)]
    owners = [(gpu, owner) for gpu in snapshot.gpus for owner in gpu.owners]
    lines = _driver_lines(page, snapshot.driver)
    if snapshot.driver.source == "nvidia_smi":
        text = tr("The driver's library cannot be loaded here; nvidia-smi was asked, which tells less.")
        lines += page.paragraph(text, style="dim")
    lines += _card_table(snapshot.gpus).lines(page)
    lines += [*_throttle_lines(page, snapshot.gpus), *_unknown_lines(page, snapshot.gpus)]
    lines.append("")
    if not owners:
        return lines + page.paragraph(tr("No visible process uses a GPU."), style="dim")
    lines += _owner_table(owners).lines(page)
    return lines + _evidence_lines(page, [owner.evidence for _gpu, owner in owners])


def _why_no_gpu(snapshot: Snapshot) -> tuple[str, str]:
    if snapshot.host.gpu_mode == "none" and snapshot.host.platform == "autodl":
        return finding_text(Finding("no_gpu_mode", "info"))
    return driver_text(snapshot.driver.error or DriverError("no_device"))


def _driver_lines(page: Page, driver: Driver) -> list[str]:
    """What a driver that fails now says; the cards below are then as it last described them."""
    if driver.error is None:
        return []
    message, advice = driver_text(driver.error)
    return [*page.paragraph(message, style="warn"), *page.paragraph(advice, 2), ""]


def short_gpu_name(name: str) -> str:
    """A card's name without its maker: ``RTX 4090``, ``H100 80GB HBM3``."""
    name = outside(name, _NAME_LIMIT)
    for word in _MAKER_WORDS:
        name = name.removeprefix(word)
    return name


def command_text(command: Sequence[str]) -> str:
    """A command line for showing: secrets masked, harmless, leading paths cut to their last part."""
    words = [outside(word, _COMMAND_LIMIT) for word in mask_arguments(command[:50])]
    words[:4] = [PurePath(word).name if word.startswith("/") else word for word in words[:4]]
    return outside(" ".join(words), _COMMAND_LIMIT)


def owner_name(owner: Owner) -> str:
    """What the process is, with what it calls itself: ``notebook train.ipynb``, ``training rank 1``."""
    name = tr(PROCESS_KINDS[owner.kind])
    if owner.rank is not None:
        name = f"{name} rank {owner.rank}"
    return f"{name} {outside(owner.title, 60)}" if owner.title else name


def _card_table(gpus: Sequence[Gpu]) -> Table:
    columns = (
        Column("GPU", "right"),
        Column(tr("Name"), least=8),
        Column(tr("GPU memory"), least=10, most=32, bar=True),
        Column("", "right"),
        Column(tr("Reserved"), "right", drop=2),
        Column(tr("Busy"), "right"),
        Column(tr("Temp"), "right", drop=1),
        Column(tr("Power"), "right", drop=3),
    )
    table = Table(columns)
    for gpu in gpus:
        memory = gpu.memory
        # What a driver said before it fell silent is shown, but not as if it were now.
        style: Style = "dim" if _is_old(gpu) else "plain"
        hot: Style = "warn" if style == "plain" and (gpu.temperature or 0) >= _HOT else style
        fraction = memory.used / memory.total if memory.used is not None and memory.total else None
        table.rows.append(
            (
                Cell(str(gpu.index)),
                Cell(short_gpu_name(gpu.name)),
                _memory_cell(gpu, fraction),
                Cell(_amount(gpu), style),
                Cell(units.size(memory.reserved), "dim"),
                Cell(units.percent(gpu.utilization), style),
                Cell(units.temperature(gpu.temperature), hot),
                Cell(units.watts(gpu.power, gpu.power_limit), style),
            )
        )
    return table


def _memory_cell(gpu: Gpu, fraction: float | None) -> Cell:
    if gpu.state == "lost":
        return Cell(tr("does not answer"), "bad")
    if gpu.state == "error":
        return Cell(tr("cannot be read"), "bad")
    if gpu.memory.unified:
        return Cell(tr("shared with the host"), "dim")
    style: Style = "warn" if fraction is not None and fraction > 0.97 else "accent"
    if _is_old(gpu):
        style = "dim"
    return Cell(fraction=fraction if fraction is not None else 0.0, style=style)


def _amount(gpu: Gpu) -> str:
    if gpu.state != "ok" or gpu.memory.unified:
        return units.UNKNOWN
    return units.sizes(gpu.memory.used, gpu.memory.total)


def _is_old(gpu: Gpu) -> bool:
    return gpu.age is not None and gpu.age > _STALE_SECONDS


def _owner_table(owners: Sequence[tuple[Gpu, Owner]]) -> Table:
    unseen = [width(unexplained_text(owner)) for _gpu, owner in owners if owner.evidence == "hidden"]
    columns = (
        Column("GPU", "right"),
        Column("PID", "right"),
        Column(tr("User"), most=12, drop=3),
        Column(tr("What"), least=10),
        Column(tr("Holds"), "right"),
        Column(tr("Evidence"), drop=1),
        Column("CPU", "right", drop=5),
        Column(tr("Host memory"), "right", drop=4),
        Column(tr("Job"), drop=2),
        Column(tr("Command"), least=max(24, *unseen, 0)),
    )
    table = Table(columns)
    for gpu, owner in owners:
        table.rows.append(_unexplained(gpu, owner) if owner.evidence == "hidden" else _owned(gpu, owner))
    return table


def _owned(gpu: Gpu, owner: Owner) -> tuple[Cell, ...]:
    what = owner_name(owner)
    if owner.state in {"disk_wait", "zombie", "stopped"}:
        what = tr("{what}, {state}", what=what, state=tr(PROCESS_STATES[owner.state]))
    return (
        Cell(str(gpu.index)),
        Cell(units.UNKNOWN if owner.pid is None else str(owner.pid)),
        Cell(outside(owner.user or units.UNKNOWN, _NAME_LIMIT)),
        Cell(what),
        Cell(units.size(owner.memory)),
        Cell(tr(EVIDENCE[owner.evidence]), "dim" if owner.evidence == "exact" else "plain"),
        Cell("" if owner.cpu_used is None else units.cpus(owner.cpu_used)),
        Cell("" if owner.resident is None else units.size(owner.resident)),
        Cell(outside(owner.job or units.UNKNOWN, _NAME_LIMIT)),
        Cell(command_text(owner.command) or units.UNKNOWN),
    )


def _unexplained(gpu: Gpu, owner: Owner) -> tuple[Cell, ...]:
    """Memory without a process to name: the row has no PID, so nothing can be done to it by mistake."""
    dash = Cell(units.UNKNOWN, "dim")
    what = Cell(tr("unexplained") if owner.host_pid is None else tr("not visible"), "warn")
    memory, evidence = Cell(units.size(owner.memory), "warn"), Cell(tr(EVIDENCE["hidden"]), "warn")
    why = Cell(unexplained_text(owner), "warn")
    return (Cell(str(gpu.index)), dash, dash, what, memory, evidence, Cell(), Cell(), dash, why)


def _throttle_lines(page: Page, gpus: Sequence[Gpu]) -> list[str]:
    lines = []
    for gpu in gpus:
        for reason in _WORRYING:
            if reason in gpu.throttle:
                lines += page.paragraph(f"GPU {gpu.index}: {tr(THROTTLES[reason])}", 2, "warn")
    return lines


def _evidence_lines(page: Page, seen: Sequence[Evidence]) -> list[str]:
    """What the less certain words of the evidence column mean; the certain ones need no note."""
    lines = []
    for evidence in EVIDENCE:
        if evidence in seen and evidence not in {"exact", "hidden"}:
            word, meaning = tr(EVIDENCE[evidence]), tr(EVIDENCE_MEANINGS[evidence])
            lines += page.paragraph(tr("{what}: {result}", what=word, result=meaning), 2, "dim")
    return lines


def _unknown_lines(page: Page, gpus: Sequence[Gpu]) -> list[str]:
    """Which shown values are missing on which cards, and why; old readings are named, too."""
    missing: dict[tuple[str, UnknownReason], list[str]] = {}
    for gpu in gpus:
        for field, reason in gpu.unknown.items():
            is_said = gpu.memory.unified and field.startswith("memory")
            if field in _FIELDS and gpu.state == "ok" and not is_said:
                cards = missing.setdefault((tr(_FIELDS[field]), reason), [])
                if str(gpu.index) not in cards:
                    cards.append(str(gpu.index))
    lines = []
    for (name, reason), cards in missing.items():
        text = tr(
            "GPU {gpus}, {name}: {reason}", gpus=", ".join(cards), name=name, reason=units.reason(reason)
        )
        lines += page.paragraph(text, 2, "dim")
    if old := max((gpu.age for gpu in gpus if gpu.age is not None and _is_old(gpu)), default=None):
        lines += page.paragraph(tr("These readings are old: {age}.", age=units.age(old)), 2, "warn")
    return lines
