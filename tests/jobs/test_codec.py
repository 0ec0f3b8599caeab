"""Records to JSON and back: nothing is lost, and nothing of a wrong shape gets in."""

import json
import signal
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.facts.job import ExitStatus, Identity, JobRecord, LadderStep, Member, StopReport
from tui.jobs.codec import MalformedError, record_from_json, record_to_json

MEMBER = Member(11, 5, "rank", "S", "python", "futex_wait")
FULL = JobRecord(
    id="20261129-170745-lora-3f2a",
    nonce="3f2a",
    kind="training",
    command=("llamafactory-cli", "train", "x.yaml", "a\nb", "\udcff", "训练"),
    cwd="/root",
    environment={"LLAMAHERD_JOB": "x"},
    config="x.yaml",
    config_hash="0" * 64,
    output_dir="/root/out",
    gpus=("GPU-1",),
    created_at=1.5,
    state="stuck",
    main=Identity("boot", 1, 11, 5),
    keeper=Identity("boot", 1, 10, 4),
    started_at=2.5,
    ended_at=3.0,
    exit=ExitStatus(signal=signal.SIGKILL),
    error="exec ENOENT x",
    members=(MEMBER,),
    stop=StopReport(
        1.0, "stop", (LadderStep("kill", 0.0, 1.0, (11,), 1, "forced"),), (MEMBER,), (80,), (0,), 2.0, True
    ),
    swept=(MEMBER,),
    adopted=1,
    oom_kills_start=0,
    oom_kills_end=1,
)


def test_a_record_survives_the_round() -> None:
    data = record_to_json(FULL)
    assert data.isascii()
    assert data.count(b"\n") == 1
    assert record_from_json(data) == FULL


def test_defaults_fill_what_an_older_writer_left_out() -> None:
    document = json.loads(record_to_json(FULL))
    del document["graces"], document["swept"]
    assert record_from_json(json.dumps(document).encode()) == replace(FULL, swept=())


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("schema",), 2, "schema 2, not 1"),
        (("schema",), "1", "schema '1', not 1"),
        (("state",), "paused", "record.state"),
        (("main", "pid"), "11", "record.main.pid"),
        (("main", "pid"), True, "record.main.pid"),
        (("members",), {}, "record.members"),
        (("members", 0), None, "record.members[0]"),
        (("members", 0, "role"), "boss", "record.members[0].role"),
        (("command", 1), 5, "record.command[1]"),
        (("environment", "A"), None, "record.environment.A"),
        (("stop", "steps", 0, "began"), "soon", "record.stop.steps[0].began"),
        (("surprise",), 1, "unknown field 'surprise'"),
        (("exit",), [], "record.exit"),
    ],
)
def test_a_wrong_shape_is_named_with_its_place(
    path: tuple[str | int, ...], value: object, message: str
) -> None:
    document = json.loads(record_to_json(FULL))
    place = document
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    with pytest.raises(MalformedError) as malformed:
        record_from_json(json.dumps(document).encode())
    assert message in str(malformed.value)


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"null", b"\xff", b"[" * 100_000, b'{"schema": 1}', b"1"])
def test_what_is_no_record_is_refused(data: bytes) -> None:
    with pytest.raises(MalformedError):
        record_from_json(data)


@given(st.integers(0, 2000), st.binary(max_size=3))
def test_torn_or_scribbled_records_are_refused_or_whole(at: int, noise: bytes) -> None:
    data = record_to_json(FULL)
    for damaged in (data[:at], data[:at] + noise + data[at + len(noise) :]):
        try:
            record = record_from_json(damaged)
        except MalformedError:
            continue
        assert isinstance(record, JobRecord)
