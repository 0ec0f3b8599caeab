"""Starting: choose a YAML file, see what would run, confirm."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from textual.app import ComposeResult

from tui.app.command import Command
from tui.app.commands import Back, Leave, ShowHelp
from tui.app.desk import Preview
from tui.app.ink import EMPTY, Drawing, Line, Span, line
from tui.app.scene import Scene
from tui.app.sheet import Choice, Sheet
from tui.app.view import View
from tui.app.widgets.lines import FootLine, HeadLine, VerdictLine
from tui.app.widgets.panel import Panel
from tui.facts.errors import LlamaherdError
from tui.text.cells import cut_middle, wrap
from tui.text.outside import outside
from tui.text.sentences import error_text
from tui.text.translate import tr


class ConfigsPanel(Panel):
    """The training configs that were found."""

    CURSOR = True
    configs: Sequence[Path] | None = None

    def draw(self, scene: Scene, width: int, height: int) -> Drawing:
        """One file per line."""
        title = tr("Training configs")
        if self.configs is None:
            return Drawing(title, [line(Span(tr("Looking under configs/ and here"), "dim"))])
        if not self.configs:
            text = tr("No training config was found under configs/ or here.")
            return Drawing(title, [line(Span(part, "dim")) for part in wrap(text, width)])
        parent = os.path.commonpath([path.parent for path in self.configs])
        shared = "" if parent in {"", "/"} else parent
        names = [os.path.relpath(path, shared) if shared else str(path) for path in self.configs]
        lines = [line(cut_middle(outside(name), width, scene.pen.glyphs)) for name in names]
        return Drawing(title, lines, outside(shared), [str(path) for path in self.configs])


class PreviewPanel(Panel):
    """What starting the chosen file would do."""

    preview: Preview | None = None
    refused: tuple[str, str] | None = None

    def draw(self, scene: Scene, width: int, height: int) -> Drawing:
        """Command, folder, output, environment; or why it cannot be started."""
        return Drawing(tr("What would run"), preview_lines(self.preview, self.refused, width))


def preview_lines(preview: Preview | None, refused: tuple[str, str] | None, cells: int) -> list[Line]:
    """The preview as lines."""
    if refused is not None:
        message, hint = refused
        return [
            *[line(Span(part, "bad")) for part in wrap(message, cells)],
            *[line(Span(part, "dim")) for part in (wrap(hint, cells) if hint else ())],
        ]
    if preview is None:
        return [line(Span(tr("Reading the config"), "dim"))]
    lines = _labelled(tr("command"), " ".join(outside(word) for word in preview.command), cells)
    lines += _labelled(tr("folder"), outside(preview.cwd), cells)
    if preview.output_dir:
        lines += _labelled(tr("output"), outside(preview.output_dir), cells)
    if preview.environment:
        added = " ".join(f"{outside(name)}={outside(value)}" for name, value in preview.environment)
        lines += _labelled(tr("environment"), added, cells)
    closing = tr("It goes on when this screen or the SSH session is closed.")
    return [*lines, EMPTY, *[line(Span(part, "dim")) for part in wrap(closing, cells)]]


def _labelled(label: str, text: str, cells: int) -> list[Line]:
    return [line(Span(label, "label")), *[line(Span("  " + part)) for part in wrap(text, cells - 2)]]


class StartScreen(View):
    """Files at the left, the preview at the right."""

    FOOT: ClassVar[tuple[type[Command], ...]] = (Back, ShowHelp, Leave)
    AUTO_FOCUS = "#configs"

    def compose(self) -> ComposeResult:
        """Head, the two panels, foot."""
        yield HeadLine(id="head")
        yield VerdictLine(id="verdict")
        yield ConfigsPanel(id="configs")
        yield PreviewPanel(id="preview")
        yield FootLine(id="foot")

    def on_mount(self) -> None:
        """Look for configs off the loop: the disk may be slow."""
        self.run_worker(self._look, thread=True, exit_on_error=False)

    def _look(self) -> None:
        configs = tuple(self.herd.desk.configs())
        self.app.call_later(self._found, configs)

    def _found(self, configs: tuple[Path, ...]) -> None:
        panel = self.query_one(ConfigsPanel)
        panel.configs = configs
        panel.show(self.herd.scene)
        if configs:
            self._choose_config(str(configs[0]))

    def on_panel_moved(self, message: Panel.Moved) -> None:
        """Another file: another preview."""
        message.stop()
        self._choose_config(message.row)

    def _choose_config(self, config: str) -> None:
        self._show_preview(None, None)
        self.run_worker(lambda: self._prepare(Path(config)), thread=True, exclusive=True, exit_on_error=False)

    def _prepare(self, config: Path) -> None:
        try:
            preview = self.herd.desk.prepare(config, ())
        except LlamaherdError as error:
            self.app.call_later(self._prepared, config, None, error_text(error))
        else:
            self.app.call_later(self._prepared, config, preview, None)

    def _prepared(self, config: Path, preview: Preview | None, refused: tuple[str, str] | None) -> None:
        if self.query_one(ConfigsPanel).row == str(config):  # else the cursor has moved on
            self._show_preview(preview, refused)

    def _show_preview(self, preview: Preview | None, refused: tuple[str, str] | None) -> None:
        panel = self.query_one(PreviewPanel)
        panel.preview, panel.refused = preview, refused
        panel.show(self.herd.scene)

    def on_panel_chosen(self, message: Panel.Chosen) -> None:
        """Enter on a file: confirm, if there is something to start."""
        message.stop()
        preview = self.query_one(PreviewPanel).preview
        if preview is not None:
            self.app.push_screen(ConfirmStart(preview))


class ConfirmStart(Sheet):
    """The last look before a start."""

    def __init__(self, preview: Preview) -> None:
        super().__init__()
        self._preview = preview
        self._refused: tuple[str, str] | None = None
        self._starting = False

    def title_text(self) -> str:
        """The question."""
        return tr("Start this training")

    def sentences(self, scene: Scene, cells: int) -> Sequence[Line]:
        """The preview once more, and what else is training."""
        lines = preview_lines(self._preview, self._refused, cells)
        others = [job for job in scene.live if job.kind == "training"]
        if others and self._refused is None:
            text = tr("Another training runs already; both share the cards' memory.")
            lines += [EMPTY, *[line(Span(part, "warn")) for part in wrap(text, cells)]]
        return lines

    def choices(self, scene: Scene) -> Sequence[Choice]:
        """Cancel first."""
        if self._refused is not None:
            return [Choice("close", tr("Close"))]
        if self._starting:
            return [Choice("close", tr("Close (it is being started)"))]
        return [Choice("close", tr("Cancel")), Choice("start", tr("Start"))]

    def choose(self, name: str) -> None:
        """Start off the loop."""
        if name != "start":
            self.dismiss(None)
            return
        self._starting = True
        self.show(self.herd.scene)
        self.run_worker(self._start, thread=True, exit_on_error=False)

    def _start(self) -> None:
        try:
            job = self.herd.desk.start(self._preview)
        except LlamaherdError as error:
            self.app.call_later(self._was_refused, error_text(error))
        else:
            self.app.call_later(self._started, job)

    def _was_refused(self, words: tuple[str, str]) -> None:
        self._refused = words
        self.show(self.herd.scene)

    def _started(self, job: str) -> None:
        self.herd.back_to_overview()
        self.herd.choose(job)
        self.herd.say(tr("Started {job}.", job=outside(job)))
