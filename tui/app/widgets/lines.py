"""The single lines around the panels: head, verdict, host, foot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual import events
from textual.message import Message

from tui.app.ink import Drawing, Ink, Line, Span, clipped, joined, line, line_width, spread
from tui.app.scene import Scene
from tui.app.verdict import verdict
from tui.app.widgets.panel import Panel
from tui.text.cells import clean, width
from tui.text.translate import tr
from tui.text.units import cpus, size, sizes

if TYPE_CHECKING:
    from tui.facts.machine import Disk, Host

_SHARED_MEMORY = "/dev/shm "  # noqa: S108  # its name, nothing is put there
_LOW_DISK = 0.10
_LOW_DISK_BYTES = 5 << 30


class OneLine(Panel, can_focus=False):
    """A panel of one line without a frame."""

    def one(self, scene: Scene, cells: int) -> Line:
        """The line."""
        raise NotImplementedError

    def draw(self, scene: Scene, width: int, height: int) -> Drawing:
        """The one line."""
        return Drawing("", [clipped(self.one(scene, width), width, scene.pen.glyphs)])


class HeadLine(OneLine):
    """The program, what kind of machine this is, and anything unusual about the screen itself."""

    def one(self, scene: Scene, cells: int) -> Line:
        """The name, tags, then platform and driver at the right."""
        spans = [Span("llamaherd", "strong"), Span(" ")]
        if scene.demo:
            spans += [Span(" DEMO ", "tag"), Span(" "), Span(tr("simulated GPUs"), "dim"), Span(" ")]
        if scene.readonly:
            spans += [Span(" " + tr("read only") + " ", "tag"), Span(" ")]
        if scene.paused:
            spans += [Span(" " + tr("drawing paused") + " ", "tag"), Span(" ")]
        return spread(tuple(spans), _machine(scene), cells)


def _machine(scene: Scene) -> Line:
    if scene.snapshot is None:
        return ()
    platforms = {"autodl": "AutoDL", "container": tr("container"), "host": tr("host")}
    parts = [line(Span(platforms[scene.snapshot.host.platform], "dim"))]
    if scene.snapshot.driver.version:
        parts.append(
            line(Span(tr("driver {version}", version=clean(scene.snapshot.driver.version, 20)), "dim"))
        )
    return joined(parts, scene.pen.separator, 60)


class VerdictLine(OneLine):
    """Is it training, how long still, is memory tight."""

    def one(self, scene: Scene, cells: int) -> Line:
        """The verdict."""
        return verdict(scene, cells)


class HostLine(OneLine):
    """Memory limit, disks and CPUs of the container."""

    def one(self, scene: Scene, cells: int) -> Line:
        """Parts in the order of their weight for a training."""
        if scene.snapshot is None:
            return ()
        return joined(_host_parts(scene.snapshot.host), scene.pen.separator, cells)


def _host_parts(host: Host) -> list[Line]:
    memory = host.memory
    full = memory.limit is not None and memory.used is not None and memory.used > 0.9 * memory.limit
    ink: Ink = "warn" if full else "plain"
    parts = [line(Span(tr("RAM") + " ", "label"), Span(sizes(memory.used, memory.limit), ink))]
    parts += [_disk_part(disk) for disk in host.disks]
    parts.append(line(Span("CPU ", "label"), Span(f"{cpus(host.cpu_used)}/{cpus(host.cpu_count)}")))
    if host.shm.free is not None:
        parts.append(line(Span(_SHARED_MEMORY, "label"), Span(tr("{size} free", size=size(host.shm.free)))))
    if host.oom_kills:
        parts.append(line(Span(tr("killed for lack of RAM: {count}", count=host.oom_kills), "warn")))
    return parts


def _disk_part(disk: Disk) -> Line:
    path = clean(disk.path, 40)
    low = disk.free is not None and (
        disk.free < _LOW_DISK_BYTES or ((disk.total or 0) > 0 and disk.free < _LOW_DISK * (disk.total or 1))
    )
    free = tr("{size} free", size=size(disk.free))
    return line(Span(f"{path} ", "label"), Span(free + (" !" if low else ""), "warn" if low else "plain"))


class FootLine(OneLine):
    """The keys of this screen; each can be clicked."""

    class Pressed(Message):
        """A key was clicked; ``command`` is its command's name."""

        def __init__(self, command: str) -> None:
            self.command = command
            super().__init__()

    def __init__(self, keys: Sequence[tuple[str, str, str]] = (), *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._keys = keys
        self._places: list[tuple[int, int, str]] = []

    def offer(self, keys: Sequence[tuple[str, str, str]]) -> None:
        """Other keys: (key, label, command)."""
        if tuple(keys) != tuple(self._keys):
            self._keys = tuple(keys)
            self.show(self._scene)

    def one(self, scene: Scene, cells: int) -> Line:
        """Key and label, as many as fit."""
        self._places = []
        spans: list[Span] = []
        for key, label, command in self._keys:
            start = line_width(spans)
            needed = width(key) + 1 + width(label)
            if start + needed > cells:
                break
            spans += [Span(key, "key"), Span(f" {label}", "dim"), Span("  ")]
            self._places.append((start, start + needed, command))
        return tuple(spans)

    def on_click(self, event: events.Click) -> None:
        """Find the key under the pointer."""
        offset = event.get_content_offset(self)
        if offset is None:
            return
        for start, end, command in self._places:
            if start <= offset.x < end:
                event.stop()
                self.post_message(self.Pressed(command))
