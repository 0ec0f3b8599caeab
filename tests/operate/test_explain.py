"""Files of real runs explained: where they came to, how they ended, and what nobody can tell from them."""

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.folders import RECORD
from support.training_logs import LOGS, PLAN_BLOCK, bar

from tui.facts.explained import ExplainedRun
from tui.facts.job import ExitStatus
from tui.jobs.folder import create_folder
from tui.jobs.samples import HEADER
from tui.operate.explain import explain

NOW = 1_800_000_000.0


def one(path: Path, now: float = NOW) -> tuple[ExplainedRun, set[str]]:
    """The only run of a path, and the codes of what was found."""
    document, errors = explain([path], now)
    assert not errors
    assert len(document.runs) == 1
    return document.runs[0], {finding.code for finding in document.findings}


@pytest.mark.parametrize(
    ("name", "ending", "step", "kind", "stage"),
    [
        ("v4-torchrun-2rank.log", "finished", 60, None, None),
        ("v4-resume-second.log", "finished", 90, None, None),
        ("v5-resume-second.log", "finished", 300, None, None),
        ("v4-finished-again.log", "untrained", 136, None, None),
        ("v4-single-interrupted.log", "stopped", 99, None, None),
        ("v4-torchrun-sigterm-agent.log", "stopped", 4, None, None),
        ("v4-oom-load.log", "failed", None, "cuda_oom", "load"),
        ("v4-oom-eval.log", "failed", 4, "cuda_oom", "eval"),
        ("v5-oom-backward.log", "failed", None, "cuda_oom", "backward"),
        ("v4-config-unknown-key.log", "failed", None, "config", "import"),
        ("v4-disk-full.log", "failed", 3, "disk", "forward"),
        ("v4-webui-running_log.txt", "partial", None, None, None),
    ],
)
def test_recorded_logs(name: str, ending: str, step: int | None, kind: str | None, stage: str | None) -> None:
    run, _ = one(LOGS / name)
    assert (run.state, run.ending) == ("ended", ending)
    assert run.progress is not None
    if step is not None:
        assert run.progress.step == step
    assert run.progress.eta is None
    assert (run.failure.kind, run.failure.stage) == (kind, stage) if run.failure else kind is None


def test_a_file_of_several_runs_is_several_runs() -> None:
    document, errors = explain([LOGS / "v4-trainer_log-resumed.jsonl"], NOW)
    assert not errors
    assert [run.id.rpartition("#")[2] for run in document.runs] == ["1", "2", "3"]
    assert [run.ending for run in document.runs] == ["unknown", "finished", "untrained"]
    assert [run.progress and run.progress.step for run in document.runs] == [45, 90, 90]
    curves = {curve.name: curve for curve in document.runs[1].curves}
    assert curves["loss"].points[-1] == (90.0, 4.9171)
    assert set(curves) == {"loss", "eval_loss", "learning_rate"}


def growing(folder: Path, name: str = "train.out") -> Path:
    path = folder / name
    path.write_bytes(PLAN_BLOCK + b"".join(bar(step, 2 * step) for step in range(1, 41)))
    return path


def test_a_log_that_was_just_written_belongs_to_a_run_that_goes_on(tmp_path: Path) -> None:
    path = growing(tmp_path)
    now = path.stat().st_mtime
    run, _ = one(path, now + 5)
    assert (run.state, run.ending) == ("running", None)
    assert run.progress is not None
    assert run.progress.eta == pytest.approx(60 * 2, abs=5)
    assert run.progress.age == pytest.approx(5, abs=0.1)
    old, _ = one(path, now + 86400)
    assert (old.state, old.ending, old.unknown["state"]) == (None, "unknown", "not_visible")
    assert old.progress is not None
    assert (old.progress.stage, old.progress.step, old.progress.eta) == ("train", 40, None)


def checkpoint(output: Path, step: int, *, complete: bool = True) -> Path:
    folder = output / f"checkpoint-{step}"
    folder.mkdir(parents=True)
    (folder / "adapter_model.safetensors").write_bytes(b"w" * 1000)
    if complete:
        (folder / "trainer_state.json").write_text(json.dumps({"global_step": step, "max_steps": 90}))
    return folder


