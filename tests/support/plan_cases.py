"""Small trainings of many shapes, and what real LLaMA-Factory printed as its plan for each.

``tests/data/plans/cases.json`` holds the cases and what was recorded with a version of transformers before
rounding changed and one after it; ``tests/bench/estimate.py --record`` makes the newer recording again.
"""

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CASES_FILE = Path(__file__).parent.parent / "data" / "plans" / "cases.json"


@dataclass(frozen=True)
class PlanCase:
    """``datasets``: name to ``{rows, format, broken, entry}``; ``printed``: the plan that was printed with
    this version of ``transformers``.
    """

    name: str
    values: dict[str, Any]
    datasets: dict[str, dict[str, Any]]
    ranks: int
    transformers: str
    printed: dict[str, int]


def load_cases() -> list[PlanCase]:
    """Every case with every version that it was recorded with."""
    document = json.loads(CASES_FILE.read_text())
    return [
        PlanCase(
            case["name"],
            case["values"],
            case["datasets"],
            case["ranks"],
            recording["transformers"],
            recording["plans"][case["name"]],
        )
        for recording in document["recordings"]
        for case in document["cases"]
    ]


def write_datasets(case: PlanCase, folder: Path) -> None:
    """The files of the case's datasets with their ``dataset_info.json`` in ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    info: dict[str, Any] = {}
    for name, made in case.datasets.items():
        suffix = str(made.get("format", "json"))
        rows = list(_rows(made))
        write_rows(folder / f"{name}.{suffix}", rows)
        info[name] = {"file_name": f"{name}.{suffix}", **made.get("entry", {})}
    (folder / "dataset_info.json").write_text(json.dumps(info))


def write_rows(path: Path, rows: list[dict[str, Any]]) -> None:
    """Rows in the format of the file's suffix; ``jsonl`` has a blank line between rows now and then."""
    if path.suffix == ".csv":
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    elif path.suffix == ".jsonl":
        lines = [json.dumps(row) + ("\n\n" if number % 10 == 9 else "\n") for number, row in enumerate(rows)]
        path.write_text("".join(lines))
    else:
        path.write_text(json.dumps(rows, indent=1))


def _rows(made: dict[str, Any]) -> Iterator[dict[str, Any]]:
    shape = made.get("shape", "alpaca")
    for number in range(made["rows"]):
        broken = number % 10 < made.get("broken", 0)
        question, answer = f'add "{number}"\nand {number + 1}', f"the sum is {2 * number + 1}"
        if shape == "sharegpt":
            turns = [{"from": "human", "value": question}, {"from": "gpt", "value": answer}]
            yield {"conversations": turns[:1] if broken else turns}
        elif shape == "ranking":
            rejected = None if broken else "no"
            yield {"instruction": question, "input": "", "chosen": answer, "rejected": rejected}
        elif shape == "text":
            yield {"text": f"{question} {answer}"}
        else:
            yield {"instruction": question, "input": "", "output": None if broken else answer}
