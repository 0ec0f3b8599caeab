"""The one view that replaces ``watch nvidia-smi``."""

from collections.abc import Mapping

from textual.app import ComposeResult
from textual.geometry import NULL_OFFSET, NULL_SPACING, Region, Size
from textual.layout import ArrangeResult, Layout, WidgetPlacement
from textual.widget import Widget

from tui.app.arrange import Box, Contents, arrange, frame_lines
from tui.app.ink import Line, Span, line
from tui.app.scene import Scene
from tui.app.view import View
from tui.app.widgets.findings import FindingsPanel
from tui.app.widgets.gpus import GpuPanel
from tui.app.widgets.jobs import JobsPanel
from tui.app.widgets.lines import FootLine, HeadLine, HostLine, OneLine, VerdictLine
from tui.app.widgets.log import TailPanel
from tui.app.widgets.owners import OwnersPanel
from tui.app.widgets.panel import Panel
from tui.app.widgets.training import TrainingPanel
from tui.text.translate import tr


class SmallLine(OneLine):
    """What is said when nothing else fits."""

    def one(self, scene: Scene, cells: int) -> Line:
        """One plain sentence."""
        return line(Span(tr("This terminal is too small; 60x18 is enough."), "warn"))


class OverviewLayout(Layout):
    """Places the panels in the boxes of ``arrange``."""

    name = "overview"

    def __init__(self) -> None:
        self.boxes: Mapping[str, Box] = {}

    def arrange(
        self, parent: Widget, children: list[Widget], size: Size, greedy: bool = True
    ) -> ArrangeResult:
        """One placement per panel that has a box."""
        placements = []
        for child in children:
            box = self.boxes.get(child.id or "")
            if box is not None:
                region = Region(box.x, box.y, box.width, box.height)
                placements.append(WidgetPlacement(region, NULL_OFFSET, NULL_SPACING, child))
        return placements


class Overview(View):
    """Cards, training, owners, jobs, findings, host: everything at a glance."""

    AUTO_FOCUS = "#jobs"

    def __init__(self) -> None:
        super().__init__()
        self._boxes = OverviewLayout()
        self._contents = Contents()

    @property
    def layout(self) -> Layout:
        """Textual asks how the panels stand."""
        return self._boxes

    def compose(self) -> ComposeResult:
        """Every panel; those without room are not displayed."""
        yield HeadLine(id="head")
        yield VerdictLine(id="verdict")
        yield GpuPanel(id="gpus")
        yield TrainingPanel(id="training")
        yield OwnersPanel(id="owners")
        yield JobsPanel(id="jobs")
        yield FindingsPanel(id="findings")
        yield TailPanel(id="tail")
        yield HostLine(id="host")
        yield FootLine(id="foot")
        yield SmallLine(id="small")

    def on_mount(self) -> None:
        """Place the panels before the first frame."""
        self._place()

    def on_resize(self) -> None:
        """Another size, other places."""
        self._place()

    def show(self, scene: Scene) -> None:
        """Draw the scene; the places change only with what there is to show."""
        snapshot = scene.snapshot
        if snapshot is not None:
            self._contents = Contents(
                len(scene.gpus),
                sum(len(card.owners) for card in scene.gpus),
                len(scene.jobs),
                len(snapshot.findings),
            )
            self._place()
        super().show(scene)

    def _place(self) -> None:
        width, height = self.app.size
        boxes = arrange(width, height, self._contents) or {"small": Box(0, 0, width, 1)}
        if boxes == self._boxes.boxes:
            return
        self._boxes.boxes = boxes
        self.set_class(frame_lines(height) == 1, "-flat")
        for panel in self.query(Panel):
            panel.display = panel.id in boxes
        self.query_one("#head").refresh(layout=True)  # a child's request makes Textual ask the layout again
