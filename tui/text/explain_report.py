"""``explain`` as text: one block per run, then what is to be noted."""

from collections.abc import Sequence

from tui.facts.explained import ExplainDocument, ExplainedRun, SettingFact
from tui.facts.training import Checkpoint, Plan, Progress
from tui.text import units
from tui.text.curve_text import curve_lines
from tui.text.finding_lines import finding_lines
from tui.text.job_report import coverage_text, eta_working_text
from tui.text.layout import Cell, Column, Page, Style, Table, labelled
from tui.text.names import ENDINGS, STAGES, STATES
from tui.text.outside import outside
from tui.text.sentences import ENDING_MEANINGS, failure_text
from tui.text.setting_words import SETTINGS, setting_value
from tui.text.translate import tr, tr_plural

_LEAST_WIDTH = 40
_SHOWN_CHECKPOINTS = 6
_SHOWN_WARNINGS = 5
_MESSAGE_LIMIT = 500


def explain_report(
    document: ExplainDocument,
    now: float,
    width: int = 80,
    colour: bool = False,
    ascii: bool = False,
    curve: bool = False,
) -> str:
    """The document as text, without a line end at its end.

    Args:
        document: What to show.
        now: Epoch seconds, for ages and clock times.
        width: Cells a line may take; below 40 it is laid out for 40.
        colour: Whether ANSI colours may be used.
        ascii: Draw with ASCII only; sentences keep their language.
        curve: Whether the losses are drawn.
    """
    page = Page(max(_LEAST_WIDTH, width), colour, ascii)
    sections = [_run_lines(page, run, now, curve=curve) for run in document.runs]
    if document.findings:
        lines = [page.heading(tr("To note"))]
        sections.append(
            lines + [line for finding in document.findings for line in finding_lines(page, finding)]
        )
    return "\n\n".join("\n".join(lines) for lines in sections)


def _run_lines(page: Page, run: ExplainedRun, now: float, *, curve: bool) -> list[str]:
    lines = [_head(page, run), *labelled(page, _facts(run, now), 2)]
    if run.checkpoints:
        lines += [*page.paragraph(tr("Checkpoints"), 2, "dim"), *_checkpoints(page, run.checkpoints, now)]
    if run.settings:
        lines += [*page.paragraph(tr("Settings"), 2, "dim"), *_settings(page, run.settings)]
    if curve:
        lines += [line for one in run.curves for line in curve_lines(page, one)]
    for warning in run.warnings[:_SHOWN_WARNINGS]:
        lines += page.paragraph(tr("{what}: {result}", what=tr("the log warns"), result=outside(warning)), 2)
    return lines


def _head(page: Page, run: ExplainedRun) -> str:
    if run.ending is not None and run.ending != "unknown":
        state = tr(ENDINGS[run.ending])
    else:
        state = tr(STATES[run.state]) if run.state is not None else tr("whether it runs is not visible")
    style: Style = "bad" if run.failure is not None else "plain"
    return f"{page.paint(outside(run.id), 'bold')}  {page.paint(state, style)}"


def _facts(run: ExplainedRun, now: float) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    if run.ending is not None:
        pairs.append(
            (tr("Ending"), failure_text(run.failure) if run.failure else tr(ENDING_MEANINGS[run.ending]))
        )
    if run.failure is not None and run.failure.message:
        pairs.append((tr("Log says"), outside(run.failure.message, _MESSAGE_LIMIT)))
    if run.progress is not None:
        pairs += _progress(run.progress, run, now)
    if plan := _plan(run.plan):
        pairs.append((tr("Plan"), plan))
    pairs.append((tr("Covered"), coverage_text(run.coverage)))
    if run.resume is not None:
        pairs.append((tr("Resume"), _resume(run)))
    if run.output_dir:
        pairs.append((tr("Output"), outside(run.output_dir)))
    if run.config:
        pairs.append((tr("Config"), outside(run.config)))
    if run.told.tracker:
        pairs.append((tr("Tracker"), outside(run.told.tracker, _MESSAGE_LIMIT)))
    if run.changed_at is not None:
        pairs.append((tr("Last sign"), units.age(now - run.changed_at)))
    return pairs


