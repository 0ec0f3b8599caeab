"""What OmegaConf, called as LLaMA-Factory calls it, makes of configs.

Runs inside the LLaMA-Factory environment. Standard input: a JSON list of ``{"text": yaml, "overrides":
[...]}``. Standard output: as many of ``{"values": {...}}`` or ``{"error": name}``.
"""

import json
import sys
import tempfile
from pathlib import Path

import yaml
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException


def read(text: str, overrides: list[str], folder: Path) -> dict[str, object]:
    file = folder / "config.yaml"
    file.write_text(text, encoding="utf-8")
    try:
        override_config = OmegaConf.from_cli(overrides)
        merged = OmegaConf.merge(OmegaConf.load(file.absolute()), override_config)
        return {"values": OmegaConf.to_container(merged)}
    except (OmegaConfBaseException, ValueError, TypeError, yaml.YAMLError) as error:
        return {"error": type(error).__name__}


if __name__ == "__main__":
    cases = json.load(sys.stdin)
    with tempfile.TemporaryDirectory() as scratch:
        results = [read(case["text"], case["overrides"], Path(scratch)) for case in cases]
    json.dump(results, sys.stdout)
