"""Settings read from source, as published releases and odd trees have it."""

from pathlib import Path

import pytest
from support.fake_prefix import make_prefix, site_of

from tui.llamafactory.fields import llamafactory_fields, read_fields, transformers_fields

OWN = {
    "model_args.py": (
        "class Base:\n    rank: int = 8\n\n\nclass ModelArguments(Base):\n    name: str | None = None\n"
    ),
    "data_args.py": "class DataArguments:\n    packing: Optional[bool] = None\n",
    "training_args.py": (
        "if x:\n    Base = McaArguments\nelse:\n    Base = Seq2SeqTrainingArguments\n\n\n"
        "class TrainingArguments(Base):\n    fp8: bool = False\n"
    ),
    "finetuning_args.py": (
        "class FinetuningArguments:\n    stage: Literal['pt', 'sft'] = 'sft'\n"
        "    hidden: int = field(init=False)\n    NAME: ClassVar[str] = ''\n    rate: float | None = None\n"
    ),
    "generating_args.py": "class GeneratingArguments:\n    top_p: float = 0.7\n",
}
INHERITED = {
    "training_args.py": "class TrainingArguments:\n    eval_strategy: Union[IntervalStrategy, str] = 'no'\n",
    "training_args_seq2seq.py": (
        "class Seq2SeqTrainingArguments(TrainingArguments):\n    beams: Optional[int] = None\n"
    ),
}


@pytest.fixture
def site(tmp_path: Path) -> Path:
    site = site_of(make_prefix(tmp_path / "env"))
    for folder, files in (("llamafactory/hparams", OWN), ("transformers", INHERITED)):
        (site / folder).mkdir(parents=True)
        for name, text in files.items():
            (site / folder / name).write_text(text)
    return site


def test_all_five_groups_and_what_they_inherit(site: Path) -> None:
    assert read_fields([site]) == {
        "rank": "whole",
        "name": "other",
        "packing": "flag",
        "fp8": "flag",
        "stage": "word",
        "rate": "number",
        "top_p": "number",
        "eval_strategy": "word",
        "beams": "whole",
    }


def test_what_cannot_be_read_is_not_half_known(site: Path) -> None:
    (site / "llamafactory" / "hparams" / "data_args.py").write_text("class DataArguments(:\n")
    assert llamafactory_fields(site / "llamafactory") == {}
    assert read_fields([site]) is None
    (site / "transformers" / "training_args.py").unlink()
    assert transformers_fields(site / "transformers") == {"beams": "whole"}
    assert read_fields([site]) is None
    assert read_fields([]) is None


def test_a_class_that_inherits_from_itself_ends(site: Path) -> None:
    path = site / "llamafactory" / "hparams" / "data_args.py"
    path.write_text("class DataArguments(DataArguments):\n    a: int = 1\n")
    assert "a" in llamafactory_fields(site / "llamafactory")


def test_a_changed_file_is_read_again(site: Path) -> None:
    path = site / "llamafactory" / "hparams" / "data_args.py"
    assert "more" not in llamafactory_fields(site / "llamafactory")
    path.write_text("class DataArguments:\n    packing: bool = True\n    more: int = 1\n")
    assert "more" in llamafactory_fields(site / "llamafactory")
