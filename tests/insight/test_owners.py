"""The join of the driver's list with the local holders, in every regime of the driver."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.facts.machine import (
    CauseCode,
    Driver,
    DriverError,
    DriverErrorCode,
    DriverReading,
    Gpu,
    GpuReading,
    Holder,
    NvmlProcess,
    Owner,
    PidRegime,
    ProcessInfo,
    ProcessKind,
)
from tui.facts.unknown import Unknown
from tui.insight.owners import join, pairs_of, unexplained_floor

GIB, MIB = 1 << 30, 1 << 20
OF_A_PROCESS = ("user", "command", "cpu_used", "resident", "started_at")
Listed = Iterable[tuple[int, int | None]]


def card(
    listed: Listed | None,
    *,
    index: int = 0,
    minor: int | None = 0,
    used: int | None = 8 * GIB,
    reserved: int | None = 400 * MIB,
    unknown: Unknown | None = None,
) -> GpuReading:
    return GpuReading(
        index,
        minor,
        f"GPU-{index}",
        "NVIDIA GeForce RTX 4090",
        "ok",
        total=24 * GIB,
        used=used,
        reserved=reserved,
        free=None if used is None else 24 * GIB - used,
        processes=None if listed is None else tuple(NvmlProcess(pid, size) for pid, size in listed),
        unknown=unknown or {},
    )


def mapping(pid: int, *minors: int, start: int = 0) -> Holder:
    cards = frozenset(minors or (0,))
    return Holder(pid, start or pid * 10, cards, cards)


def opening(pid: int, *minors: int, inherited: bool = False) -> Holder:
    return Holder(pid, pid * 10, frozenset(minors or (0,)), inherited=inherited)


def process(pid: int, kind: ProcessKind = "train", rank: int | None = None) -> ProcessInfo:
    return ProcessInfo(pid, 1, pid * 10, "running", "root", ("python", "train.py"), kind, rank)


def joined(
    cards: Iterable[GpuReading],
    holders: Iterable[Holder] = (),
    *,
    kinds: Mapping[int, ProcessKind] | None = None,
    jobs: Mapping[int, str] | None = None,
    error: DriverErrorCode | None = None,
    ended: frozenset[int] = frozenset(),
) -> tuple[PidRegime, tuple[Gpu, ...]]:
    present = list(holders)
    processes = {
        holder.pid: process(holder.pid, (kinds or {}).get(holder.pid, "train")) for holder in present
    }
    driver = Driver("580.105.08", "13", error=None if error is None else DriverError(error))
    reading = DriverReading(driver, tuple(cards), age=0.3)
    result, gpus = join(reading, present, processes, jobs or {}, {}, ended)
    assert replace(result, pid_regime="unknown") == driver
    return result.pid_regime, gpus


Row = tuple[int | None, int | None, int | None, str]


def rows(gpu: Gpu) -> list[Row]:
    return [(owner.pid, owner.host_pid, owner.memory, owner.evidence) for owner in gpu.owners]


def test_own_pids_with_memory_are_exact() -> None:
    regime, (gpu,) = joined([card([(50, 7 * GIB), (60, GIB)])], [mapping(50), mapping(60)], jobs={50: "j1"})
    assert regime == "own_with_memory"
    assert rows(gpu) == [(50, None, 7 * GIB, "exact"), (60, None, GIB, "exact")]
    assert gpu.memory.unattributed == 0
    trainer = gpu.owners[0]
    assert (trainer.start, trainer.job, trainer.user, trainer.state) == (500, "j1", "root", "running")
    assert (trainer.command, trainer.kind, trainer.unknown) == (("python", "train.py"), "train", {})
    assert gpu.owners[1].job is None
    assert (gpu.age, gpu.peak_memory, gpu.name) == (0.3, 8 * GIB, "NVIDIA GeForce RTX 4090")


def test_a_pid_that_is_listed_twice_counts_once_with_its_larger_size() -> None:
    _, (gpu,) = joined([card([(50, GIB), (50, 3 * GIB), (50, None)])], [mapping(50)])
    assert rows(gpu) == [(50, None, 3 * GIB, "exact"), (None, None, 5 * GIB, "hidden")]
    assert gpu.memory.unattributed == 5 * GIB


def test_memory_that_nobody_explains_is_the_last_row_unless_it_is_what_a_driver_keeps() -> None:
    _, (gpu,) = joined([card([(50, 7 * GIB)], used=7 * GIB + 399 * MIB)], [mapping(50)])
    assert rows(gpu) == [(50, None, 7 * GIB, "exact")]
    assert gpu.memory.unattributed == 399 * MIB
    _, (gpu,) = joined([card([(50, GIB)], used=7 * GIB)], [mapping(50)])
    assert rows(gpu)[-1] == (None, None, 6 * GIB, "hidden")
    assert set(gpu.owners[-1].unknown.values()) == {"not_visible"}
    assert "pid" in gpu.owners[-1].unknown


@pytest.mark.parametrize(("reserved", "floor"), [(None, 1024), (0, 300), (400, 400)])
def test_a_driver_that_counts_its_reserve_as_used_gets_more_room(reserved: int | None, floor: int) -> None:
    assert unexplained_floor(None if reserved is None else reserved * MIB) == floor * MIB


def test_sizes_beyond_used_are_shown_as_they_are() -> None:
    _, (gpu,) = joined([card([(50, 6 * GIB), (60, 6 * GIB)])], [mapping(50), mapping(60)])
    assert [owner.memory for owner in gpu.owners] == [6 * GIB, 6 * GIB]
    assert gpu.memory.unattributed == 0


@pytest.mark.parametrize("size", [0, None])
def test_own_pid_without_memory_alone_on_the_card_is_the_sole_holder(size: int | None) -> None:
    regime, (gpu,) = joined([card([(50, size)])], [mapping(50), opening(51, inherited=True), opening(52)])
    assert regime == "own_without_memory"
    assert rows(gpu) == [(50, None, 8 * GIB, "sole_holder")]
    assert gpu.memory.unattributed == 0


def test_own_pids_without_memory_share_a_card_with_unknown_sizes() -> None:
    regime, (gpu,) = joined([card([(50, 0), (60, 0)])], [mapping(50), mapping(60)])
    assert regime == "own_without_memory"
    assert rows(gpu) == [
        (50, None, None, "holder"),
        (60, None, None, "holder"),
        (None, None, 8 * GIB, "hidden"),
    ]
    assert gpu.owners[0].unknown == {"memory": "driver_without_figure"}


def test_another_mapped_holder_forbids_to_call_one_the_sole_holder() -> None:
    _, (gpu,) = joined([card([(50, None)])], [mapping(50), mapping(60)])
    assert rows(gpu)[:2] == [(50, None, None, "holder"), (60, None, None, "holder")]


def test_a_sole_holder_of_a_card_without_figures_has_no_size() -> None:
    _, (gpu,) = joined(
        [card([(50, None)], used=None, unknown={"used": "not_supported", "total": "not_supported"})],
        [mapping(50)],
    )
    assert rows(gpu) == [(50, None, None, "holder")]
    assert gpu.memory.unattributed is None
    assert gpu.unknown == {
        "memory.used": "not_supported",
        "memory.total": "not_supported",
        "memory.unattributed": "not_supported",
        "peak_memory": "not_supported",
    }


def test_one_host_pid_and_one_holder_are_paired_and_labelled() -> None:
    regime, (gpu,) = joined([card([(914222, 7 * GIB)])], [mapping(50), opening(51, inherited=True)])
    assert regime == "host"
    assert rows(gpu)[0] == (50, 914222, 7 * GIB, "inferred")
    assert gpu.memory.unattributed == GIB


def test_torchrun_ranks_are_paired_card_by_card() -> None:
    cards = [card([(900 + n, 7 * GIB)], index=n, minor=3 + n) for n in range(4)]
    # Every rank opens every card and maps its own.
    everything = frozenset(range(3, 7))
    ranks = [Holder(50 + n, 500 + 10 * n, everything, frozenset({3 + n})) for n in range(4)]
    _, gpus = joined(cards, ranks)
    assert [(gpu.owners[0].pid, gpu.owners[0].host_pid) for gpu in gpus] == [
        (50 + n, 900 + n) for n in range(4)
    ]


def test_several_host_pids_stay_unpaired_beside_the_holders() -> None:
    regime, (gpu,) = joined([card([(901, 4 * GIB), (902, 3 * GIB)])], [mapping(50), mapping(60)])
    assert regime == "host"
    assert rows(gpu) == [
        (None, 901, 4 * GIB, "hidden"),
        (None, 902, 3 * GIB, "hidden"),
        (50, None, None, "holder"),
        (60, None, None, "holder"),
        (None, None, GIB, "hidden"),
    ]
    assert gpu.owners[0].unknown == dict.fromkeys(("pid", "start", *OF_A_PROCESS), "not_visible")
    assert gpu.owners[2].unknown == {"memory": "not_visible"}


def test_pairs_that_contradict_each_other_are_dropped() -> None:
    two = [card([(901, GIB)]), card([(901, GIB)], index=1, minor=1)]
    _, gpus = joined(two, [mapping(50, 0), mapping(60, 1)])
    assert [rows(gpu)[0] for gpu in gpus] == [(None, 901, GIB, "hidden")] * 2
    two = [card([(901, GIB)]), card([(902, GIB)], index=1, minor=1)]
    _, gpus = joined(two, [mapping(50, 0, 1)])
    assert [rows(gpu)[0] for gpu in gpus] == [(None, 901, GIB, "hidden"), (None, 902, GIB, "hidden")]


def test_pairs_are_kept_while_others_join_so_that_each_new_one_is_told_apart() -> None:
    known: dict[int, tuple[int, int]] = {}

    def look(listed: Listed, holders: Iterable[Holder]) -> list[Row]:
        reading = DriverReading(Driver(), (card(listed, used=24 * GIB),), age=0.0)
        _, gpus = join(reading, holders, {}, {}, {}, known_pairs=known)
        known.clear()
        known.update(pairs_of(gpus))
        return [row for row in rows(gpus[0]) if row[1] is not None or row[0] is not None]

    look([(901, 4 * GIB)], [mapping(50)])
    assert known == {901: (50, 500)}
    assert look([(901, 4 * GIB), (902, 3 * GIB)], [mapping(50), mapping(60)]) == [
        (50, 901, 4 * GIB, "inferred"),
        (60, 902, 3 * GIB, "inferred"),
    ]
    # Two that come at once cannot be told apart, those before them still can.
    four = [(901, 4 * GIB), (902, 3 * GIB), (903, 2 * GIB), (904, GIB)]
    holders = [mapping(pid) for pid in (50, 60, 70, 80)]
    assert [row[:2] for row in look(four, holders)] == [
        (50, 901), (60, 902), (None, 903), (None, 904), (70, None), (80, None),
    ]  # fmt: skip
    # The local PID was given to another process: nothing is known of that one.
    reborn = [mapping(50, start=7), mapping(60), mapping(70)]
    assert (60, 902, 3 * GIB, "inferred") in look(four[:2], reborn)
    assert known.keys() == {902}


def test_an_owner_says_what_it_uses_of_the_host_and_where_it_comes_from() -> None:
    info = replace(
        process(50, "notebook"),
        ppid=40,
        title="train.ipynb",
        cpu_used=1.5,
        resident=3 * GIB,
        started_at=1e9,
        unknown={"environment": "no_permission"},
    )
    processes = {50: info, 40: replace(process(40), ppid=7), 7: replace(process(7), ppid=7)}
    reading = DriverReading(Driver(), (card([(50, GIB)]),), age=0.0)
    _, (gpu,) = join(reading, [mapping(50)], processes, {}, {})
    owner = gpu.owners[0]
    assert (owner.title, owner.cpu_used, owner.resident, owner.started_at) == (
        "train.ipynb",
        1.5,
        3 * GIB,
        1e9,
    )
    assert owner.ancestors == (40, 7)
    assert owner.unknown == {}


def hidden_causes(
    *,
    listed: Listed = (),
    holders: Iterable[Holder] = (),
    processes: Iterable[ProcessInfo] = (),
    ended: frozenset[int] = frozenset(),
    used: int = 8 * GIB,
    reserved: int | None = 0,
) -> list[tuple[CauseCode, tuple[int, ...]]]:
    reading = DriverReading(Driver(), (card(listed, used=used, reserved=reserved),), age=0.0)
    everyone = {info.pid: info for info in processes}
    _, (gpu,) = join(reading, holders, everyone, {}, {}, ended)
    assert gpu.owners[-1].evidence == "hidden"
    return [(cause.code, cause.pids) for cause in gpu.owners[-1].causes]


def test_nothing_in_sight_is_said_only_when_nothing_is() -> None:
    assert hidden_causes() == [("nothing_visible", ())]
    others = [
        process(5),
        replace(process(6), state="disk_wait"),
        replace(process(7), state="zombie", threads=3),
    ]
    assert hidden_causes(processes=others) == [("nothing_visible", ())], "who holds no card is no suspect"


def test_causes_of_unexplained_memory_stand_in_the_order_of_looking() -> None:
    orphan = process(51, "data_worker")
    stuck = replace(process(52), ppid=9, state="disk_wait")
    leader = replace(process(53), ppid=9, state="zombie", threads=4)
    kernel = replace(process(54, "notebook"), ppid=9)
    plain = replace(process(55, "other"), ppid=9)
    holders = [opening(51, inherited=True), mapping(52), mapping(53), mapping(54), mapping(55)]
    assert hidden_causes(
        holders=holders, processes=[orphan, stuck, leader, kernel, plain], ended=frozenset({60})
    ) == [
        ("orphaned", (51,)),
        ("kernel_wait", (52,)),
        ("zombie_leader", (53,)),
        ("notebook", (54,)),
        ("just_ended", (60,)),
        ("unsized", (55,)),
    ]


def test_a_process_with_a_size_is_no_cause_of_what_is_left() -> None:
    info = replace(process(50), state="disk_wait")
    assert hidden_causes(listed=[(50, GIB)], holders=[mapping(50)], processes=[info]) == [
        ("nothing_visible", ())
    ]


def test_what_a_driver_keeps_and_counts_as_used_is_a_part_of_it() -> None:
    assert hidden_causes(reserved=None) == [("driver_reserve", ()), ("nothing_visible", ())]
    assert hidden_causes(reserved=None, holders=[mapping(55)], processes=[process(55, "other")]) == [
        ("unsized", (55,)),
        ("driver_reserve", ()),
    ]


def test_a_host_pid_equal_to_an_innocent_local_pid_never_becomes_an_owner() -> None:
    innocent = process(1423, "notebook")
    reading = DriverReading(Driver(), (card([(1423, 7 * GIB), (914223, GIB)]),), age=0.0)
    driver, (gpu,) = join(reading, [mapping(50)], {1423: innocent, 50: process(50)}, {1423: "j"}, {})
    assert driver.pid_regime == "host"
    assert all(owner.pid != 1423 for owner in gpu.owners)
    assert gpu.owners[0].host_pid == 1423
    assert (gpu.owners[0].command, gpu.owners[0].job, gpu.owners[0].user) == ((), None, None)


def test_a_holder_of_another_card_is_no_owner_of_this_one() -> None:
    regime, (gpu,) = joined([card([(50, GIB)])], [mapping(50, 1)])
    assert regime == "host"
    assert rows(gpu)[0] == (None, 50, GIB, "hidden")


def test_without_a_minor_number_any_card_proves_a_listed_pid_but_nothing_else() -> None:
    cards = [card([(50, GIB)], minor=None), card([], index=1, minor=None)]
    regime, gpus = joined(cards, [mapping(50, 4), mapping(60, 5)])
    assert regime == "own_with_memory"
    assert rows(gpus[0])[0] == (50, None, GIB, "exact")
    assert [owner.pid for owner in gpus[1].owners] == [None]
    _, (single,) = joined([card([], minor=None)], [mapping(60, 5)])
    assert rows(single)[0] == (60, None, None, "holder")


def test_an_empty_list_with_a_holder_names_it_and_keeps_the_gap() -> None:
    regime, (gpu,) = joined([card([], used=7325 * MIB)], [mapping(50)])
    assert regime == "empty"
    assert rows(gpu) == [(50, None, None, "holder"), (None, None, 7325 * MIB, "hidden")]
    assert gpu.memory.unattributed == 7325 * MIB


def test_an_empty_list_without_holders_is_one_gap() -> None:
    regime, (gpu,) = joined([card([], used=7325 * MIB)])
    assert regime == "empty"
    assert rows(gpu) == [(None, None, 7325 * MIB, "hidden")]


def test_an_idle_card_has_no_rows() -> None:
    _, (gpu,) = joined([card([], used=2 * MIB)], [opening(70)])
    assert gpu.owners == ()
    assert gpu.memory.unattributed == 2 * MIB


def test_a_list_that_fails_is_not_an_empty_list() -> None:
    regime, (gpu,) = joined([card(None, unknown={"processes": "timed_out"})], [mapping(50)])
    assert regime == "error"
    assert rows(gpu)[0] == (50, None, None, "holder")
    assert gpu.owners[0].unknown == {"memory": "timed_out"}
    assert gpu.unknown == {"owners": "timed_out"}
    regime, gpus = joined([card(None), card([(50, GIB)], index=1, minor=1)], [mapping(50, 1)])
    assert regime == "own_with_memory", "one card's failure is that card's"
    assert gpus[0].owners[-1].evidence == "hidden"


def test_who_only_opened_the_card_is_an_owner_only_as_the_last_explanation() -> None:
    _, (gpu,) = joined(
        [card([])], [opening(50), opening(60, inherited=True), opening(70)], kinds={70: "monitor"}
    )
    assert rows(gpu) == [(50, None, None, "holder"), (None, None, 8 * GIB, "hidden")]
    _, (gpu,) = joined([card([])], [opening(50), mapping(60)])
    assert [owner.pid for owner in gpu.owners] == [60, None]
    _, (gpu,) = joined([card([(40, 8 * GIB)])], [mapping(40), opening(50), opening(51, inherited=True)])
    assert [owner.pid for owner in gpu.owners] == [40]


def test_a_worker_that_inherited_a_handle_is_not_paired_with_a_host_pid() -> None:
    _, (gpu,) = joined([card([(901, GIB)])], [opening(51, inherited=True)])
    assert rows(gpu)[0] == (None, 901, GIB, "hidden")


def test_a_mapped_holder_that_the_driver_does_not_list_is_shown_beside() -> None:
    _, (gpu,) = joined([card([(50, 2 * GIB)])], [mapping(50), mapping(60)])
    assert rows(gpu) == [
        (50, None, 2 * GIB, "exact"),
        (60, None, None, "holder"),
        (None, None, 6 * GIB, "hidden"),
    ]


def test_a_process_that_has_just_ended_is_no_process_of_the_host() -> None:
    regime, (gpu,) = joined([card([(50, 7 * GIB)])], ended=frozenset({50}))
    assert regime == "empty"
    assert rows(gpu) == [(None, None, 8 * GIB, "hidden")]


def test_a_process_that_ended_while_it_was_read_keeps_its_row_without_a_name() -> None:
    reading = DriverReading(Driver(), (card([(50, 7 * GIB)]),), age=0.0)
    successor = replace(process(50), start=999)
    for processes in ({}, {50: successor}):
        _, (gpu,) = join(reading, [mapping(50)], processes, {50: "j"}, {})
        assert gpu.owners[0] == Owner(
            50,
            None,
            500,
            7 * GIB,
            "exact",
            "other",
            state="gone",
            unknown=dict.fromkeys(OF_A_PROCESS, "process_gone"),
        )


def test_last_good_cards_of_a_failing_driver_keep_their_living_owners_only() -> None:
    cards = [card([(50, 5 * GIB), (60, 2 * GIB)])]
    regime, (gpu,) = joined(cards, [mapping(50)], error="timed_out")
    assert regime == "error"
    assert rows(gpu) == [(50, None, 5 * GIB, "exact"), (None, None, 3 * GIB, "hidden")]


@pytest.mark.parametrize(
    ("error", "regime"),
    [
        ("library_missing", "no_gpu"),
        ("driver_not_loaded", "no_gpu"),
        ("no_device", "no_gpu"),
        ("version_mismatch", "error"),
        ("crashed", "error"),
    ],
)
def test_a_driver_without_cards(error: DriverErrorCode, regime: PidRegime) -> None:
    assert joined([], error=error) == (regime, ())


def test_no_reading_yet_is_unknown_and_no_card_is_no_gpu() -> None:
    assert join(DriverReading(Driver()), [], {}, {}, {})[0].pid_regime == "unknown"
    assert join(DriverReading(Driver(), age=1.0), [], {}, {}, {})[0].pid_regime == "no_gpu"


def test_a_lost_card_names_who_still_holds_it() -> None:
    lost = replace(card(None), state="lost", used=None, unknown={"used": "gpu_lost", "processes": "gpu_lost"})
    _, (gpu,) = joined([lost], [mapping(50)])
    assert gpu.state == "lost"
    assert rows(gpu) == [(50, None, None, "holder")]
    assert gpu.owners[0].unknown == {"memory": "gpu_lost"}


def test_the_peak_is_never_below_what_is_used_now() -> None:
    reading = DriverReading(Driver(), (card([]), card([], index=1)), age=0.0)
    _, gpus = join(reading, [], {}, {}, {"GPU-0": 12 * GIB, "GPU-1": GIB})
    assert [gpu.peak_memory for gpu in gpus] == [12 * GIB, 8 * GIB]


_PIDS = st.integers(1, 12)
_SIZES = st.none() | st.integers(0, 12 * GIB)


@st.composite
def machines(draw: st.DrawFn) -> tuple[DriverReading, list[Holder], dict[int, ProcessInfo]]:
    """Few PIDs, so that host PIDs, holders and innocent processes meet often."""
    minors = draw(st.lists(st.none() | st.integers(0, 3), min_size=1, max_size=3))
    cards = tuple(
        card(
            draw(st.none() | st.lists(st.tuples(_PIDS, _SIZES), max_size=5)),
            index=index,
            minor=minor,
            used=draw(st.none() | st.integers(0, 24 * GIB)),
            reserved=draw(st.none() | st.integers(0, GIB)),
        )
        for index, minor in enumerate(minors)
    )
    holders = []
    for pid in draw(st.sets(_PIDS, max_size=5)):
        held = draw(st.frozensets(st.integers(0, 3), min_size=1))
        mapped = frozenset(draw(st.sets(st.sampled_from(sorted(held)))))
        holders.append(Holder(pid, pid * 10, held, mapped, draw(st.booleans())))
    kinds: list[ProcessKind] = ["train", "monitor", "data_worker"]
    processes = {pid: process(pid, draw(st.sampled_from(kinds))) for pid in draw(st.sets(_PIDS))}
    error = draw(st.none() | st.just(DriverError("timed_out")))
    return DriverReading(Driver(error=error), cards, age=0.0), holders, processes


@given(machines(), st.dictionaries(_PIDS, st.tuples(_PIDS, st.integers(1, 12).map(lambda pid: pid * 10))))
def test_no_memory_counts_twice_and_only_holders_have_a_pid(
    machine: tuple[DriverReading, list[Holder], dict[int, ProcessInfo]],
    known: dict[int, tuple[int, int]],
) -> None:
    reading, holders, processes = machine
    jobs = dict.fromkeys(range(13), "job")
    _, gpus = join(reading, holders, processes, jobs, {}, known_pairs=known)
    starts = {holder.pid: holder for holder in holders}
    for before, gpu in zip(reading.gpus, gpus, strict=True):
        gaps = [owner for owner in gpu.owners if owner.pid is None and owner.host_pid is None]
        sizes = [owner.memory or 0 for owner in gpu.owners if owner not in gaps]
        pids = [owner.pid for owner in gpu.owners if owner.pid is not None]
        host_pids = [owner.host_pid for owner in gpu.owners if owner.host_pid is not None]
        assert len(set(pids)) == len(pids)
        assert len(set(host_pids)) == len(host_pids)
        for owner in gpu.owners:
            if owner.pid is None:
                assert owner.evidence == "hidden"
                assert (owner.job, owner.command, owner.start) == (None, (), None)
            else:
                holder = starts[owner.pid]
                assert owner.start == holder.start
                assert before.minor is None or before.minor in holder.minors
                assert owner.host_pid is None or owner.evidence == "inferred"
            assert (owner.memory is None) == ("memory" in owner.unknown)
            assert bool(owner.causes) == (owner in gaps)
            assert owner.memory != 0 or owner.evidence == "sole_holder"
        if before.used is None:
            assert gpu.memory.unattributed is None
            assert not gaps
        else:
            assert gpu.memory.unattributed == max(0, before.used - sum(sizes))
            assert [owner.memory for owner in gaps] in ([], [gpu.memory.unattributed])
            if sum(sizes) <= before.used:
                assert sum(sizes) + gpu.memory.unattributed == before.used
