"""Runs inside the LLaMA-Factory environment: the lengths of the samples that it makes itself of the data set
of the config named by its argument, as JSON on the last line.
"""

import json
import sys
from pathlib import Path

import yaml
from llamafactory.data import get_dataset, get_template_and_fix_tokenizer
from llamafactory.hparams import get_train_args
from llamafactory.model import load_tokenizer


def main(config: Path) -> None:
    model, data, training, finetuning, _ = get_train_args(yaml.safe_load(config.read_text()))
    module = load_tokenizer(model)
    template = get_template_and_fix_tokenizer(module["tokenizer"], data)
    stage = "rm" if finetuning.stage == "dpo" else finetuning.stage
    dataset = get_dataset(template, model, data, training, stage=stage, **module)["train_dataset"]
    print(json.dumps(sorted(len(ids) for ids in dataset["input_ids"])))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
