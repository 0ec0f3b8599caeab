"""Trainings that ran, beside what was estimated for them."""

import json
import stat
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from support.fake_prefix import make_prefix
from support.folders import RECORD
from support.measured_peaks import MODELS
from support.samples import gpu

from tui.facts.memory import ByteRange, Calibration
from tui.jobs.folder import JobFolder
from tui.jobs.roots import jobs_folder
from tui.jobs.samples import write_peaks
from tui.operate.calibration import NAME, learn, read_calibrations, remember

CARD = "GPU-1"
GIB = 1 << 30
ENTRY = Calibration("j", "m", "V100", {"torch": "2.5"}, "lora", 100, ByteRange(1, 2), ByteRange(2, 4), 3, 5.0)


def ended_job(root: Path, tmp_path: Path, name: str, peak: int | None, **values: object) -> Path:
    """The folder of a job that has ended, with the peak that its sampler saw."""
    prefix = tmp_path / "env"
    if not prefix.exists():
        make_prefix(prefix, torch="2.5.1", transformers="4.57.1")
    folder = jobs_folder(root) / name
    folder.mkdir(parents=True)
    config = {"model_name_or_path": str(MODELS / "Qwen3-0.6B"), "fp16": True, "cutoff_len": 512, **values}
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    job = JobFolder(folder)
    job.write_record(
        replace(
            RECORD,
            id=name,
            command=(str(prefix / "bin" / "llamafactory-cli"), "train"),
            cwd=str(tmp_path),
            state="ended",
            gpus=(CARD,),
            ended_at=9.0,
        )
    )
    if peak is not None:
        assert write_peaks(folder, {CARD: peak})
    return folder


def test_an_ended_training_is_compared_once(tmp_path: Path) -> None:
    root = tmp_path / "state"
    ended_job(root, tmp_path, "a", 3 * GIB)
    cards = [replace(gpu(uuid=CARD), name="Tesla V100")]
    (entry,) = learn([root], cards, {})
    assert (entry.job, entry.model, entry.card) == ("a", "Qwen3-0.6B", "Tesla V100")
    assert (entry.measured, entry.measured_at, entry.method) == (3 * GIB, 9.0, "lora")
    assert entry.versions == {"torch": "2.5.1", "transformers": "4.57.1", "llamafactory": "0.9.5"}
    assert entry.needed.low > GIB
    assert read_calibrations([root]) == (entry,)
    (jobs_folder(root) / "a" / "config.yaml").unlink()
    assert learn([root], cards, {}) == (entry,), "kept after the job's folder has gone"


def test_without_a_peak_or_a_model_there_is_nothing_to_compare(tmp_path: Path) -> None:
    root = tmp_path / "state"
    ended_job(root, tmp_path, "a", None)
    ended_job(root, tmp_path, "b", GIB, model_name_or_path="not/here")
    assert learn([root], [gpu(uuid=CARD)], {}) == ()
    assert learn([root], [], {}) == ()
    assert not (root / NAME).exists()


def test_entries_replace_those_of_the_same_job_and_are_private(tmp_path: Path) -> None:
    remember(tmp_path, [ENTRY])
    remember(tmp_path, [replace(ENTRY, measured=7), replace(ENTRY, job="k")])
    assert {entry.job: entry.measured for entry in read_calibrations([tmp_path])} == {"j": 7, "k": 3}
    assert stat.S_IMODE((tmp_path / NAME).stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == [NAME]


def test_only_the_newest_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui.operate.calibration._KEPT", 3)
    remember(tmp_path, [replace(ENTRY, job=str(number), measured_at=float(number)) for number in range(9)])
    assert [entry.job for entry in read_calibrations([tmp_path])] == ["6", "7", "8"]


@pytest.mark.parametrize("text", ["", "{", "{}", "[1]", '[{"job": "x"}]', "[" * 10_000])
def test_a_file_that_cannot_be_read_is_as_good_as_none(tmp_path: Path, text: str) -> None:
    (tmp_path / NAME).write_text(text)
    assert read_calibrations([tmp_path, tmp_path / "none"]) == ()
    remember(tmp_path, [ENTRY])
    assert read_calibrations([tmp_path]) == (ENTRY,)


def test_impossible_figures_are_left_out(tmp_path: Path) -> None:
    remember(tmp_path, [ENTRY])
    content = json.loads((tmp_path / NAME).read_text())
    content[0]["needed"] = {"low": 5, "high": -1}
    (tmp_path / NAME).write_text(json.dumps(content))
    assert read_calibrations([tmp_path]) == ()


def test_a_folder_that_cannot_be_written_costs_only_the_memory_of_it(tmp_path: Path) -> None:
    remember(tmp_path / "missing", [ENTRY])
    assert read_calibrations([tmp_path / "missing"]) == ()
