"""What every screen has in common: it shows scenes, and its foot offers its commands."""

from typing import TYPE_CHECKING, ClassVar, cast

from textual.screen import Screen

from tui.app.command import Command, foot_keys
from tui.app.commands import GLOBAL, Back
from tui.app.scene import Scene
from tui.app.widgets.lines import FootLine
from tui.app.widgets.panel import Panel

if TYPE_CHECKING:
    from tui.app.app import HerdApp


class View(Screen[None]):
    """A screen of panels."""

    FOOT: ClassVar[tuple[type[Command], ...]] = tuple(command for command in GLOBAL if command is not Back)
    """What the foot offers, in this order, as far as it has room."""

    @property
    def herd(self) -> "HerdApp":
        """The app, by its own type."""
        return cast("HerdApp", self.app)

    def show(self, scene: Scene) -> None:
        """Draw the scene in every panel."""
        for panel in self.query(Panel):
            if isinstance(panel, FootLine):
                panel.offer(foot_keys(self.FOOT, self.herd))
            panel.show(scene)

    def on_screen_resume(self) -> None:
        """Shown again: with what is known now."""
        self.show(self.herd.scene)
