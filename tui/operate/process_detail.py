"""One process in full. Its environment and command were read when it was first seen: nothing here asks
the kernel for what can block on a process that hangs.
"""

from collections.abc import Iterable, Iterator

from tui.collect.proc import Proc
from tui.facts.errors import LlamaherdError
from tui.facts.machine import Gpu, Holder
from tui.facts.process import DeviceUse, ProcessDetail, TreeRow
from tui.facts.snapshot import Snapshot
from tui.insight.visible_devices import visible_cards
from tui.operate.identify import Population

_TREE_LIMIT = 200


def process_detail(
    pid: int,
    snapshot: Snapshot,
    population: Population,
    holders: Iterable[Holder],
    proc: Proc,
    start: int | None = None,
) -> ProcessDetail:
    """The process as the look that made ``snapshot`` saw it.

    Args:
        pid: of this namespace.
        snapshot: for its cards and jobs.
        population: all processes of that look.
        holders: who holds a card in that look.
        proc: for the little that is read now.
        start: its start ticks, if it must be that very process.

    Raises:
        LlamaherdError: ``pid_missing``: there is none, or another one has the PID by now.
    """
    info = population.infos.get(pid)
    if info is None or start not in (None, info.start):
        raise LlamaherdError("pid_missing", pid=pid)
    holder = next((holder for holder in holders if holder.pid == pid), None)
    jobs = (*snapshot.jobs, *snapshot.foreign)
    hides_environment = "environment" in info.unknown
    return ProcessDetail(
        info=info,
        role=population.roles[pid].role,
        job=next((job.id for job in jobs if any(member.pid == pid for member in job.members)), None),
        cwd=proc.cwd(pid),
        executable=proc.executable(pid),
        wchan=proc.wchan(pid),
        devices=() if holder is None else tuple(_devices(holder, snapshot.gpus)),
        inherited=holder is not None and holder.inherited,
        visible=None if hides_environment else visible_cards(info.environment, snapshot.gpus),
        ports=tuple(sorted(proc.ports([pid]))),
        tree=tuple(_tree(pid, population)),
    )


def _devices(holder: Holder, gpus: Iterable[Gpu]) -> Iterator[DeviceUse]:
    by_minor = {gpu.minor: gpu for gpu in gpus}
    for minor in sorted(holder.minors):
        gpu = by_minor.get(minor)
        memory = None
        if gpu is not None:
            memory = next((owner.memory for owner in gpu.owners if owner.pid == holder.pid), None)
        yield DeviceUse(
            minor,
            minor in holder.mapped_minors,
            None if gpu is None else gpu.index,
            None if gpu is None else gpu.uuid,
            memory,
        )


def _tree(pid: int, population: Population) -> Iterator[TreeRow]:
    """From the highest ancestor down; of the ancestors' other children nothing is shown."""
    chain: list[int] = []
    above = population.infos[pid].ppid
    while above in population.infos and above not in chain and above != pid:
        chain.append(above)
        above = population.infos[above].ppid
    for depth, ancestor in enumerate(reversed(chain)):
        yield _row(ancestor, depth, population)
    queue, seen = [(pid, len(chain))], set(chain)
    while queue and len(seen) < _TREE_LIMIT:
        current, depth = queue.pop(0)
        if current in seen:
            continue
        seen.add(current)
        yield _row(current, depth, population)
        queue = [(child, depth + 1) for child in population.children.get(current, ())] + queue


def _row(pid: int, depth: int, population: Population) -> TreeRow:
    info = population.infos[pid]
    return TreeRow(
        pid, info.start, depth, info.kind, info.rank, info.state, info.command, info.resident, info.cpu_used
    )
