"""The owners of all cards as one table: sorted, filtered, as a tree, and what may be done about a row."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from tui.facts.finding import Action
from tui.facts.job import Job
from tui.facts.machine import Gpu, Owner

SortKey = Literal["gpu", "memory", "pid", "kind", "user", "job", "cpu", "resident", "started"]
SORT_KEYS: Sequence[SortKey] = (
    "gpu",
    "memory",
    "pid",
    "kind",
    "user",
    "job",
    "cpu",
    "resident",
    "started",
)
NotSafe = Literal["hidden", "host_pid", "monitor", "not_a_job", "gone"]
"""Why nothing is offered for a row: no process, a process of the host, a monitor, a process of no run,
a process that has ended.
"""


@dataclass(frozen=True, slots=True)
class Row:
    """One owner on one card. ``depth``: how many rows of its tree stand above it."""

    gpu: Gpu
    owner: Owner
    depth: int = 0


def owner_rows(gpus: Iterable[Gpu]) -> tuple[Row, ...]:
    """Every owner of every card, in the order of the cards."""
    return tuple(Row(gpu, owner) for gpu in gpus for owner in gpu.owners)


def ordered(rows: Iterable[Row], key: SortKey = "gpu", *, reverse: bool = False) -> tuple[Row, ...]:
    """The rows by a column. Numbers begin with the largest, names with the first; what is unknown stands
    last either way, and equal rows by card and memory.
    """
    known = [row for row in rows if _value(row, key) is not None]
    unknown = [row for row in rows if _value(row, key) is None]
    by_default = sorted(known, key=_by_card)
    large_first = key in ("memory", "cpu", "resident", "started")
    by_default.sort(key=lambda row: _value(row, key) or 0, reverse=large_first != reverse)
    return (*by_default, *sorted(unknown, key=_by_card))


def matching(rows: Iterable[Row], text: str) -> tuple[Row, ...]:
    """The rows that hold every word of ``text``, whatever its case, in one of their columns."""
    words = text.casefold().split()
    return tuple(row for row in rows if all(word in _haystack(row) for word in words))


def tree(rows: Iterable[Row]) -> tuple[Row, ...]:
    """The rows under their nearest ancestor that is a row itself; a process on several cards once on each.

    Roots keep the order of ``rows``, and so do the children of each.
    """
    everyone = [replace(row, depth=0) for row in rows]
    present = {row.owner.pid for row in everyone if row.owner.pid is not None}
    children: dict[int | None, list[Row]] = {}
    for row in everyone:
        above = next((pid for pid in row.owner.ancestors if pid in present), None)
        children.setdefault(above, []).append(row)
    done: set[int | None] = set()
    found = list(_branches(children, None, 0, done))
    # A table read while processes come and go may show a ring: whoever is in it stands alone.
    rings = [row for above, rows in children.items() if above not in done for row in rows]
    return (*found, *rings)


def action_for(owner: Owner, jobs: Mapping[str, Job]) -> Action | NotSafe:
    """What may be offered for a row: to stop the whole run it belongs to, never to signal one process.

    ``jobs`` are all runs by id. Ending a lone process that is no run's is not offered: nothing says what
    it is to somebody.
    """
    if owner.pid is None:
        return "hidden" if owner.host_pid is None else "host_pid"
    if owner.state == "gone":
        return "gone"
    if owner.kind == "monitor":
        return "monitor"
    job = jobs.get(owner.job) if owner.job is not None else None
    if job is None or job.state in ("ended", "lost"):
        return "not_a_job"
    return Action("stop", (job.id,))


def _branches(
    children: Mapping[int | None, Sequence[Row]], above: int | None, depth: int, done: set[int | None]
) -> Iterator[Row]:
    done.add(above)
    for row in children.get(above, ()):
        yield replace(row, depth=depth)
        if row.owner.pid is not None and row.owner.pid not in done:
            yield from _branches(children, row.owner.pid, depth + 1, done)


def _by_card(row: Row) -> tuple[int, bool, int, int]:
    owner = row.owner
    return row.gpu.index, owner.evidence == "hidden", -(owner.memory or 0), owner.pid or 0


def _value(row: Row, key: SortKey) -> float | str | None:
    owner = row.owner
    values: dict[SortKey, float | str | None] = {
        "gpu": row.gpu.index,
        "memory": owner.memory,
        "pid": owner.pid,
        "kind": owner.kind if owner.evidence != "hidden" else None,
        "user": owner.user,
        "job": owner.job,
        "cpu": owner.cpu_used,
        "resident": owner.resident,
        "started": owner.started_at,
    }
    return values[key]


def _haystack(row: Row) -> str:
    owner = row.owner
    parts = (
        f"gpu{row.gpu.index}",
        row.gpu.name,
        "" if owner.pid is None else str(owner.pid),
        "" if owner.host_pid is None else str(owner.host_pid),
        owner.kind,
        owner.evidence,
        owner.user or "",
        owner.job or "",
        owner.title or "",
        " ".join(owner.command),
    )
    return "\n".join(parts).casefold()
