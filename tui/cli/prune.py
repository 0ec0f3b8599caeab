"""``jobs --prune [DAYS]``: shows the folders of jobs that are long over, then removes them."""

import argparse
import time

from tui.cli.confirm import confirm
from tui.cli.context import Context
from tui.cli.documents import PrunedFolder, PruneDocument, emit
from tui.facts.errors import EXIT_OK, EXIT_REFUSED, LlamaherdError
from tui.jobs.prune import OldFolder, find_old, remove
from tui.text import units
from tui.text.translate import tr, tr_plural

_DAY = 86_400.0


def prune(arguments: argparse.Namespace, context: Context) -> int:
    """Show them, ask, remove them."""
    if context.settings.readonly:
        raise LlamaherdError("readonly", exit_code=EXIT_REFUSED, deed="prune")
    old = find_old(context.roots, time.time() - arguments.prune * _DAY)
    lines = [_line(folder) for folder in old]
    if old and not arguments.yes:
        confirm("--prune", lines, _question(old))
    removed = tuple(folder for folder in old if remove(folder))
    if arguments.json:
        emit(
            PruneDocument(
                tuple(PrunedFolder(f.job.record.id, str(f.job.folder.path), f.size) for f in removed)
            )
        )
        return EXIT_OK
    if arguments.yes:
        print("".join(f"{line}\n" for line in lines), end="")
    size = units.size(sum(folder.size for folder in removed))
    print(
        tr_plural(
            "Removed {count} job folder ({size}).",
            "Removed {count} job folders ({size}).",
            len(removed),
            size=size,
        )
        if removed
        else tr("No job has been over for so long.")
    )
    return EXIT_OK


def _line(folder: OldFolder) -> str:
    age = units.duration(max(0.0, time.time() - folder.over_since))
    values = {"job": folder.job.record.id, "age": age, "size": units.size(folder.size)}
    return tr("{job}, over for {age}, {size}", **values)


def _question(old: tuple[OldFolder, ...]) -> str:
    size = units.size(sum(folder.size for folder in old))
    return tr_plural(
        "Remove {count} folder with its log ({size})? Weights and checkpoints are not touched.",
        "Remove {count} folders with their logs ({size})? Weights and checkpoints are not touched.",
        len(old),
        size=size,
    )
