"""The host, as text: CPU, memory, shared memory, disks."""

from tui.facts.machine import Disk, Host
from tui.facts.unknown import Unknown
from tui.text import units
from tui.text.layout import Cell, Column, Page, Style, Table
from tui.text.outside import outside
from tui.text.translate import tr, tr_noop

_SHM = "/dev/shm"  # noqa: S108  (a label, nothing is opened)
_FULL = 0.9
_FEW_INODES = 10_000

_ROLES = {
    "system": tr_noop("system disk"),
    "data": tr_noop("data disk"),
    "shared": tr_noop("file storage"),
}


def host_lines(page: Page, host: Host) -> list[str]:
    """The section of the host: one bar for everything that can run out."""
    columns = (
        Column(least=12, middle=True),
        Column(least=8, most=32, bar=True),
        Column(align="right"),
        Column(least=10, drop=1),
    )
    table = Table(columns)
    table.rows.append(
        _row(
            "CPU", host.cpu_used, host.cpu_count, _cpus(host), _reason(host.unknown, "cpu_used"), alarm=False
        )
    )
    memory = host.memory
    amount = units.sizes(memory.used, memory.limit)
    table.rows.append(_row(tr("Memory"), memory.used, memory.limit, amount, _memory_note(host)))
    shm = host.shm
    used = None if shm.total is None or shm.free is None else shm.total - shm.free
    table.rows.append(_row(_SHM, used, shm.total, units.sizes(used, shm.total), _reason(host.unknown, "shm")))
    table.rows += [_disk_row(disk) for disk in host.disks]
    lines = [page.heading(tr("Host")), *table.lines(page, 2)]
    if host.oom_kills:
        text = tr(
            "Processes killed for lack of memory since this container exists: {count}", count=host.oom_kills
        )
        lines += page.paragraph(text, 2, "warn")
    return lines


def _memory_note(host: Host) -> str:
    if host.memory.high is not None:
        return tr("slowed down from {size}", size=units.size(host.memory.high))
    return _reason(host.unknown, "memory.used") or _reason(host.unknown, "memory.limit")


def _cpus(host: Host) -> str:
    return f"{units.cpus(host.cpu_used)}/{units.cpus(host.cpu_count)}"


def _disk_row(disk: Disk) -> tuple[Cell, ...]:
    used = None if disk.total is None or disk.free is None else disk.total - disk.free
    free = _reason(disk.unknown, "free") or tr("{size} free", size=units.size(disk.free))
    note = tr(", ").join((free, tr(_ROLES[disk.role])))
    if disk.inodes_free is not None and disk.inodes_free < _FEW_INODES:
        note = tr("{note}, room for {count} more files", note=note, count=disk.inodes_free)
    return _row(outside(disk.path), used, disk.total, units.sizes(used, disk.total), note)


def _row(
    label: str, used: float | None, total: float | None, amount: str, note: str, *, alarm: bool = True
) -> tuple[Cell, ...]:
    fraction = None if used is None or not total else used / total
    style: Style = "warn" if alarm and fraction is not None and fraction > _FULL else "accent"
    bar = Cell(fraction=min(1.0, fraction), style=style) if fraction is not None else Cell(fraction=0.0)
    return (Cell(label), bar, Cell(amount), Cell(note, "dim"))


def _reason(unknown: Unknown, name: str) -> str:
    return units.reason(unknown[name]) if name in unknown else ""
