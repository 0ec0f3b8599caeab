"""Short trials."""

from pathlib import Path
from typing import Any

from tui.llamafactory.config import TrainingConfig, apply_overrides, resolve
from tui.operate.trial import trial_overrides


def trial_of(cwd: Path, *, with_pauses: bool = False, **values: Any) -> TrainingConfig:
    config = resolve(TrainingConfig(values, cwd / "train.yaml"), cwd)
    return apply_overrides(config, trial_overrides(config, 9, with_pauses=with_pauses))


def test_few_steps_in_a_folder_of_its_own(tmp_path: Path) -> None:
    trial = trial_of(tmp_path, output_dir="saves/run", resume_from_checkpoint="x", max_steps=-1)
    assert trial.max_steps == 9
    assert trial.output_dir == tmp_path / "saves" / "run-trial-1"
    assert trial.values["resume_from_checkpoint"] is None
    assert "save_steps" not in trial.values


def test_a_second_trial_does_not_continue_the_first(tmp_path: Path) -> None:
    (tmp_path / "run-trial-1").mkdir()
    assert trial_of(tmp_path, output_dir="run").text("output_dir") == "run-trial-2"


def test_odd_names_stay_what_they_are(tmp_path: Path) -> None:
    for written in ('a: "b" #c', "中文", "run/", str(tmp_path / "abs"), "no"):
        trial = trial_of(tmp_path, output_dir=written)
        assert trial.output_dir is not None
        assert trial.output_dir.name == Path(written).name + "-trial-1"


def test_without_an_output_folder(tmp_path: Path) -> None:
    assert trial_of(tmp_path).output_dir == tmp_path / "trial-trial-1"


def test_an_evaluation_and_a_save_are_put_inside(tmp_path: Path) -> None:
    values = trial_of(tmp_path, with_pauses=True, val_size=0.1, save_strategy="no").values
    assert (values["eval_strategy"], values["eval_steps"]) == ("steps", 4)
    assert (values["save_strategy"], values["save_steps"]) == ("steps", 4)


def test_without_data_there_is_no_evaluation(tmp_path: Path) -> None:
    assert "eval_strategy" not in trial_of(tmp_path, with_pauses=True).values
