"""What a log, a ``trainer_log.jsonl``, an output folder or a job folder says of its run.

No GPU, no process and no job are needed, and nothing is written.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from tui.facts.errors import LlamaherdError
from tui.facts.explained import ExplainDocument, ExplainedRun
from tui.facts.finding import Finding
from tui.facts.job import JobState
from tui.facts.training import RunLog
from tui.facts.unknown import UnknownReason
from tui.insight.coverage import coverage
from tui.insight.curves import fitted, metric_curves
from tui.insight.eta import progress
from tui.insight.files_ending import ending_of_files
from tui.insight.loss import loss_findings
from tui.insight.resume import resume, resume_findings
from tui.insight.settings_facts import setting_facts, setting_findings
from tui.insight.trouble import log_findings
from tui.llamafactory.schedule import schedule
from tui.operate.deepspeed_settings import deepspeed_settings
from tui.operate.run_files import JOB_RECORD, RunFiles, read_run

_POINTS = 400
_ALIVE = 120.0
"""Seconds: a file that was written to this recently belongs to a run that goes on, unless it ended."""


def explain(
    paths: Sequence[Path], now: float | None = None
) -> tuple[ExplainDocument, tuple[LlamaherdError, ...]]:
    """Explain every path; an error for each that nothing can be said of. ``now`` is epoch seconds."""
    now = time.time() if now is None else now
    runs: list[ExplainedRun] = []
    findings: list[Finding] = []
    errors: list[LlamaherdError] = []
    for path in paths:
        try:
            for run, found in _explained(path, now):
                runs.append(run)
                findings += (*found, *_ending_findings(run))
        except LlamaherdError as error:
            errors.append(error)
    return ExplainDocument(tuple(runs), tuple(findings)), tuple(errors)


def _explained(path: Path, now: float) -> Iterator[tuple[ExplainedRun, tuple[Finding, ...]]]:
    folder = _job_folder(path)
    if folder is not None:
        from tui.operate.explain_job import as_recorded, job_files  # reads locks: not on every system

        files = job_files(folder)
        run, findings = _run(files, files.log, str(path), now)
        yield as_recorded(folder, run), findings
        return
    files = read_run(path)
    for number, log in enumerate(files.earlier, 1):
        alone = replace(files, output=None, config=None, changed_at=None)
        run, findings = _run(alone, log, f"{path}#{number}", now)
        # A later run wrote to the same file, so this one is over.
        yield replace(run, state="ended"), findings
    name = f"{path}#{len(files.earlier) + 1}" if files.earlier else str(path)
    yield _run(files, files.log, name, now)


def _job_folder(path: Path) -> Path | None:
    folder = path if path.is_dir() else path.parent
    is_part = path == folder or path.name in ("train.log", JOB_RECORD)
    return folder if is_part and (folder / JOB_RECORD).is_file() else None


def _run(files: RunFiles, log: RunLog, name: str, now: float) -> tuple[ExplainedRun, tuple[Finding, ...]]:
    values = files.config.values if files.config is not None else None
    known = schedule(values) if values is not None else None
    how = ending_of_files(log, files.output)
    state = _state(files, now) if how == "unknown" else "ended"
    over = state != "running"
    at = files.changed_at
    dated = replace(log, changed_at=at) if at is not None else log
    shown = progress(dated, files.output, known, now, ended=over)
    shown = replace(shown, stage=log.stage) if over and how == "unknown" else shown
    deepspeed = deepspeed_settings(files.config, None) if files.config is not None else None
    settings = setting_facts(log, values, deepspeed)
    checkpoints = files.output.checkpoints if files.output is not None else ()
    unknown: dict[str, UnknownReason] = {}
    if state is None:
        unknown["state"] = "not_visible"
    if values is None:
        unknown["config"] = "missing_file"
    if files.output is None:
        unknown["checkpoints"] = "missing_file"
    run = ExplainedRun(
        id=name,
        source=files.source,
        kind="training",
        state=state,
        ending=how if state != "running" else None,
        failure=log.failure,
        config=str(files.config.path) if files.config is not None else None,
        output_dir=files.output.path if files.output is not None else log.told.output_dir,
        started_at=log.began_at,
        ended_at=at if how != "unknown" else None,
        changed_at=at,
        peak_memory={},
        progress=shown,
        plan=log.plan,
        told=log.told,
        coverage=coverage(log, known, checkpoints),
        checkpoints=checkpoints,
        resume=resume(checkpoints, shown.step),
        settings=settings,
        curves=tuple(fitted(curve, _POINTS) for curve in metric_curves(log.metrics)),
        warnings=log.warnings,
        unknown=unknown,
    )
    return run, (
        *loss_findings(name, log.metrics, shown.fraction),
        *log_findings(name, log),
        *resume_findings(name, checkpoints, shown.step, log.began_at),
        *setting_findings(name, settings),
    )


def _state(files: RunFiles, now: float) -> JobState | None:
    changed_at = files.changed_at
    return "running" if changed_at is not None and 0 <= now - changed_at < _ALIVE else None


def _ending_findings(run: ExplainedRun) -> Iterator[Finding]:
    if run.ending == "untrained":
        yield Finding("run_untrained", "warning", run.id)
    elif run.ending == "partial" and run.progress is not None:
        evidence = {"step": run.progress.step, "total": run.progress.total}
        yield Finding("run_partial", "warning", run.id, evidence)
