"""Runs inside the training environment: how many tokens each sample of a data set becomes.

Started by ``lengths.py`` as a script, with a JSON request on standard input; it writes one JSON line for
each progress report and one at the end to standard output. Everything that decides a length is
LLaMA-Factory's own: its reader of ``dataset_info.json``, its conversion of rows, the model's tokenizer, its
template. Only the cut is left out, so that what would be cut can be counted.

Rows are streamed: nothing is written to a cache, and a large file is not loaded.
"""

import json
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any, TextIO, TypeAlias

Foreign: TypeAlias = Any
"""An object of a package that only the training environment has."""

_NEVER_CUT = 1 << 30
_LIST_LIMIT = 256 << 20  # a JSON list cannot be streamed: it is loaded whole, many times its size
_REPORT_EVERY = 0.5
_DETAIL = 500
_OWN_KEYS = ("packing", "neat_packing", "streaming", "max_samples", "cutoff_len")


class ProbeError(Exception):
    """Ends the probe; ``problem`` is a ``LengthProblem``."""

    def __init__(self, problem: str, detail: object = "") -> None:
        super().__init__(problem)
        self.problem = problem
        self.detail = f"{type(detail).__name__}: {detail}" if isinstance(detail, Exception) else str(detail)


def main() -> None:
    """Answer the request."""
    out = _claim_standard_output()
    # Who started this decides about an interrupt at the keyboard, and then asks for what is measured.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _cancelled)
    request = json.loads(sys.stdin.buffer.read())
    counts: Counter[int] = Counter()
    state = {"dropped": 0, "complete": False}
    began = time.monotonic()

    def report(**more: object) -> None:
        body = {"samples": sum(counts.values()), "seconds": time.monotonic() - began, **more}
        out.write(json.dumps(body) + "\n")
        out.flush()

    problem: dict[str, object] = {}
    try:
        _measure(request, counts, state, began, report)
    except ProbeError as error:
        problem = {"problem": error.problem, "detail": error.detail[:_DETAIL]}
    report(final=True, counts=sorted(counts.items()), **state, **problem)


def _cancelled(*_: object) -> None:
    raise ProbeError("cancelled")


def _claim_standard_output() -> TextIO:
    """Standard output for reports only: LLaMA-Factory logs to it, and now does so to standard error."""
    own = os.dup(1)
    os.dup2(2, 1)
    return os.fdopen(own, "w", encoding="utf-8")


def _measure(
    request: dict[str, Any],
    counts: "Counter[int]",
    state: dict[str, Any],
    began: float,
    report: Callable[..., None],
) -> None:
    stage = request["values"].get("stage", "sft")
    encode, rows = _prepare(request, stage)
    reported = time.monotonic()
    try:
        for number, row in enumerate(rows):
            now = time.monotonic()
            if number >= request["most_rows"]:
                return
            if now - began > request["seconds"]:
                raise ProbeError("timed_out")
            if now - reported > _REPORT_EVERY:
                reported = now
                report()
            lengths = encode(row)
            counts.update(lengths)
            state["dropped"] += not lengths
    except ProbeError:
        raise
    except Exception as error:
        raise ProbeError("dataset", error) from error
    if not counts:
        raise ProbeError("no_samples")
    state["complete"] = True


def _prepare(request: dict[str, Any], stage: str) -> tuple[Callable[[Foreign], list[int]], Iterator[Foreign]]:
    """What turns a converted row into lengths, and the converted rows."""
    try:
        from llamafactory.data import get_template_and_fix_tokenizer
        from llamafactory.data.loader import _get_dataset_processor
        from llamafactory.hparams import DataArguments, ModelArguments
        from llamafactory.model import load_tokenizer
    except Exception as error:
        raise ProbeError("environment", error) from error
    try:
        model_args = ModelArguments(**_known(ModelArguments, request["values"]))
        data_args = DataArguments(**_known(DataArguments, request["values"]))
        model_args.model_max_length = data_args.cutoff_len
        module = load_tokenizer(model_args)
        template = get_template_and_fix_tokenizer(module["tokenizer"], data_args)
        data_args.cutoff_len = _NEVER_CUT
        # Preference training by pairs is prepared as reward modelling is.
        processor = _get_dataset_processor(data_args, "rm" if stage == "dpo" else stage, template, **module)
    except Exception as error:
        raise ProbeError("tokenizer", error) from error
    encoders = {"sft": _sft, "pt": _pt, "rm": _pairs, "dpo": _pairs}
    if stage not in encoders:
        raise ProbeError("stage", stage)
    return encoders[stage](processor), _rows(data_args)