def test_an_output_folder_with_its_checkpoints(tmp_path: Path) -> None:
    shutil.copy(LOGS / "v4-trainer_log.jsonl", tmp_path / "trainer_log.jsonl")
    checkpoint(tmp_path, 20)
    checkpoint(tmp_path, 40, complete=False)
    (tmp_path / "training_args.yaml").write_text(
        "stage: sft\noutput_dir: x\nmax_steps: 45\nsave_steps: 20\nbf16: true\n"
    )
    run, codes = one(tmp_path)
    assert run.source == "output"
    assert [(one.step, one.complete) for one in run.checkpoints] == [(20, True), (40, False)]
    assert run.checkpoints[0].size == 1000 + len('{"global_step": 20, "max_steps": 90}')
    assert run.resume is not None
    assert (run.resume.taken, run.resume.usable, run.resume.lost) == (40, 20, 25)
    assert "resume_incomplete" in codes
    assert run.config is not None
    assert run.coverage.save
    inside, _ = one(tmp_path / "checkpoint-20")
    assert inside.checkpoints == run.checkpoints


def history(folder: Path, step: int) -> None:
    records = [
        {"step": n, "epoch": n / 90, "loss": 5 - n / 90, "grad_norm": 0.5, "learning_rate": 1e-4}
        for n in range(5, step + 1, 5)
    ]
    state = {"global_step": step, "max_steps": 90, "log_history": [*records, {"step": "x"}, None]}
    folder.mkdir(exist_ok=True)
    (folder / "trainer_state.json").write_text(json.dumps(state))


def test_checkpoints_alone_tell_how_far_it_came(tmp_path: Path) -> None:
    for step in (20, 40):
        history(tmp_path / f"checkpoint-{step}", step)
    run, _ = one(tmp_path)
    assert run.progress is not None
    assert (run.progress.step, run.progress.total, run.ending) == (40, 90, "unknown")
    assert {curve.name for curve in run.curves} == {"loss", "learning_rate", "grad_norm"}
    history(tmp_path, 90)
    assert one(tmp_path)[0].ending == "finished"
    history(tmp_path, 60)
    run, codes = one(tmp_path)
    assert (run.ending, "run_partial" in codes) == ("partial", True)


def test_the_state_adds_gradient_norms_to_the_trainer_log(tmp_path: Path) -> None:
    lines = LOGS / "v4-trainer_log-resumed.jsonl"
    (tmp_path / "trainer_log.jsonl").write_text("".join(lines.read_text().splitlines(keepends=True)[:-1]))
    assert "grad_norm" not in {curve.name for curve in explain([tmp_path], NOW)[0].runs[-1].curves}
    history(tmp_path, 90)
    assert "grad_norm" in {curve.name for curve in explain([tmp_path], NOW)[0].runs[-1].curves}


def test_the_log_is_compared_to_the_config(tmp_path: Path) -> None:
    shutil.copy(LOGS / "v4-torchrun-2rank.log", tmp_path / "run.log")
    (tmp_path / "config.yaml").write_text(
        "stage: sft\noutput_dir: saves/ddp\nper_device_train_batch_size: 4\n"
        "gradient_accumulation_steps: 4\nbf16: true\ndisable_gradient_checkpointing: true\n"
    )
    document, _ = explain([tmp_path / "run.log"], NOW)
    facts = {fact.name: fact for fact in document.runs[0].settings}
    assert (facts["effective_batch"].log, facts["effective_batch"].config) == (16, 32)
    assert facts["data_parallel"].log == 2
    differing = {fact.name for fact in document.runs[0].settings if fact.differs}
    assert differing == {"effective_batch", "accumulation", "precision", "gradient_checkpointing"}
    named = {f.evidence["name"] for f in document.findings if f.code == "setting_differs"}
    assert named == differing


