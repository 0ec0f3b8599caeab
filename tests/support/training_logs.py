"""The recorded console logs, and what a parser makes of them."""

from pathlib import Path

from tui.facts.training import RunLog
from tui.llamafactory.console import ConsoleParser

LOGS = Path(__file__).parent.parent / "data" / "logs"


def log_bytes(name: str) -> bytes:
    """One recording; ``.log`` is added to a name without ending."""
    return (LOGS / (name if "." in name else f"{name}.log")).read_bytes()


def facts_of(data: bytes, *, at: float = 1000.0, piece: int | None = None) -> RunLog:
    """What a parser knows after these bytes, given at once or in pieces of this many bytes."""
    parser = ConsoleParser()
    for start in range(0, len(data), piece or max(1, len(data))):
        parser.feed(data[start : start + piece] if piece else data, at)
    return parser.facts()


PLAN_BLOCK = (
    b"[INFO|trainer.py:2519] 2026-11-29 14:44:06,472 >> ***** Running training *****\n"
    b"[INFO|trainer.py:2520] 2026-11-29 14:44:06,472 >>   Num examples = 4,000\n"
    b"[INFO|trainer.py:2521] 2026-11-29 14:44:06,472 >>   Num Epochs = 1\n"
    b"[INFO|trainer.py:2525] 2026-11-29 14:44:06,472 >>   Total train batch size "
    b"(w. parallel, distributed & accumulation) = 40\n"
    b"[INFO|trainer.py:2527] 2026-11-29 14:44:06,472 >>   Total optimization steps = 100\n"
)
"""A plan of 100 steps."""


def bar(done: int, elapsed: int, total: int = 100, rate: str = "2.00s/it") -> bytes:
    """A bar as tqdm draws it, with the carriage return before it."""
    clock = f"{elapsed // 60:02d}:{elapsed % 60:02d}"
    return f"\r{100 * done // total:3d}%|{'█' * 3:10}| {done}/{total} [{clock}<01:00,  {rate}]".encode()
