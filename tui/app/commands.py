"""The deeds of the whole program; those of the log view are in ``log_commands.py``."""

from typing import TYPE_CHECKING

from tui.app.command import Command
from tui.app.log_commands import IN_LOG
from tui.app.scene import LIVE
from tui.text.translate import tr_noop

if TYPE_CHECKING:
    from tui.app.app import HerdApp


class ShowOverview(Command):
    """Back to everything at a glance."""

    name = "overview"
    keys = ("1",)
    label = tr_noop("overview")
    help = tr_noop("Everything at a glance: cards, training, owners, jobs, findings.")
    foot = False

    @classmethod
    def run(cls, app: "HerdApp") -> None:
        """Leave whatever lies above the overview."""
        app.back_to_overview()


class ShowOwners(Command):
    """The whole owners table."""

    name = "owners"
    keys = ("2", "o")
    label = tr_noop("owners")
    help = tr_noop("Every process that holds GPU memory, and the memory that no process explains.")

    @classmethod
    def run(cls, app: "HerdApp") -> None:
        """Open it."""
        app.open_owners()


class ShowLog(Command):
    """The log of the job in focus."""

    name = "log"
    keys = ("3", "l", "f3")
    label = tr_noop("log")
    help = tr_noop("The log of the chosen job: follow, search, jump to the first error.")

    @classmethod
    def available(cls, app: "HerdApp") -> bool:
        """There must be a job."""
        return app.scene.main is not None

    @classmethod
    def run(cls, app: "HerdApp") -> None:
        """Open it."""
        app.open_log()


class StartRun(Command):
    """Start a training from a YAML file."""

    name = "start"
    keys = ("n", "f2")
    label = tr_noop("start")
    help = tr_noop("Start a training: choose a YAML file, see the command, then confirm.")
    changes = True

    @classmethod
    def run(cls, app: "HerdApp") -> None:
        """Open the choice of files; nothing starts before it is confirmed."""
        app.open_start()


class StopRun(Command):
    """Stop the job in focus."""

    name = "stop"
    keys = ("X", "f9")
    label = tr_noop("stop")
    help = tr_noop("Stop the chosen job: says what is lost, asks, then shows every step until all is gone.")
    changes = True
    danger = True

    @classmethod
    def available(cls, app: "HerdApp") -> bool:
        """Something must be alive."""
        return super().available(app) and bool(app.scene.live)

    @classmethod
    def run(cls, app: "HerdApp") -> None:
        """Ask first."""
        app.open_stop()


class Pause(Command):
    """Stop drawing, go on collecting."""

    name = "pause"
    keys = ("p", "space")
    label = tr_noop("pause")
    help = tr_noop("Stop drawing, for reading or selecting; figures are collected all the same.")

    @classmethod
    def run(cls, app: "HerdApp") -> None:
        """Toggle."""
        app.toggle_pause()


class SwitchLanguage(Command):
    """The other language."""

    name = "language"
    keys = ("L", "f4")
    label = tr_noop("中文")
    help = tr_noop("Speak the other language: English or Chinese.")

    @classmethod
    def run(cls, app: "HerdApp") -> None:
        """Switch at once."""
        app.switch_language()


class SwitchTheme(Command):
    """Dark or light."""

    name = "theme"
    keys = ("T",)
    label = tr_noop("colours")
    help = tr_noop("Dark or light colours.")
    foot = False

    @classmethod
    def run(cls, app: "HerdApp") -> None:
        """Switch at once."""
        app.switch_theme()


class Repaint(Command):
    """Paint everything anew."""

    name = "repaint"
    keys = ("r", "f5")
    label = tr_noop("repaint")
    help = tr_noop("Paint the whole screen anew, when something else has written over it.")
    foot = False

    @classmethod
    def run(cls, app: "HerdApp") -> None:
        """Send every cell."""
        app.repaint()


class FailDemo(Command):
    """Let the demo's run fail."""

    name = "fail_demo"
    keys = ("F",)
    label = tr_noop("let it fail")
    help = tr_noop("Demo only: start a run that ends out of GPU memory, at a stage of your choice.")

    @classmethod
    def available(cls, app: "HerdApp") -> bool:
        """Only in the demo."""
        return app.options.demo

    @classmethod
    def run(cls, app: "HerdApp") -> None:
        """Choose the stage."""
        app.open_start()


class ShowHelp(Command):
    """Keys and words."""

    name = "help"
    keys = ("question_mark", "f1")
    label = tr_noop("help")
    help = tr_noop("The keys, and what the panel in focus shows.")

    @classmethod
    def run(cls, app: "HerdApp") -> None:
        """Open it."""
        app.open_help()


class Palette(Command):
    """Find a command by its name."""

    name = "palette"
    keys = ("colon", "ctrl+p")
    label = tr_noop("commands")
    help = tr_noop("Find a command by typing a part of its name.")
    foot = False

    @classmethod
    def run(cls, app: "HerdApp") -> None:
        """Open Textual's palette, which asks the app for these commands."""
        app.action_command_palette()


class Leave(Command):
    """Close the screen; jobs go on."""

    name = "leave"
    keys = ("q", "f10", "ctrl+c")
    label = tr_noop("leave")
    help = tr_noop("Close this screen. Jobs go on, and the next start finds them.")

    @classmethod
    def run(cls, app: "HerdApp") -> None:
        """Leave at once: nothing is lost by it."""
        app.leave()


class Back(Command):
    """To the screen below."""

    name = "back"
    keys = ("escape",)
    label = tr_noop("back")
    help = tr_noop("Back to the overview.")

    @classmethod
    def available(cls, app: "HerdApp") -> bool:
        """There must be something to leave."""
        return len(app.screen_stack) > 1

    @classmethod
    def run(cls, app: "HerdApp") -> None:
        """Close the uppermost screen."""
        if len(app.screen_stack) > 1:
            app.pop_screen()


GLOBAL: tuple[type[Command], ...] = (
    StartRun,
    StopRun,
    ShowLog,
    ShowOwners,
    ShowHelp,
    Leave,
    FailDemo,
    Pause,
    SwitchLanguage,
    ShowOverview,
    SwitchTheme,
    Repaint,
    Palette,
    Back,
)
COMMANDS = (*GLOBAL, *IN_LOG)
BY_NAME: dict[str, type[Command]] = {command.name: command for command in COMMANDS}


def live_choice(app: "HerdApp") -> str | None:
    """The job that a stop is about: the chosen one if it lives, else the only one that can be meant."""
    chosen = app.scene.job(app.scene.chosen)
    if chosen is not None and chosen.state in LIVE:
        return chosen.id
    ours = [job for job in app.scene.live if job.folder is not None]
    candidates = ours or app.scene.live
    return candidates[0].id if len(candidates) == 1 else None
