"""The one error that a person meets: what failed, on what, and what to do.

Codes are translated in ``tui.text``; ``values`` fill the sentence's placeholders.
"""

from typing import Literal

ErrorCode = Literal[
    "config_missing",
    "config_unreadable",
    "config_invalid",
    "config_not_mapping",
    "config_too_large",
    "override_invalid",
    "environment_not_found",
    "environment_unusable",
    "command_empty",
    "command_unsupported",
    "command_space_in_path",
    "cwd_missing",
    "output_not_writable",
    "state_not_writable",
    "job_unknown",
    "job_ambiguous",
    "job_unreadable",
    "job_ended",
    "not_ours",
    "protected",
    "stray_unknown",
    "pid_missing",
    "keeper_failed",
    "command_failed",
    "gpu_unknown",
    "stop_incomplete",
    "readonly",
    "confirm_needed",
    "not_confirmed",
    "settings_invalid",
    "start_blocked",
    "explain_nothing",
    "io_failed",
    "usage",
]

EXIT_OK, EXIT_FAILED, EXIT_USAGE, EXIT_REFUSED, EXIT_LEFT = 0, 1, 2, 3, 4


class LlamaherdError(Exception):
    """An error for a person. ``exit_code``: 1 failed, 2 usage, 3 refused for safety, 4 something is
    left.
    """

    def __init__(self, code: ErrorCode, *, exit_code: int = EXIT_FAILED, **values: object) -> None:
        super().__init__(code, values)
        self.code = code
        self.exit_code = exit_code
        self.values = values
