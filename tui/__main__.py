"""The program: ``llamaherd``, ``python -m tui``. Without a subcommand it opens the screen."""

import sys

from tui.cli.screen import ScreenWishes


def main() -> int:
    """Run the command line of this process and give its exit code."""
    from tui.cli.run import run

    return run(sys.argv[1:], _open_screen)


def _open_screen(wishes: ScreenWishes) -> int:
    # Here, because the command line and the screen do not know each other.
    from tui.app import Options, run

    return run(
        Options(
            demo=wishes.demo,
            readonly=wishes.settings.readonly,
            language=wishes.language,
            ascii=wishes.ascii,
            mouse=wishes.mouse,
            settings=wishes.settings,
        )
    )


if __name__ == "__main__":
    sys.exit(main())
