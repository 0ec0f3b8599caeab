"""The app: it wires feed, screens and commands, and holds the scene; everything else is elsewhere."""

import gc
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual.app import SystemCommand
from textual.binding import BindingType
from textual.screen import Screen

from tui.app.command import bindings
from tui.app.commands import BY_NAME, COMMANDS, GLOBAL, live_choice
from tui.app.desk import Desk
from tui.app.feed import ASK_EVERY, Feed
from tui.app.follow import LOG_NAME, Follower, LogView
from tui.app.frame_diff import DiffedApp
from tui.app.graphs import ASCII_PEN, PEN
from tui.app.history import History
from tui.app.options import Options
from tui.app.overview import Overview
from tui.app.scene import STALE_AFTER, Scene
from tui.app.sheet import Sheet
from tui.app.themes import DARK, LIGHT, THEMES, colours_of
from tui.app.view import View
from tui.app.widgets.lines import FootLine
from tui.app.widgets.panel import Panel
from tui.text.translate import language, set_language, tr

if TYPE_CHECKING:
    from tui.app.log_screen import LogScreen

_BEHIND_AFTER = 3
"""Intervals without a new picture after which the screen says so."""


class HerdApp(DiffedApp, inherit_bindings=False):
    """The screen of llamaherd."""

    TITLE = "llamaherd"
    CSS_PATH = Path(__file__).with_name("style.tcss")
    BINDINGS: ClassVar[list[BindingType]] = bindings(GLOBAL)
    ENABLE_COMMAND_PALETTE = True
    COMMAND_PALETTE_BINDING = "ctrl+p"

    def __init__(self, feed: Feed, desk: Desk, options: Options) -> None:
        self.options = options
        self._feed = feed
        self.desk = desk
        self._history = History()
        self._follower = Follower()
        self._number = 0
        self._arrived = time.monotonic()
        self.scene = Scene(
            history=self._history,
            pen=ASCII_PEN if options.ascii else PEN,
            demo=options.demo,
            readonly=options.readonly,
        )
        super().__init__(frame_diff=options.frame_diff)
        self.animation_level = "none"
        for theme in THEMES:
            self.register_theme(theme)
        self.theme = DARK.name
        self.set_class(options.ascii, "-ascii")

    def get_default_screen(self) -> Screen[None]:
        """The overview is always at the bottom."""
        return Overview()

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """Our own colour names, for themes that do not have them."""
        return dict(DARK.variables)

    def on_mount(self) -> None:
        """The frame first, figures when they come: nothing is read before the first paint."""
        self.call_after_refresh(self._begin)

    def _begin(self) -> None:
        gc.freeze()  # what was imported stays for good
        gc.enable()
        self._feed.start()
        self._arrived = time.monotonic()
        self.set_interval(ASK_EVERY, self.look)

    def look(self) -> None:
        """Look into the slot, and draw if something is new. Collection never waits for drawing."""
        snapshot = self._feed.latest()
        now = time.monotonic()
        if snapshot is not None and snapshot.number != self._number:
            self._number = snapshot.number
            self._arrived = now
            self._history.add(snapshot)
            self._change(snapshot=snapshot, behind=None, trouble="", log=self._follower.latest())
            self._follow_main()
        elif now - self._arrived > max(STALE_AFTER, _BEHIND_AFTER * self.options.interval):
            behind, trouble = float(int(now - self._arrived)), self._feed.trouble()
            if (behind, trouble) != (self.scene.behind, self.scene.trouble):
                self._change(behind=behind, trouble=trouble)

    def _follow_main(self) -> None:
        """The log of the job in focus is read in a thread; its newest lines come with the next look."""
        main = self.scene.main
        self._follower.follow(Path(main.folder) / LOG_NAME if main is not None and main.folder else None)

    @property
    def log_screen(self) -> "LogScreen | None":
        """The log view while it is in front."""
        from tui.app.log_screen import LogScreen

        return self.screen if isinstance(self.screen, LogScreen) else None

    def _change(self, **changes: object) -> None:
        """Another scene; drawn unless drawing is paused."""
        self.scene = replace(self.scene, **changes)  # type: ignore[arg-type]  # the fields of Scene
        if not self.scene.paused or "paused" in changes:
            self.draw()

    def draw(self) -> None:
        """Draw the scene on every screen that is in sight."""
        with self.batch_update():
            for screen in self.screen_stack:
                if isinstance(screen, View | Sheet) and (screen.is_current or self.screen.is_modal):
                    screen.show(self.scene)

    # Deeds

    def action_deed(self, name: str) -> None:
        """A key or a click: run the command if it may run."""
        command = BY_NAME[name]
        if command.changes and self.options.readonly:
            self.say(tr("Read only: this screen was opened to look, not to act."))
        elif command.available(self):
            command.run(self)

    def on_foot_line_pressed(self, message: FootLine.Pressed) -> None:
        """A footer key was clicked."""
        if message.command in BY_NAME:
            self.action_deed(message.command)

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """What the palette offers."""
        for command in COMMANDS:
            if command.available(self) and command.name != "palette":
                yield SystemCommand(
                    tr(command.label), tr(command.help), lambda name=command.name: self.action_deed(name)
                )

    def say(self, text: str, *, bad: bool = False) -> None:
        """A short message that goes away by itself."""
        self.notify(text, severity="error" if bad else "information", markup=False)

    def back_to_overview(self) -> None:
        """Close everything above the overview."""
        while len(self.screen_stack) > 1:
            self.pop_screen()

    def open_owners(self) -> None:
        """The owners view."""
        from tui.app.owners_screen import OwnersScreen

        self.back_to_overview()
        self.push_screen(OwnersScreen())

    def open_log(self) -> None:
        """The log of the job in focus."""
        from tui.app.log_screen import LogScreen

        if self.scene.main is not None:
            self.back_to_overview()
            self.push_screen(LogScreen())

    def open_start(self) -> None:
        """Choose a config, see the command, confirm."""
        from tui.app.start_screen import StartScreen

        self.push_screen(StartScreen())

    def open_stop(self) -> None:
        """Say what would be lost, ask, and then show every step."""
        from tui.app.stop_screen import StopScreen

        job = live_choice(self)
        if job is None:
            self.say(tr("Several jobs run: choose one in the list of jobs first."))
        else:
            self.push_screen(StopScreen(job))

    def open_help(self) -> None:
        """Keys, and the panel in focus."""
        from tui.app.help_screen import HelpScreen

        self.push_screen(HelpScreen(self.focused))

    def choose(self, job: str) -> None:
        """The job in focus from now on."""
        self._change(chosen=job, log=LogView())
        self._follow_main()

    def on_panel_moved(self, message: Panel.Moved) -> None:
        """The cursor of the jobs list says which job is in focus."""
        if message.panel.id == "jobs":
            self.choose(message.row)

    def on_panel_chosen(self, message: Panel.Chosen) -> None:
        """Enter on a job opens its log."""
        if message.panel.id == "jobs":
            self.choose(message.row)
            self.open_log()

    def toggle_pause(self) -> None:
        """Stop or resume drawing."""
        self._change(paused=not self.scene.paused)

    def switch_language(self) -> None:
        """English and Chinese in turn."""
        set_language("zh" if language() == "en" else "en")
        self.draw()

    def switch_theme(self) -> None:
        """Dark and light in turn."""
        self.theme = LIGHT.name if self.theme == DARK.name else DARK.name
        self._change(colours=colours_of(self.theme))
        self.repaint()

    def repaint(self) -> None:
        """Send every cell."""
        self.forget_frame()
        self.refresh(layout=True)

    def leave(self) -> None:
        """Close the screen; ``session`` says afterwards which jobs go on."""
        self._follower.close()
        self.exit()
