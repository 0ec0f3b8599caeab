"""Starting, listing, finding and asking, as a front end does."""

import ast
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from support.folders import RECORD
from support.jobs import Yard
from support.waiting import wait_until

from tui.facts.errors import LlamaherdError
from tui.jobs.client import (
    JOB_FOLDER,
    FoundJob,
    JobSpec,
    UnreadableJob,
    find_job,
    list_jobs,
    request_stop,
    start_job,
    wait_stopped,
)
from tui.jobs.folder import JobFolder, create_folder


def folder(root: Path, name: str, created_at: float = 1.0) -> JobFolder:
    made = JobFolder(root / "jobs" / name)
    made.path.mkdir(parents=True)
    made.write_record(replace(RECORD, id=name, created_at=created_at, state="ended"))
    return made


def test_a_started_job_is_running_and_found(jobs: Yard) -> None:
    job = jobs.start("sleeper")
    record = job.found.record
    assert record.state == "running"
    assert record.main is not None
    assert find_job([jobs.root], record.id[:-2]) == FoundJob(job.found.folder, job.record())
    assert list_jobs([jobs.path / "missing", jobs.root]) == (FoundJob(job.found.folder, job.record()),)


def test_secrets_reach_the_command_and_no_file_of_the_job(jobs: Yard, tmp_path: Path) -> None:
    secret, other, inherited = ("hf_" + letter * 30 for letter in "abc")
    told = tmp_path / "told"
    code = (
        "import os, sys; told = (sys.argv[2:], os.environ['HF_TOKEN'], os.environ['API_KEY']);"
        "open(sys.argv[1], 'w').write(repr(told))"
    )
    spec = JobSpec(
        kind="training",
        command=(sys.executable, "-c", code, str(told), "--hf_hub_token", secret, f"token={secret}"),
        cwd="/",
        environ={"API_KEY": inherited},
        environment={"HF_TOKEN": other},
    )
    found = start_job(spec, tmp_path / "state")
    wait_until(lambda: found.folder.read_record().state == "ended", 20, "the end")
    arguments, first, second = ast.literal_eval(told.read_text())
    assert (arguments[1], first, second) == (secret, other, inherited)
    stored = b"".join(path.read_bytes() for path in found.folder.path.rglob("*") if path.is_file())
    for text in (secret, other, inherited):
        assert text.encode() not in stored
    assert "--hf_hub_token" in found.folder.read_record().command


def test_any_argument_arrives_as_it_was(tmp_path: Path) -> None:
    odd = ("", "a\nb", "训练", "\udcff", "'\"", "{}")
    told = tmp_path / "told"
    code = "import sys; open(sys.argv[1], 'w').write(ascii(sys.argv[2:]))"
    found = start_job(JobSpec("training", (sys.executable, "-c", code, str(told), *odd), "/", {}), tmp_path)
    wait_until(lambda: found.folder.read_record().state == "ended", 20, "the end")
    assert tuple(ast.literal_eval(told.read_text())) == odd


def test_command_and_variables_may_name_the_job_folder(tmp_path: Path) -> None:
    spec = JobSpec(
        kind="training",
        command=("/bin/cat", f"{JOB_FOLDER}/config.yaml"),
        cwd="/",
        environ={},
        environment={"WORKDIR": JOB_FOLDER},
        config="/x/lora sft.yaml",
        config_text="stage: sft # 训练\n",
    )
    found = start_job(spec, tmp_path)
    record = wait_stopped(found.folder, lambda _: None, time.monotonic() + 10)
    assert found.folder.log.read_text() == spec.config_text
    assert record.command == ("/bin/cat", str(found.folder.config))
    assert record.environment["WORKDIR"] == str(found.folder.path)
    assert "-lora-sft-" in record.id
    assert record.config == spec.config
    assert len(record.config_hash or "") == 64
    assert found.folder.config.stat().st_mode & 0o777 == 0o600


def test_nothing_is_started_without_a_command_or_a_place(tmp_path: Path) -> None:
    with pytest.raises(LlamaherdError) as empty:
        start_job(JobSpec("training", (), "/", {}), tmp_path)
    assert (empty.value.code, empty.value.exit_code) == ("command_empty", 2)
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(LlamaherdError) as blocked:
        start_job(JobSpec("training", ("true",), "/", {}), file)
    assert blocked.value.code == "state_not_writable"


def test_a_bad_folder_is_named_and_the_others_are_listed(tmp_path: Path) -> None:
    second, first = folder(tmp_path, "b", 2.0), folder(tmp_path, "c", 1.0)
    bad = folder(tmp_path, "a")
    bad.record.write_bytes(bad.record.read_bytes()[:100])
    foreign = folder(tmp_path, "d")
    foreign.record.write_bytes(b'{"schema": 99}')
    (tmp_path / "jobs" / "stray-file").touch()
    *found, one, two = list_jobs([tmp_path])
    assert [job.folder for job in found if isinstance(job, FoundJob)] == [first, second]
    assert isinstance(one, UnreadableJob)
    assert isinstance(two, UnreadableJob)
    assert (one.path, two.path) == (bad.path, foreign.path)
    assert "not JSON" in one.reason
    assert two.reason == "schema 99, not 1"


def test_a_prefix_finds_one_job_or_says_why_not(tmp_path: Path) -> None:
    folder(tmp_path, "2026-a")
    folder(tmp_path, "2026-ab")
    assert find_job([tmp_path], "2026-a").record.id == "2026-a"
    assert find_job([tmp_path], "2026-ab").record.id == "2026-ab"
    for prefix, code in (("2026", "job_ambiguous"), ("x", "job_unknown"), ("", "job_unknown")):
        with pytest.raises(LlamaherdError) as refused:
            find_job([tmp_path], prefix)
        assert (refused.value.code, refused.value.exit_code) == (code, 2)


def test_a_job_that_is_over_cannot_be_stopped(tmp_path: Path) -> None:
    ended = folder(tmp_path, "x")
    with pytest.raises(LlamaherdError) as refused:
        request_stop(ended, "stop")
    assert refused.value.code == "job_ended"


def test_waiting_reports_every_change_and_ends_at_its_deadline(jobs: Yard) -> None:
    job = jobs.start("stubborn")
    began = time.monotonic()
    record = wait_stopped(job.found.folder, lambda _: None, began + 0.3)
    assert record.state == "running"
    assert time.monotonic() - began < 5
    states: list[str] = []
    request_stop(job.found.folder, "stop")
    wait_stopped(job.found.folder, lambda record: states.append(record.state), began + 20)
    assert list(dict.fromkeys(states)) in (["running", "stopping", "ended"], ["stopping", "ended"])


def test_a_fresh_folder_whose_keeper_is_about_to_start_is_not_adopted(tmp_path: Path) -> None:
    made = create_folder(tmp_path, "x", time.time(), "abcd")
    made.write_record(replace(RECORD, created_at=time.time()))
    assert wait_stopped(made, lambda _: None, time.monotonic()).state == "starting"
    assert not made.is_kept()
    assert made.requests() == frozenset()
