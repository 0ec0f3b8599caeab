"""Every deed of the screen: one class gives its keys, its label, its help, and does it.

Binding, footer, help, palette and the read-only guard all come from these classes, so they cannot
drift apart. No key needs Ctrl (tmux, screen, browsers and input methods take those), and a deed that
changes something is a capital letter or asks first.
"""

from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType

from tui.text.translate import tr

if TYPE_CHECKING:
    from tui.app.app import HerdApp

_KEY_NAMES = {
    "question_mark": "?",
    "colon": ":",
    "escape": "Esc",
    "space": "Space",
    "slash": "/",
    "enter": "Enter",
}


class Command:
    """One deed. ``label`` stands in the footer (short), ``help`` says what it does in one sentence."""

    name: ClassVar[str]
    keys: ClassVar[tuple[str, ...]]
    label: ClassVar[str]
    help: ClassVar[str]
    foot: ClassVar[bool] = True
    changes: ClassVar[bool] = False
    """Whether it does something to a job: refused when read only."""
    danger: ClassVar[bool] = False

    @classmethod
    def available(cls, app: "HerdApp") -> bool:
        """Whether it makes sense now; else it is left out of the footer and the palette."""
        return not (cls.changes and app.options.readonly)

    @classmethod
    def run(cls, app: "HerdApp") -> None:
        """Do it."""
        raise NotImplementedError

    @classmethod
    def binding(cls) -> Binding:
        """What Textual binds."""
        return Binding(",".join(cls.keys), f"app.deed('{cls.name}')", cls.label, show=False, id=cls.name)


def bindings(commands: tuple[type[Command], ...]) -> list[BindingType]:
    """What Textual binds."""
    return [command.binding() for command in commands]


def key_name(key: str) -> str:
    """A key as it is written on the keyboard."""
    return _KEY_NAMES.get(key, key.upper() if key.startswith("f") and key[1:].isdigit() else key)


def foot_keys(commands: tuple[type[Command], ...], app: "HerdApp") -> list[tuple[str, str, str]]:
    """(key, label, name) of what the footer offers now."""
    return [
        (key_name(command.keys[0]), tr(command.label), command.name)
        for command in commands
        if command.foot and command.available(app)
    ]
