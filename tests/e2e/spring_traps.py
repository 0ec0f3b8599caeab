"""Feeds configs to real LLaMA-Factory, one after another in one process, and tells what each raised.

Runs inside the LLaMA-Factory environment. Standard input: a JSON list of ``[folder, config file]``. Last
line of standard output: a JSON list, per config the chain of errors as one text, or null where it ran.
"""

import json
import os
import resource
import sys

from llamafactory.train.tuner import run_exp


def spring(folder: str, config: str) -> "str | None":
    os.chdir(folder)
    sys.argv = ["launcher.py", config]
    try:
        run_exp()
    except BaseException as error:  # noqa: BLE001  # whatever it raises is the answer
        chain: list[str] = []
        cause: BaseException | None = error
        while cause is not None:
            chain.append(f"{type(cause).__name__}: {cause}")
            cause = cause.__cause__ or cause.__context__
        return "\n".join(chain)
    return None


MEMORY = 8 << 30
"""Bytes: a trap that makes a large model of nothing shall fail, not fill the machine."""

if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    answers = [spring(folder, config) for folder, config in json.load(sys.stdin)]
    print()
    print(json.dumps(answers))
