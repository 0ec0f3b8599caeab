"""What a row of the owners table says, whatever is known of the owner."""

from dataclasses import replace

import pytest
from rich.cells import cell_len
from support.recording import gpu, hidden, owner

from tui.app.widgets.owners import owner_line, owner_words


def text(cells: int, **changes: object) -> str:
    return "".join(span.text for span in owner_line(gpu(), replace(owner(4321, 5 << 30), **changes), cells))  # type: ignore[arg-type]  # the names are those of Owner


def test_a_process_says_its_command_without_its_secrets() -> None:
    row = text(160, command=("/usr/bin/python", "serve.py", "--api-key", "sk-abcdefghijklmnopqrstuvwxyz"))
    assert "python serve.py --api-key ***" in row


def test_memory_of_nobody_says_so() -> None:
    assert owner_words(hidden(1 << 30)) == "no visible process explains this memory"


def test_a_pid_of_the_host_is_no_pid_of_ours() -> None:
    row = text(160, pid=None, host_pid=99, command=())
    assert "PID 99 of the host" in row
    assert " - " in row.split("5.0 GiB")[0] + " "


def test_a_size_that_is_unknown_is_not_zero() -> None:
    assert " - " in text(160, memory=None)
    assert "0 B" not in text(160, memory=None)


@pytest.mark.parametrize("state", ["zombie", "disk_wait", "stopped"])
def test_an_unusual_state_is_said(state: str) -> None:
    assert text(160, state=state) != text(160)


@pytest.mark.parametrize("cells", [20, 58, 76, 84, 100, 156])
def test_a_row_never_is_wider_than_its_place(cells: int) -> None:
    assert cell_len(text(cells, command=("python", "训练" * 100))) <= cells
