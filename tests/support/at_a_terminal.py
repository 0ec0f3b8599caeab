"""Runs a shell line at a pseudo-terminal: ``python at_a_terminal.py FOLDER LINE WORD KEY``.

Types KEY as soon as WORD was drawn, and gives the line's exit code. It needs nothing installed, so that
it can try a README's line on a machine that has nothing yet.
"""

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time

DEADLINE = 600.0


def main(folder: str, line: str, word: str, key: str) -> int:
    """The exit code of the line; 1 if it does not draw WORD and end in time."""
    terminal, inside = pty.openpty()
    fcntl.ioctl(inside, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
    environment = {**os.environ, "TERM": "xterm-256color", "LANG": "C.UTF-8"}
    shell = subprocess.Popen(
        ["bash", "-c", line],
        cwd=folder,
        env=environment,
        stdin=inside,
        stdout=inside,
        stderr=inside,
        start_new_session=True,
    )
    os.close(inside)
    drawn, typed = b"", False
    deadline = time.monotonic() + DEADLINE
    while time.monotonic() < deadline:
        if select.select([terminal], [], [], 0.2)[0]:
            try:
                drawn = (drawn + os.read(terminal, 65536))[-200_000:]
            except OSError:  # the terminal's other end is closed
                break
        elif shell.poll() is not None:
            break
        if not typed and word.encode() in drawn:
            os.write(terminal, key.encode())
            typed = True
    if shell.poll() is None and time.monotonic() >= deadline:
        shell.kill()
    code = shell.wait()
    if not typed:
        sys.stderr.write(drawn[-4000:].decode(errors="replace") + f"\n{word} was not drawn\n")
        return 1
    return code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
