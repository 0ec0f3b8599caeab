"""Jobs as text: one block per job for ``status``, one line per job for ``jobs``."""

from collections.abc import Mapping, Sequence

from tui.facts.job import Ending, Job, JobState, MemberRole
from tui.facts.training import Coverage, EtaWorking, Progress
from tui.text import units
from tui.text.cells import cut, fit, width
from tui.text.gpu_report import command_text
from tui.text.layout import Cell, Column, Page, Style, Table, labelled
from tui.text.names import JOB_KINDS, ROLES, STAGES, state_or_ending
from tui.text.outside import outside
from tui.text.sentences import ENDING_MEANINGS, STATE_MEANINGS, exit_text, failure_text
from tui.text.translate import tr, tr_plural

_MESSAGE_LIMIT = 500
_BAR_CELLS = 32
_SILENT_SECONDS = 60.0
_SHOWN_PIDS = 8

_STATE_STYLES: dict[JobState, Style] = {
    "starting": "accent",
    "running": "good",
    "stopping": "warn",
    "stuck": "bad",
    "ended": "dim",
    "lost": "bad",
}
_ENDING_STYLES: dict[Ending, Style] = {
    "failed": "bad",
    "untrained": "bad",
    "partial": "warn",
    "unknown": "warn",
}


def job_lines(page: Page, job: Job, now: float, cards: Mapping[str, int]) -> list[str]:
    """A job in full.

    Args:
        page: Where it is written.
        job: The job.
        now: Epoch seconds, for clock times.
        cards: GPU uuid to the number that the report shows for it.
    """
    lines = [_head_line(page, job, now, cards)]
    progress = job.progress
    if progress is not None and job.state != "ended":
        lines += _step_line(page, progress)
    return lines + labelled(page, _facts(job, now, cards), 2)


def job_name(job: Job) -> str:
    """What a person calls the job: its id, or the PID of a run that was not started by llamaherd."""
    return f"PID {job.main_pid}" if job.folder is None and job.main_pid else outside(job.id)


def jobs_table(jobs: Sequence[Job], now: float) -> Table:
    """The list of jobs, one line each."""
    columns = (
        Column(tr("Job"), least=12),
        Column(tr("State")),
        Column(tr("Step"), "right"),
        Column(tr("Started"), "right"),
        Column(tr("Took"), "right", drop=1),
        Column(tr("Loss"), "right", drop=2),
        Column(tr("Config or command"), least=16, middle=True),
    )
    table = Table(columns)
    for job in jobs:
        progress = job.progress or Progress()
        until = job.ended_at if job.state == "ended" else now
        took = None if job.started_at is None or until is None else until - job.started_at
        source = outside(job.config or "") or command_text(job.command)
        table.rows.append(
            (
                Cell(outside(job.id)),
                Cell(state_or_ending(job.state, job.ending), _style(job)),
                Cell(_steps(progress)),
                Cell(units.clock(job.started_at, now)),
                Cell(units.duration(took)),
                Cell(units.number(progress.loss)),
                Cell(source),
            )
        )
    return table


def eta_working_text(working: EtaWorking, eta: float | None) -> str:
    """The sum behind an ETA: ``120 x 8.00 s + 2 evaluations x 31 s + 1 save x 4 s = 17:06``."""
    terms = [f"{working.steps_left} x {units.seconds_each(working.seconds_per_step)}"]
    if working.evals_left:
        count = tr_plural("{count} evaluation", "{count} evaluations", working.evals_left)
        terms.append(f"{count} x {_each(working.seconds_per_eval)}")
    if working.saves_left:
        count = tr_plural("{count} save", "{count} saves", working.saves_left)
        terms.append(f"{count} x {_each(working.seconds_per_save)}")
    if round(working.tail):
        terms.append(tr("{seconds} at the end", seconds=units.seconds_about(working.tail)))
    text = " + ".join(terms)
    if round(working.current) > 0:
        text = tr("{sum} + {seconds} under way", sum=text, seconds=units.seconds_about(working.current))
    elif round(working.current) < 0:
        text = tr("{sum} - {seconds} already spent", sum=text, seconds=units.seconds_about(-working.current))
    total = "" if eta is None else f" = {units.duration(eta)}"
    return tr("at least {sum}", sum=text + total) if working.at_least else text + total