def _known(wanted: Foreign, values: dict[str, Any]) -> dict[str, Any]:
    names = {field.name for field in fields(wanted) if field.init}
    return {key: value for key, value in values.items() if key in names and key not in _OWN_KEYS}


def _sft(processor: Foreign) -> Callable[[Foreign], list[int]]:
    def lengths(row: Foreign) -> list[int]:
        if len(row["_prompt"]) % 2 != 1 or len(row["_response"]) != 1:
            return []
        ids, _ = processor._encode_data_example(**_parts(row))
        return [len(ids)]

    return lengths


def _pairs(processor: Foreign) -> Callable[[Foreign], list[int]]:
    def lengths(row: Foreign) -> list[int]:
        if len(row["_prompt"]) % 2 != 1 or len(row["_response"]) < 2:
            return []
        chosen, _, rejected, _ = processor._encode_data_example(**_parts(row))
        return [max(len(chosen), len(rejected))]

    return lengths


def _pt(processor: Foreign) -> Callable[[Foreign], list[int]]:
    tokenizer = processor.tokenizer

    def lengths(row: Foreign) -> list[int]:
        ids = tokenizer(row["_prompt"][0]["content"], add_special_tokens=False)["input_ids"]
        return [len(ids) + 1]  # and the mark of its end

    return lengths


def _parts(row: Foreign) -> dict[str, Any]:
    return {
        "prompt": row["_prompt"],
        "response": row["_response"],
        "system": row["_system"],
        "tools": row["_tools"],
        "images": row["_images"] or [],
        "videos": row["_videos"] or [],
        "audios": row["_audios"] or [],
    }


def _rows(data_args: Foreign) -> Iterator[Foreign]:
    """The rows of all data sets, as LLaMA-Factory converts them."""
    from datasets import load_dataset
    from llamafactory.data.converter import get_dataset_converter
    from llamafactory.data.parser import get_dataset_list
    from llamafactory.extras.constants import FILEEXT2TYPE

    for attributes in get_dataset_list(data_args.dataset, data_args.dataset_dir):
        if attributes.load_from != "file":
            raise ProbeError("dataset", f"{attributes.dataset_name} is not a local file")
        files = _files(Path(data_args.dataset_dir) / attributes.dataset_name)
        kind = FILEEXT2TYPE.get(files[0].suffix[1:])
        for file in files:
            if kind == "json" and file.stat().st_size > _LIST_LIMIT and _is_list(file):
                raise ProbeError("dataset_too_large", file.name)
        stream = load_dataset(kind, data_files=[str(file) for file in files], split="train", streaming=True)
        convert = get_dataset_converter(attributes.formatting, attributes, data_args)
        names = _columns(attributes)
        for row in stream:
            yield convert({**names, **row})


def _columns(attributes: Foreign) -> dict[str, None]:
    """Columns that a row may lack: a whole file would have filled them with nothing."""
    names = ("prompt", "query", "response", "history", "system", "tools", "chosen", "rejected", "kto_tag")
    return {column: None for name in names if (column := getattr(attributes, name, None))}


def _files(path: Path) -> list[Path]:
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    if not files or not files[0].exists():
        raise ProbeError("dataset", f"{path.name} is missing")
    return files


def _is_list(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4096).lstrip().startswith(b"[")


if __name__ == "__main__":
    # The folder of this file would come first among the places of modules, and shadow theirs.
    del sys.path[0]
    main()
