"""One process in full, as text."""

from collections.abc import Mapping, Sequence

from tui.facts.machine import Gpu
from tui.facts.process import ProcessDetail, TreeRow
from tui.text import units
from tui.text.gpu_report import command_text
from tui.text.layout import Page, labelled
from tui.text.names import PROCESS_KINDS, PROCESS_STATES, ROLES
from tui.text.outside import outside
from tui.text.translate import tr

_CUDA = ("CUDA_", "NVIDIA_", "NCCL_", "RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_")
_SHOWN_VARIABLES = 400


def process_report(
    detail: ProcessDetail,
    gpus: Sequence[Gpu],
    now: float,
    width: int = 80,
    colour: bool = False,
    ascii: bool = False,
) -> str:
    """The process: what it is, its cards, its tree, its environment with secrets masked.

    ``gpus`` are the cards of the same look; ``now`` is epoch seconds.
    """
    page = Page(max(40, width), colour, ascii)
    indexes = {gpu.uuid: gpu.index for gpu in gpus}
    sections = [
        [page.heading(f"PID {detail.info.pid}"), *labelled(page, _facts(detail, indexes, now), 2)],
        [page.heading(tr("Tree")), *(_tree_line(page, row, detail.info.pid) for row in detail.tree)],
        [page.heading(tr("Environment at its start")), *_environment(page, detail)],
    ]
    return "\n\n".join("\n".join(lines) for lines in sections)


def _facts(detail: ProcessDetail, indexes: Mapping[str, int], now: float) -> list[tuple[str, str]]:
    info = detail.info
    kind = tr(PROCESS_KINDS[info.kind])
    rank = "" if info.rank is None else f" rank {info.rank}"
    title = "" if info.title is None else f" {outside(info.title, 60)}"
    state = tr(PROCESS_STATES[info.state])
    if detail.wchan:
        state = tr("{state}, in {function}", state=state, function=outside(detail.wchan, 60))
    return [
        (tr("Command"), command_text(info.command) or units.UNKNOWN),
        (tr("What"), f"{kind}{rank}{title}"),
        (tr("Role"), tr(ROLES[detail.role])),
        (tr("Job"), outside(detail.job or units.UNKNOWN, 80)),
        (tr("State"), state),
        (tr("User"), outside(info.user or units.UNKNOWN, 60)),
        (tr("Started"), units.UNKNOWN if info.started_at is None else units.clock(info.started_at, now)),
        ("CPU", units.cpus(info.cpu_used)),
        (tr("Host memory"), units.size(info.resident)),
        (tr("Threads"), str(info.threads)),
        (tr("Folder"), outside(detail.cwd or units.UNKNOWN)),
        (tr("Program"), outside(detail.executable or units.UNKNOWN)),
        (tr("Cards held"), _devices(detail)),
        (tr("Cards allowed"), _visible(detail, indexes)),
        (tr("Ports"), " ".join(map(str, detail.ports)) or units.UNKNOWN),
    ]


def _devices(detail: ProcessDetail) -> str:
    if not detail.devices:
        return tr("none")
    parts = []
    for use in detail.devices:
        card = f"/dev/nvidia{use.minor}" if use.index is None else f"GPU {use.index}"
        how = tr("mapped") if use.mapped else tr("open")
        size = "" if use.memory is None else f" {units.size(use.memory)}"
        parts.append(f"{card} {how}{size}")
    text = tr(", ").join(parts)
    return tr("{cards} (handles of its parent)", cards=text) if detail.inherited else text


def _visible(detail: ProcessDetail, indexes: Mapping[str, int]) -> str:
    if detail.visible is None:
        return units.UNKNOWN
    cards = [f"GPU {indexes[uuid]}" for uuid in detail.visible if uuid in indexes]
    return tr(", ").join(cards) or tr("none")


def _tree_line(page: Page, row: TreeRow, chosen: int) -> str:
    kind = (
        tr(PROCESS_KINDS[row.kind]) if row.rank is None else f"{tr(PROCESS_KINDS[row.kind])} rank {row.rank}"
    )
    numbers = f"{units.size(row.resident)}  {units.cpus(row.cpu_used)} CPU"
    text = f"{row.pid}  {kind}  {numbers}  {command_text(row.command)}"
    (line,) = page.paragraph(text, 2 + 2 * min(row.depth, 10), "bold" if row.pid == chosen else "plain")[:1]
    return line


def _environment(page: Page, detail: ProcessDetail) -> list[str]:
    reason = detail.info.unknown.get("environment")
    if reason is not None:
        return page.paragraph(units.reason(reason), 2, "dim")
    names = sorted(detail.info.environment, key=lambda name: (not name.startswith(_CUDA), name))
    lines: list[str] = []
    for name in names[:_SHOWN_VARIABLES]:
        lines += page.paragraph(f"{outside(name, 100)}={outside(detail.info.environment[name])}", 2)
    return lines or page.paragraph(tr("It is empty."), 2, "dim")
