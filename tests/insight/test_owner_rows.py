"""Sorting, filtering, the tree, and which rows may be acted on."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.samples import CUDA_1, gpu, rank

from tui.facts.finding import Action
from tui.facts.job import Job
from tui.facts.machine import Owner, ProcessKind
from tui.insight.owner_rows import SORT_KEYS, Row, SortKey, action_for, matching, ordered, owner_rows, tree

HIDDEN = Owner(None, None, None, 5 << 30, "hidden", "other")
OUTSIDE = replace(HIDDEN, host_pid=914222)


def owner(
    pid: int, memory: int | None = 1, kind: ProcessKind = "train", ancestors: tuple[int, ...] = ()
) -> Owner:
    return Owner(
        pid,
        None,
        pid * 10,
        memory,
        "exact" if memory else "holder",
        kind,
        user="root",
        command=("python", f"job{pid}.py"),
        ancestors=ancestors,
        cpu_used=pid / 10,
        resident=pid,
        started_at=float(pid),
    )


def pids(rows: tuple[Row, ...]) -> list[int | None]:
    return [row.owner.pid for row in rows]


ROWS = owner_rows(
    [
        gpu(0, owners=(owner(3, 7), owner(1, None), HIDDEN)),
        gpu(1, CUDA_1, owners=(owner(2, 9, "webui"), owner(3, 8))),
    ]
)


def test_every_owner_of_every_card_is_a_row() -> None:
    assert pids(ROWS) == [3, 1, None, 2, 3]
    assert [row.gpu.index for row in ROWS] == [0, 0, 0, 1, 1]


@pytest.mark.parametrize(
    ("key", "expected", "reverse"),
    [
        ("gpu", [3, 1, None, 2, 3], [2, 3, 3, 1, None]),
        ("memory", [None, 2, 3, 3, 1], [3, 3, 2, None, 1]),
        ("pid", [1, 2, 3, 3, None], [3, 3, 2, 1, None]),
        ("kind", [3, 1, 3, 2, None], [2, 3, 1, 3, None]),
        ("cpu", [3, 3, 2, 1, None], [1, 2, 3, 3, None]),
        ("started", [3, 3, 2, 1, None], [1, 2, 3, 3, None]),
    ],
)
def test_sorted_by_a_column_with_the_unknown_last(
    key: SortKey, expected: list[int | None], reverse: list[int | None]
) -> None:
    assert pids(ordered(ROWS, key)) == expected
    assert pids(ordered(ROWS, key, reverse=True)) == reverse


@given(st.permutations(ROWS), st.sampled_from(SORT_KEYS), st.booleans())
def test_no_order_loses_a_row_or_depends_on_what_came_before(
    rows: list[Row], key: SortKey, reverse: bool
) -> None:
    assert ordered(rows, key, reverse=reverse) == ordered(ROWS, key, reverse=reverse)
    assert sorted(map(repr, ordered(rows, key))) == sorted(map(repr, ROWS))


def test_a_filter_needs_every_word_in_some_column() -> None:
    assert pids(matching(ROWS, "WebUI")) == [2]
    assert pids(matching(ROWS, "job3 gpu1")) == [3]
    assert pids(matching(ROWS, "hidden")) == [None]
    assert pids(matching(ROWS, "")) == pids(ROWS)
    assert matching(ROWS, "root nobody") == ()


def test_a_tree_skips_who_is_no_row() -> None:
    rows = owner_rows(
        [
            gpu(
                0,
                owners=(owner(20, 9, ancestors=(15, 10, 1)), owner(10, 5, ancestors=(1,)), owner(30), HIDDEN),
            ),
            gpu(
                1, CUDA_1, owners=(owner(21, 9, ancestors=(20, 15, 10, 1)), owner(20, 1, ancestors=(15, 10)))
            ),
        ]
    )
    assert [(row.owner.pid, row.gpu.index, row.depth) for row in tree(rows)] == [
        (10, 0, 0),
        (20, 0, 1),
        (21, 1, 2),
        (20, 1, 1),
        (30, 0, 0),
        (None, 0, 0),
    ]
    assert tree(()) == ()


@given(st.lists(st.tuples(st.integers(1, 8), st.lists(st.integers(1, 8), max_size=4)), max_size=8))
def test_a_tree_of_any_ancestors_ends_and_loses_nobody(shape: list[tuple[int, list[int]]]) -> None:
    """Real processes have no cycles; a table read while they come and go may show one."""
    rows = owner_rows([gpu(0, owners=tuple(owner(pid, ancestors=tuple(above)) for pid, above in shape))])
    shown = [replace(row, depth=0) for row in tree(rows)]
    assert sorted(map(repr, shown)) == sorted(map(repr, rows))


def job(name: str, state: str = "running") -> Job:
    found = Job(
        id=name, kind="training", state="running", ending=None, exit_code=None, failure=None, keeper=True,
        main_pid=5, members=(), config=None, output_dir=None, started_at=None, ended_at=None, gpus=(),
        peak_memory={}, ports=(), progress=None,
    )  # fmt: skip
    return replace(found, state="ended") if state == "ended" else found


def test_only_a_run_is_ever_offered_to_be_stopped() -> None:
    jobs = {"a": job("a"), "b": job("b", "ended")}
    assert action_for(rank(0, 5, 1.0, job="a"), jobs) == Action("stop", ("a",))
    assert action_for(rank(0, 5, 1.0, job="b"), jobs) == "not_a_job"
    assert action_for(rank(0, 5, 1.0, job=None), jobs) == "not_a_job"
    assert action_for(HIDDEN, jobs) == "hidden"
    assert action_for(replace(OUTSIDE, job="a"), jobs) == "host_pid"
    assert action_for(replace(rank(0, 5, 1.0, job="a"), state="gone"), jobs) == "gone"
    assert action_for(replace(owner(4, kind="monitor"), job="a"), jobs) == "monitor"