def coverage_text(coverage: Coverage) -> str:
    """What has been seen to work, and when the rest comes first."""
    steps = (
        (coverage.load, tr("weights loaded")),
        (coverage.first_batch, tr("first batch")),
        (coverage.first_update, tr("first update")),
        (coverage.evaluation, tr("evaluation")),
        (coverage.save, tr("save")),
    )
    parts = [name for seen, name in steps if seen] or [tr("nothing yet")]
    if coverage.longest_batch is not None:
        parts.append(tr("{percent} of an epoch's batches", percent=units.percent(coverage.longest_batch)))
    if coverage.first_eval is not None:
        parts.append(tr("first evaluation due at step {step}", step=coverage.first_eval))
    if coverage.first_save is not None:
        parts.append(tr("first save due at step {step}", step=coverage.first_save))
    return tr(", ").join(parts)


def _comes_first(coverage: Coverage) -> bool:
    """Whether something that may fail is still to come for the first time."""
    return coverage.first_update and (coverage.first_eval is not None or coverage.first_save is not None)


def _each(seconds: float | None) -> str:
    return tr("a time not yet measured") if seconds is None else units.seconds_about(seconds)


def _style(job: Job) -> Style:
    if job.state == "ended" and job.ending:
        return _ENDING_STYLES.get(job.ending, "dim")
    return _STATE_STYLES[job.state]


def _head_line(page: Page, job: Job, now: float, cards: Mapping[str, int]) -> str:
    """``● 1130-1541-lora  running  training, since 15:41 on GPU 0, 1``."""
    style = _style(job)
    what = [tr(JOB_KINDS[job.kind])]
    if job.started_at is not None and job.ended_at is not None:
        began, took = units.clock(job.started_at, now), units.duration(job.ended_at - job.started_at)
        what.append(tr("began {clock}, took {duration}", clock=began, duration=took))
    elif job.started_at is not None:
        what.append(tr("since {clock}", clock=units.clock(job.started_at, now)))
    if job.folder is None:
        what.append(tr("not started by llamaherd"))
    if job.gpus and job.state != "ended":
        numbers = ", ".join(str(cards[uuid]) for uuid in job.gpus if uuid in cards)
        what.append(f"GPU {numbers}" if numbers else tr("GPU not visible"))
    state = state_or_ending(job.state, job.ending)
    # The state goes before the whole name: on a narrow terminal the name is cut.
    name = cut(job_name(job), max(8, page.width - width(state) - 4), page.glyphs)
    room = page.width - width(f"{page.glyphs.dot} {name}  {state}  ")
    rest = fit(tr(", ").join(what), max(0, room), glyphs=page.glyphs).rstrip()
    dot = page.paint(page.glyphs.dot, style)
    return f"{dot} {page.paint(name, 'bold')}  {page.paint(state, style)}  {rest}".rstrip()


def _step_line(page: Page, progress: Progress) -> list[str]:
    """The bar: of the steps, or of the stage before the first one."""
    stage = tr(STAGES[progress.stage]) if progress.stage else tr("stage unknown")
    bar = progress.bar
    fraction = progress.fraction
    if progress.step is not None and progress.total:
        done = f"{_steps(progress)} ({units.percent(fraction)})"
        text = f"{done}  {units.rate(progress.seconds_per_step)}  {stage}"
    elif bar is not None and bar.total:
        fraction = bar.done / bar.total
        text = f"{stage}  {bar.done}/{bar.total} ({units.percent(fraction)})"
    else:
        return page.paragraph(stage, 2)
    cells = min(_BAR_CELLS, page.width - 4 - width(text))
    if cells < 8:
        return page.paragraph(text, 2)
    return [f"  {page.bar(fraction, cells, 'good')}  {text}"]


def _steps(progress: Progress) -> str:
    if progress.step is None:
        return units.UNKNOWN
    return f"{progress.step}/{progress.total}" if progress.total else str(progress.step)


def _facts(job: Job, now: float, cards: Mapping[str, int]) -> list[tuple[str, str]]:
    """The labelled lines under a job; a line without anything to say is left out."""
    progress = job.progress
    pairs: list[tuple[str, str]] = []
    if job.state == "ended":
        pairs += _ending_facts(job)
    elif job.state in {"stuck", "lost", "stopping"}:
        pairs.append((tr("State"), tr(STATE_MEANINGS[job.state])))
    if progress is not None:
        if job.state in {"starting", "running"}:
            pairs += _eta_facts(job, progress, now)
        if progress.coverage is not None and _comes_first(progress.coverage) and job.state == "running":
            pairs.append((tr("Covered"), coverage_text(progress.coverage)))
        if loss := _losses(job, progress):
            pairs.append((tr("Loss"), loss))
        if job.kind == "training":
            pairs.append((tr("Saved"), _saved(job, progress)))
    if job.peak_memory:
        pairs.append((tr("Peak memory"), _peaks(job, cards)))
    if job.ports:
        pairs.append((tr("Ports"), ", ".join(map(str, job.ports))))
    if job.members and job.state != "ended":
        pairs.append((tr("Processes"), _members(job)))
    if job.output_dir:
        pairs.append((tr("Output"), outside(job.output_dir)))
    elif job.config is None and job.command:
        pairs.append((tr("Command"), command_text(job.command)))
    if job.folder is not None and not job.keeper and job.state in {"running", "stopping"}:
        pairs.append((tr("Keeper"), tr("none; the run goes on without it")))
    return pairs


