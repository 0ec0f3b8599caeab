"""Stopping: says what is meant and what is lost, asks, then shows every step until all is gone."""

from collections.abc import Sequence

from tui.app.desk import Loss
from tui.app.graphs import Pen
from tui.app.ink import EMPTY, Ink, Line, Span, line
from tui.app.scene import LIVE, Scene
from tui.app.sheet import Choice, Sheet
from tui.app.widgets.training import job_name
from tui.facts.errors import LlamaherdError
from tui.facts.job import Job, Member, RequestKind
from tui.text.cells import wrap
from tui.text.names import ROLES, state_or_ending
from tui.text.outside import outside
from tui.text.sentences import error_text
from tui.text.translate import tr, tr_noop, tr_plural

_KINDS: dict[str, RequestKind] = {"stop": "stop", "keep": "keep_weights", "force": "force"}
_SHOWN_MEMBERS = 8


class StopScreen(Sheet):
    """One stop, from the question to the proof."""

    def __init__(self, job: str) -> None:
        super().__init__()
        self._job = job
        self._asked = False
        self._loss: Loss | None = None
        self._refused: tuple[str, str] | None = None

    def on_mount(self) -> None:
        """A stop that is under way is shown, not asked for again; else find out what it would cost."""
        job = self._find(self.herd.scene)
        self._asked = job is not None and job.state in {"stopping", "stuck"}
        if job is not None and not self._asked:
            target = job
            self.run_worker(lambda: self._weigh(target), thread=True, exit_on_error=False)

    def _weigh(self, job: Job) -> None:
        try:
            loss = self.herd.desk.loss(job)
        except LlamaherdError as error:
            self.app.call_later(self._was_refused, error_text(error))
        else:
            self.app.call_later(self._weighed, loss)

    def _weighed(self, loss: Loss) -> None:
        self._loss = loss
        self.show(self.herd.scene)

    def _find(self, scene: Scene) -> Job | None:
        return scene.job(self._job)

    def title_text(self) -> str:
        """The deed and its target."""
        job = self._find(self.herd.scene)
        return tr("Stop {name}", name=job_name(job) if job else outside(self._job))

    def sentences(self, scene: Scene, cells: int) -> Sequence[Line]:
        """The question, or the checklist."""
        job = self._find(scene)
        if self._refused is not None:
            message, hint = self._refused
            lines = [line(Span(part, "bad")) for part in wrap(message, cells)]
            return lines + [line(Span(part, "dim")) for part in wrap(hint, cells) if hint]
        if job is None:
            return [line(tr("This job is not there any more."))]
        if not self._asked and job.state in LIVE:
            return self._question(job, cells)
        return checklist(job, scene.pen, cells, asked=self._asked)

    def _question(self, job: Job, cells: int) -> list[Line]:
        count = len(job.members)
        target = tr_plural("This ends {count} process:", "This ends {count} processes:", count)
        lines = [line(Span(target))]
        for member in job.members[:_SHOWN_MEMBERS]:
            lines.append(line(Span("  " + member_text(member), "dim")))
        if count > _SHOWN_MEMBERS:
            lines.append(line(Span("  " + tr("and {count} more", count=count - _SHOWN_MEMBERS), "dim")))
        lines.append(EMPTY)
        lines += [line(Span(part, "warn")) for part in wrap(loss_text(self._loss, job), cells)]
        return lines

    def choices(self, scene: Scene) -> Sequence[Choice]:
        """Cancel first; while it is under way only force is left to choose."""
        job = self._find(scene)
        if self._refused is not None or job is None or job.state not in LIVE:
            return [Choice("close", tr("Close"))]
        if self._asked:
            return [
                Choice("close", tr("Close (the stop goes on)")),
                Choice("force", tr("End it by force"), True),
            ]
        choices = [Choice("close", tr("Cancel: let it run on")), Choice("stop", tr("Stop"), True)]
        if job.kind == "training" and job.keeper:
            choices.append(Choice("keep", tr("Finish the step, save the weights, then stop"), True))
        return [*choices, Choice("force", tr("End it by force, without waiting"), True)]

    def choose(self, name: str) -> None:
        """Ask for it; what comes of it is measured, not assumed."""
        job = self._find(self.herd.scene)
        if name not in _KINDS or job is None:
            self.dismiss(None)
            return
        self._asked = True
        self.run_worker(lambda: self._ask(job, _KINDS[name]), thread=True, exit_on_error=False)
        self.show(self.herd.scene)

    def _ask(self, job: Job, kind: RequestKind) -> None:
        try:
            self.herd.desk.stop(job, kind)
        except LlamaherdError as error:
            self.app.call_later(self._was_refused, error_text(error))

    def _was_refused(self, words: tuple[str, str]) -> None:
        self._refused = words
        self.show(self.herd.scene)


def member_text(member: Member) -> str:
    """``PID 4321  main process  python launcher.py``."""
    return f"PID {member.pid}  {tr(ROLES[member.role])}  {outside(member.command, 60)}"


def loss_text(loss: Loss | None, job: Job) -> str:
    """What a stop costs, as far as it is known."""
    if job.kind == "service":
        return tr("Whoever uses this service loses the connection.")
    if loss is None:
        return tr("What would be lost is being looked up.")
    if loss.saving:
        return tr("A checkpoint is being written; the stop waits for it.")
    if loss.steps is None:
        return tr("What would be lost is not known.")
    if loss.checkpoint is None:
        return tr("No checkpoint yet: all {count} steps are lost.", count=loss.steps)
    return tr("Loses {count} steps; last complete checkpoint {step}.", count=loss.steps, step=loss.checkpoint)


_WAITING = tr_noop("Waiting for the keeper")


def checklist(job: Job, pen: Pen, cells: int, *, asked: bool) -> list[Line]:
    """Every step taken with its result, who is still alive, and at the end the proof."""
    from tui.text.stop_report import proof, step_text

    lines: list[Line] = []
    report = job.stop
    steps = report.steps if report is not None else ()
    for step in steps:
        going = step.ended is None and job.state in LIVE
        ink: Ink = "accent" if going else "good"
        lines += _item(pen.here if going else pen.done, step_text(step), cells, ink)
    if job.state not in LIVE:
        if report is not None and not report.left and not report.ports_open and not report.devices_held:
            return [*lines, *_item(pen.done, proof(report), cells, "good")]
        return [*lines, *_item(pen.done, state_or_ending(job.state, job.ending), cells, "good")]
    if not steps and asked:
        lines += _item(pen.here, tr(_WAITING), cells, "accent")
    if job.state == "stuck":
        words = tr("These processes outlived every signal; nothing is claimed to be stopped.")
        lines += _item(pen.warning, words, cells, "bad")
    alive = report.left if report is not None and report.left else job.members
    if alive:
        lines.append(EMPTY)
        lines.append(line(Span(tr_plural("{count} process alive:", "{count} processes alive:", len(alive)))))
        lines += [line(Span("  " + member_text(member), "dim")) for member in alive[:_SHOWN_MEMBERS]]
    return lines


def _item(mark: str, text: str, cells: int, ink: Ink) -> list[Line]:
    first, *rest = wrap(text, cells - 2)
    head = line(Span(mark + " ", ink), Span(first))
    return [head, *[line("  " + part) for part in rest]]