def test_the_deepspeed_file_that_is_really_used(tmp_path: Path) -> None:
    shutil.copy(LOGS / "v4-torchrun-2rank.log", tmp_path / "run.log")
    (tmp_path / "ds.json").write_text(
        json.dumps(
            {
                "train_micro_batch_size_per_gpu": 8,
                "zero_optimization": {"stage": 3, "offload_param": {"device": "cpu"}},
            }
        )
    )
    (tmp_path / "config.yaml").write_text("stage: sft\nper_device_train_batch_size: 4\ndeepspeed: ds.json\n")
    facts = {fact.name: fact.config for fact in one(tmp_path / "run.log")[0].settings}
    assert (facts["zero_stage"], facts["offload"]) == (3, "param")
    assert facts["batch_per_device"] == 8, "the file says so, whatever the training config says"


def test_a_run_that_failed_early_is_not_mixed_with_the_one_before_it(tmp_path: Path) -> None:
    shutil.copy(LOGS / "v4-trainer_log.jsonl", tmp_path / "trainer_log.jsonl")
    shutil.copy(LOGS / "v4-oom-load.log", tmp_path / "train.log")
    history(tmp_path, 90)
    run, _ = one(tmp_path)
    assert run.progress is not None
    assert (run.ending, run.progress.step, run.coverage.first_update) == ("failed", None, False)
    (tmp_path / "train.log").unlink()
    (tmp_path / "trainer_state.json").unlink()
    shutil.copy(LOGS / "v4-stdout.log", tmp_path / "train.log")
    run, _ = one(tmp_path)
    assert run.progress is not None
    assert (run.ending, run.progress.step) == ("finished", 45)


def test_a_job_folder_is_what_its_keeper_recorded(tmp_path: Path) -> None:
    folder = create_folder(tmp_path, "lora", 1_700_000_000.0, "3f2a77")
    shutil.copy(LOGS / "v4-oom-forward.log", folder.log)
    folder.write_record(
        replace(RECORD, state="ended", started_at=1000.0, ended_at=1100.0, exit=ExitStatus(code=1))
    )
    rows = (f"{at}.0,0,GPU-1,{used},99.0,300.0,sample\n" for at, used in ((1, 500), (2, 20000), (3, 21000)))
    (folder.path / "gpu-samples.csv").write_text(HEADER + "".join(rows) + "4.0,0,GPU-1")
    for path in (folder.path, folder.log):
        run, _ = one(path)
        memory = next(curve for curve in run.curves if curve.name == "gpu_memory")
        assert memory.points[-1] == (2.0, 21000.0 * (1 << 20))
        assert (run.source, run.state, run.ending, run.started_at) == ("job", "ended", "failed", 1000.0)
        assert run.failure is not None
        assert run.failure.stage == "forward"


def test_paths_that_tell_nothing_are_named_and_do_not_hide_the_others(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "empty").mkdir()
    (tmp_path / "trainer_log.jsonl").mkdir()
    (tmp_path / "lines.jsonl").write_text('{"current_steps": "many"}\n')
    (tmp_path / "weights").write_bytes(b"\x08\0\0\0" * 100)
    (tmp_path / "train.yaml").write_text("stage: sft\n")
    names = ("fifo", "empty", "none", "trainer_log.jsonl", "lines.jsonl", "weights", "train.yaml")
    paths = [tmp_path / name for name in names]
    document, errors = explain([*paths, Path("/dev/null"), LOGS / "v4-stderr.log"], NOW)
    assert [run.id for run in document.runs] == [str(LOGS / "v4-stderr.log")]
    assert [error.values["why"] for error in errors] == [
        "not_a_file",
        "nothing",
        "missing",
        *["nothing"] * 4,
        "not_a_file",
    ]


def test_an_empty_log_is_a_run_that_said_nothing(tmp_path: Path) -> None:
    (tmp_path / "train.log").touch()
    run, codes = one(tmp_path / "train.log")
    assert run.progress is not None
    assert (run.state, run.ending, run.progress.stage, codes) == (None, "unknown", "start", set())


@given(st.binary(max_size=300), st.sampled_from(["a.log", "trainer_log.jsonl", "running_log.txt", "x.json"]))
@settings(max_examples=100, deadline=None)
def test_any_bytes_in_any_file(tmp_path_factory: pytest.TempPathFactory, data: bytes, name: str) -> None:
    path = tmp_path_factory.mktemp("any") / name
    path.write_bytes(data)
    document, errors = explain([path, path.parent], NOW)
    assert len(document.runs) + len(errors) == 2
