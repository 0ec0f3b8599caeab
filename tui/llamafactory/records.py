"""Log records of LLaMA-Factory and transformers inside a line, also several glued together.

Three formats of one thing: ``[INFO|trainer.py:2519] 2026-11-29 14:44:06,472 >> text`` (transformers),
``[INFO|2026-11-29 14:44:00] llamafactory.data.loader:144 >> text`` (LLaMA-Factory) and
``[INFO|2026-11-29 14:57:05] trainer.py:2519 >> text`` (the WebUI's running_log.txt).
Trainer's markers count only inside a record, so that the same words in somebody's data do not.
"""

import re
from dataclasses import dataclass

_HEAD = re.compile(r"\[([A-Z]{4,8})\|([^\]\[]{1,120})\] ?([^>\[]{0,160}?)>>(?: |$)")


@dataclass(frozen=True, slots=True)
class Record:
    """One record. ``head`` holds its clock text; an empty ``message`` means that it goes on in the next
    line.
    """

    level: str
    head: str
    message: str


def split_records(line: str) -> tuple[str, list[Record]]:
    """What stands before the first record, and the records of the line."""
    if ">>" not in line:
        return line, []
    heads = list(_HEAD.finditer(line))
    if not heads:
        return line, []
    ends = [head.start() for head in heads[1:]] + [len(line)]
    records = [
        Record(head[1], f"{head[2]} {head[3]}", line[head.end() : end].rstrip())
        for head, end in zip(heads, ends, strict=True)
    ]
    return line[: heads[0].start()], records