def _ending_facts(job: Job) -> list[tuple[str, str]]:
    ending = job.ending or "unknown"
    meaning = tr(ENDING_MEANINGS[ending])
    if job.failure is not None and ending == "failed":
        meaning = failure_text(job.failure)
    if code := exit_text(job):
        meaning = tr(", ").join((meaning.rstrip(".。"), code))
    pairs = [] if ending == "finished" else [(tr("Ending"), meaning)]
    if job.failure is not None and job.failure.message:
        pairs.append((tr("Log says"), outside(job.failure.message, _MESSAGE_LIMIT)))
    if job.progress is not None and job.progress.step is not None:
        pairs.append((tr("Step"), f"{_steps(job.progress)} ({units.percent(job.progress.fraction)})"))
    return pairs


def _eta_facts(job: Job, progress: Progress, now: float) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    if progress.eta is not None:
        low, high = units.duration(progress.eta_low), units.duration(progress.eta_high)
        clock, left = units.clock(now + progress.eta, now), units.duration(progress.eta)
        text = tr("at {clock}, {duration} from now", clock=clock, duration=left)
        if progress.eta_low is not None and progress.eta_high is not None and low != high:
            text = tr("{when} ({low} to {high})", when=text, low=low, high=high)
        pairs.append((tr("Ends"), text))
        if progress.eta_working is not None:
            pairs.append(("", eta_working_text(progress.eta_working, progress.eta)))
    elif job.kind == "training" and "eta" in progress.unknown:
        pairs.append((tr("Ends"), units.reason(progress.unknown["eta"])))
    if progress.full_total is not None:
        steps = tr_plural("{count} step", "{count} steps", progress.full_total)
        took = units.duration(progress.full_seconds)
        pairs.append(
            (tr("Full plan"), tr("{steps}, {duration} without evaluations", steps=steps, duration=took))
        )
    if progress.age is not None and progress.age > _SILENT_SECONDS:
        pairs.append(
            (tr("Last sign"), tr("{age}; nothing new in the log since", age=units.age(progress.age)))
        )
    return pairs


def _losses(job: Job, progress: Progress) -> str:
    parts = []
    if progress.loss is not None:
        parts.append(units.number(progress.loss))
    if progress.eval_loss is not None:
        parts.append(tr("evaluation {loss}", loss=units.number(progress.eval_loss)))
    if progress.epoch is not None and parts:
        parts.append(tr("epoch {epoch}", epoch=units.number(progress.epoch, 2)))
    if progress.tokens_per_second is not None and job.state != "ended":
        padded = {True: tr(" with padding"), False: tr(" without padding"), None: ""}[progress.tokens_padded]
        parts.append(f"{progress.tokens_per_second:.0f} tok/s{padded}")
    return tr(", ").join(parts)


def _saved(job: Job, progress: Progress) -> str:
    """The last complete checkpoint, and what an interruption now would lose."""
    step, last = progress.step, progress.last_checkpoint
    if last is None:
        return tr("no complete checkpoint yet") if job.state != "ended" else tr("no complete checkpoint")
    text = f"checkpoint-{last}"
    if step is None or step <= last or job.state == "ended":
        return text
    behind = tr_plural("{count} step ago", "{count} steps ago", step - last)
    return tr("{checkpoint}, {behind}", checkpoint=text, behind=behind)


def _peaks(job: Job, cards: Mapping[str, int]) -> str:
    """``GPU 0 21.8 GiB, GPU 1 20.9 GiB``: the most that was in use on the cards during the run."""
    parts = [f"GPU {cards.get(uuid, '?')} {units.size(peak)}" for uuid, peak in job.peak_memory.items()]
    return tr(", ").join(parts)


def _members(job: Job) -> str:
    """``launcher 48210, torchrun 48222, rank 48230 48231, data worker 48240 48241``."""
    by_role: dict[MemberRole, list[str]] = {}
    for member in job.members:
        by_role.setdefault(member.role, []).append(str(member.pid))
    parts = []
    for role, pids in by_role.items():
        more = [tr("and {count} more", count=len(pids) - _SHOWN_PIDS)] if len(pids) > _SHOWN_PIDS else []
        parts.append(f"{tr(ROLES[role])} {' '.join(pids[:_SHOWN_PIDS] + more)}")
    return tr(", ").join(parts)
