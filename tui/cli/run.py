"""Runs one command line: language, dispatch, and errors as one sentence or one JSON document."""

import importlib
import io
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from tui.cli.screen import ScreenWishes
from tui.facts.errors import EXIT_FAILED, EXIT_OK, LlamaherdError

_COMMANDS = {
    "status": "tui.cli.look:status",
    "jobs": "tui.cli.look:jobs",
    "logs": "tui.cli.logs:logs",
    "explain": "tui.cli.explain:explain",
    "start": "tui.cli.act:start",
    "check": "tui.cli.check:check",
    "stop": "tui.cli.stop:stop",
    "sweep": "tui.cli.sweep:sweep",
}
"""Subcommand to its function; imported only when called, because imports are the start-up time."""

EXIT_INTERRUPTED = 130


def run(argv: Sequence[str], open_screen: Callable[[ScreenWishes], int]) -> int:
    """Run the command line ``argv`` (without the program's name) and give its exit code.

    0 well, 1 failed, 2 wrong usage, 3 refused for safety, 4 something is left.
    """
    from tui.text.translate import language_from, set_language

    _open_streams()
    set_language(language_from(os.environ, flag=_language_flag(argv)))
    try:
        code = _dispatch(argv, open_screen)
        sys.stdout.flush()
    except LlamaherdError as error:
        return _report(error, as_json="--json" in argv)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        _silence_output()  # the reader (a pager, head) has left, which is no error
        return EXIT_OK
    except OSError as error:
        # What can be understood better is met where it happens; this is mostly the output itself.
        _silence_output()
        return _report(LlamaherdError("io_failed", reason=str(error)), as_json=False)
    except SystemExit as leaving:  # argparse after --help and --version
        return leaving.code if isinstance(leaving.code, int) else EXIT_OK
    return code


def _open_streams() -> None:
    """Standard streams that were closed lead nowhere; what a stream cannot encode is replaced."""
    if sys.stdout is None:
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115  # for life
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115  # for life
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _silence_output() -> None:
    """What is still held back must not be written when the program ends: it would fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _dispatch(argv: Sequence[str], open_screen: Callable[[ScreenWishes], int]) -> int:
    from tui.cli.parser import parse

    arguments = parse(argv)
    if arguments.subcommand is None:
        from tui.cli.context import Context

        settings = Context.of(arguments).settings
        return open_screen(ScreenWishes.of(arguments, settings))
    module, _, function = _COMMANDS[arguments.subcommand].partition(":")
    code = getattr(importlib.import_module(module), function)(arguments)
    return code if isinstance(code, int) else EXIT_FAILED


def _language_flag(argv: Sequence[str]) -> str | None:
    """The language is needed before parsing, for the help texts themselves."""
    for index, word in enumerate(argv):
        if word == "--":
            return None
        if word == "--lang" and index + 1 < len(argv):
            return argv[index + 1]
        if word.startswith("--lang="):
            return word.partition("=")[2]
    return None


def _report(error: LlamaherdError, *, as_json: bool) -> int:
    from tui.text.sentences import error_text

    message, hint = error_text(error)
    if as_json:
        from tui.cli.documents import ErrorBody, ErrorDocument, emit

        emit(ErrorDocument(ErrorBody(error.code, message, hint)))
    else:
        sys.stderr.write(f"llamaherd: {message}\n" + (f"{hint}\n" if hint else ""))
    return error.exit_code
