"""Sends the terminal only the cells that changed.

Textual writes a widget's whole region at every refresh. Here the last frame is kept, and what leads from
it to the new one is written (``frame.py``).

A terminal that does not read (a stalled link) would block the event loop after thirty writes. So a
frame is not written while earlier ones still wait; the next one that is catches up.

This is the only file that uses Textual's private names (``App._display``, ``Screen._compositor``, the
driver's writer thread). Where they are missing everything goes Textual's own way.
"""

from rich.color import ColorSystem
from rich.console import RenderableType
from textual.app import App
from textual.geometry import Offset
from textual.screen import Screen
from textual.strip import Strip

from tui.app.frame import Frame

_RETRY = 0.25
"""Seconds until a frame that had to wait for a slow terminal is tried again."""


class DiffedApp(App[None]):
    """An app that writes only changed cells. ``frame_diff`` off: Textual's own way."""

    def __init__(self, *, frame_diff: bool = True) -> None:
        super().__init__()
        self._frame: Frame | None = None
        self._shown_screen: Screen[object] | None = None
        self._retrying = False
        self._diffs = frame_diff and hasattr(App, "_display")

    def on_mount(self) -> None:
        """Textual calls this in every class of the app."""
        self.app_resume_signal.subscribe(self, lambda _: self.forget_frame())

    def forget_frame(self) -> None:
        """Something else has written over the terminal: send the next frame whole."""
        if self._frame is not None:
            self._frame.forget()

    def frame(self) -> list[Strip]:
        """The lines of the whole screen as they are now, for pictures."""
        return list(self.screen._compositor.render_strips())

    def _display(self, screen: Screen[object], renderable: RenderableType | None) -> None:
        if renderable is None or self._batch_count or not self._can_diff():
            self.forget_frame()
            super()._display(screen, renderable)
            return
        try:
            self._send(self.screen)
        finally:
            self.post_display_hook()

    def _can_diff(self) -> bool:
        driver = self._driver
        return (
            self._diffs
            and self._running
            and not self._closed
            and driver is not None
            and not driver.is_headless
            and not driver.is_inline
            and hasattr(self.screen, "_compositor")
        )

    def _send(self, screen: Screen[object]) -> None:
        driver = self._driver
        if driver is None:
            return
        if self._terminal_is_behind():
            if not self._retrying:
                self._retrying = True
                self.set_timer(_RETRY, self._retry)
            return
        if self._frame is None:
            self._frame = Frame(self.console._color_system or ColorSystem.TRUECOLOR)
        if screen is not self._shown_screen:
            self._shown_screen = screen
            self._frame.forget()
        changes = self._frame.update(screen._compositor.render_strips())
        cursor = screen.outer_size.clamp_offset(self.cursor_position)
        if cursor != Offset(0, 0) and (changes or cursor != self._previous_cursor_position):
            changes += f"\x1b[{cursor.y + 1};{cursor.x + 1}H"  # an input method opens its window here
        self._previous_cursor_position = cursor
        if changes:
            self._begin_update()
            driver.write(changes)
            self._end_update()
            driver.flush()

    def _terminal_is_behind(self) -> bool:
        queue = getattr(getattr(self._driver, "_writer_thread", None), "_queue", None)
        return queue is not None and queue.qsize() > 1

    def _retry(self) -> None:
        self._retrying = False
        if self._can_diff():
            self._send(self.screen)
