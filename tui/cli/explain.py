"""``explain PATH…``: what files say of a run, on any machine, without a GPU or a job."""

import argparse
import sys
import time

from tui.cli.documents import emit
from tui.cli.terminal import Terminal
from tui.facts.errors import EXIT_FAILED, EXIT_OK
from tui.operate.explain import explain as explain_paths
from tui.text.explain_report import explain_report
from tui.text.sentences import error_text


def explain(arguments: argparse.Namespace) -> int:
    """Explain every path; one that nothing can be said of is named, and does not hide the others."""
    now = time.time()
    document, errors = explain_paths(arguments.paths, now)
    if errors and not document.runs:
        raise errors[0]
    if arguments.json:
        emit(document)
    elif document.runs:
        terminal = Terminal.of_stdout(ascii=arguments.ascii)
        print(explain_report(document, now, terminal.width, terminal.colour, terminal.ascii, arguments.curve))
    for error in errors:
        message, hint = error_text(error)
        sys.stderr.write(f"{message} {hint}\n")
    return EXIT_FAILED if errors else EXIT_OK
