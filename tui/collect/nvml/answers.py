"""What one card answers: a figure, or ``None`` with a reason."""

from collections.abc import Callable
from typing import TypeVar

from tui.collect.nvml.binding import LOST, pynvml
from tui.facts.unknown import UnknownReason

T = TypeVar("T")

_REASONS: dict[int, UnknownReason] = {
    pynvml.NVML_ERROR_NOT_SUPPORTED: "not_supported",
    pynvml.NVML_ERROR_NO_PERMISSION: "no_permission",
    pynvml.NVML_ERROR_TIMEOUT: "timed_out",
}
# This driver is too old or too new for the call: an older or newer one may answer.
_NO_SUCH_CALL = (pynvml.NVML_ERROR_FUNCTION_NOT_FOUND, pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH)


def reason_of(code: int) -> UnknownReason:
    """Why a call gave no figure."""
    return _REASONS.get(code, "driver_error")


class Answers:
    """What one card answers; a value that cannot be had becomes ``None`` with a reason.

    ``any``: something could be read. ``fault``: the code of a call that failed and should not have.
    """

    def __init__(self) -> None:
        self.unknown: dict[str, UnknownReason] = {}
        self.any = False
        self.fault: int | None = None

    def ask(self, field: str, *calls: Callable[[], T], before: T | None = None) -> T | None:
        """What the first of ``calls`` says that this driver and this binding know.

        ``before`` is what the card said earlier of something that does not change.

        Raises:
            pynvml.NVMLError: the card is lost.
        """
        reason: UnknownReason = "not_supported"
        for call in calls:
            try:
                answer = call()
            except AttributeError:
                continue  # the binding is older than the call
            except UnicodeDecodeError:
                reason = "out_of_range"
                break
            except pynvml.NVMLError as error:
                if error.value in LOST:
                    raise
                if error.value in _NO_SUCH_CALL:
                    continue
                reason = reason_of(error.value)
                if reason == "driver_error":
                    self.fault = error.value
                break
            self.any = True
            return answer
        if before is None:
            self.unknown[field] = reason
        return before

    def within(self, field: str, value: int | None, lowest: int, highest: int | None) -> int | None:
        """``value``, or ``None`` with a reason where it cannot be true."""
        if value is None or (lowest <= value and (highest is None or value <= highest)):
            return value
        self.unknown[field] = "out_of_range"
        return None
