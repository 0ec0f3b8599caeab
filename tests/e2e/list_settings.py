"""The names of all settings that a training config may have, as a JSON list on standard output.

Runs inside the LLaMA-Factory environment.
"""

import dataclasses
import json
import sys

from llamafactory.hparams import (
    DataArguments,
    FinetuningArguments,
    GeneratingArguments,
    ModelArguments,
    TrainingArguments,
)

if __name__ == "__main__":
    groups = (ModelArguments, DataArguments, TrainingArguments, FinetuningArguments, GeneratingArguments)
    names = {field.name for group in groups for field in dataclasses.fields(group) if field.init}
    json.dump(sorted(names), sys.stdout)
