"""The program: ``llamaherd``, ``python -m tui``."""

import sys


def main() -> int:
    """Run the command line of this process and give its exit code."""
    from tui.cli.run import run

    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