def _progress(progress: Progress, run: ExplainedRun, now: float) -> list[tuple[str, str]]:
    pairs = []
    if progress.stage is not None and (run.state != "ended" or run.ending == "unknown"):
        pairs.append((tr("Stage"), tr(STAGES[progress.stage])))
    if progress.step is not None:
        steps = f"{progress.step}/{progress.total}" if progress.total else str(progress.step)
        pace = units.rate(progress.seconds_per_step)
        parts = [f"{steps} ({units.percent(progress.fraction)})", *([pace] if pace != units.UNKNOWN else [])]
        if progress.samples_per_second is not None:
            parts.append(tr("{count} samples/s", count=f"{progress.samples_per_second:.2f}"))
        if progress.tokens_per_second is not None:
            parts.append(tr("{count} tokens/s", count=f"{progress.tokens_per_second:.0f}"))
        pairs.append((tr("Step"), tr(", ").join(parts)))
    if progress.eta is not None:
        when = units.clock(now + progress.eta, now)
        pairs.append(
            (
                tr("Ends"),
                tr("at {clock}, {duration} from now", clock=when, duration=units.duration(progress.eta)),
            )
        )
        if progress.eta_working is not None:
            pairs.append(("", eta_working_text(progress.eta_working, progress.eta)))
    losses = [units.number(progress.loss)] if progress.loss is not None else []
    if progress.eval_loss is not None:
        losses.append(tr("evaluation {loss}", loss=units.number(progress.eval_loss)))
    if losses:
        pairs.append((tr("Loss"), tr(", ").join(losses)))
    return pairs


def _plan(plan: Plan) -> str:
    parts = []
    if plan.examples is not None:
        parts.append(tr_plural("{count} sample", "{count} samples", plan.examples))
    if plan.epochs is not None:
        parts.append(tr_plural("{count} epoch", "{count} epochs", plan.epochs))
    if plan.effective_batch is not None:
        parts.append(tr("effective batch {count}", count=plan.effective_batch))
    if plan.trainable_parameters is not None:
        parts.append(tr("{count} trainable parameters", count=plan.trainable_parameters))
    return tr(", ").join(parts)


def _resume(run: ExplainedRun) -> str:
    resume = run.resume
    if resume is None or resume.usable is None:
        return tr("no complete checkpoint; a resume would start over")
    text = f"checkpoint-{resume.usable}"
    if resume.lost:
        lost = tr_plural("{count} step is lost", "{count} steps are lost", resume.lost)
        text = tr(", ").join((text, lost))
    return text


def _checkpoints(page: Page, checkpoints: Sequence[Checkpoint], now: float) -> list[str]:
    table = Table((Column(), Column(align="right"), Column(), Column(drop=1)))
    for one in checkpoints[-_SHOWN_CHECKPOINTS:]:
        complete = (tr("complete"), "good") if one.complete else (tr("incomplete"), "bad")
        age = units.age(now - one.saved_at) if one.saved_at is not None else units.UNKNOWN
        style: Style = "good" if one.complete else "bad"
        table.rows.append(
            (Cell(f"checkpoint-{one.step}"), Cell(units.size(one.size)), Cell(complete[0], style), Cell(age))
        )
    return table.lines(page, 4)


def _settings(page: Page, settings: Sequence[SettingFact]) -> list[str]:
    """What the log tells beside what the config asks for, where there is one."""
    compared = any(fact.config is not None for fact in settings)
    table = Table((Column(), Column(), Column(), Column()))
    if compared:
        table.rows.append((Cell(), Cell(tr("log"), "dim"), Cell(tr("config"), "dim"), Cell()))
    for fact in settings:
        mark = Cell(tr("differs"), "warn") if fact.differs else Cell()
        config = Cell(setting_value(fact.config)) if compared else Cell()
        table.rows.append((Cell(tr(SETTINGS[fact.name])), Cell(setting_value(fact.log)), config, mark))
    return table.lines(page, 4)
