"""The cards: one line each where room is short, a card with graphs where there is plenty."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui.app.graphs import Pen, bar, columns_of, graph, spark
from tui.app.history import BUCKET
from tui.app.ink import EMPTY, Drawing, Ink, Line, Span, cell, clipped, joined, line, line_width, spread
from tui.app.late import driver_text, short_gpu_name
from tui.app.scene import Scene, is_stale, is_tight, memory_share
from tui.app.widgets.panel import Panel
from tui.text.cells import clean, cut_middle, wrap
from tui.text.translate import tr, tr_noop
from tui.text.units import age, percent, size, sizes, temperature, watts

if TYPE_CHECKING:
    from tui.facts.machine import Gpu
    from tui.facts.snapshot import Snapshot

_HOT = 84.0


class GpuPanel(Panel):
    """The cards with their memory, load, heat and short past."""

    about_text = tr_noop(
        "GPU memory: the bar shows what is used, then what the driver reserves, then what is free. Busy is"
        " the share of time in which the card computed; it says nothing about memory."
    )

    def draw(self, scene: Scene, width: int, height: int) -> Drawing:
        """One to five lines or more per card, by the room there is."""
        snapshot = scene.snapshot
        title = tr("GPU memory")
        if snapshot is None:
            return Drawing(title, [line(Span(tr("Reading the NVIDIA driver"), "dim"))])
        if not snapshot.gpus:
            return Drawing(title, no_gpu_lines(snapshot, width))
        rows = max(1, height // len(snapshot.gpus))
        names = max(len(short_gpu_name(card.name)) for card in snapshot.gpus)
        lines: list[Line] = []
        for card in snapshot.gpus:
            drawn = _card(scene, card, width, rows, min(names, 18))
            lines += drawn
        return Drawing(title, lines, _note(snapshot))


def no_gpu_lines(snapshot: Snapshot, cells: int) -> list[Line]:
    """Why there is no card, and what still works."""
    error = snapshot.driver.error
    advice = ""
    if snapshot.host.gpu_mode == "none":
        text = tr("This instance was started without a GPU. Trainings on the CPU are still shown.")
    elif error is not None:
        text, advice = driver_text(error)
    else:
        text = tr("No GPU was found.")
    lines = [line(Span(part, "strong")) for part in wrap(text, cells)]
    return lines + [line(Span(part, "dim")) for part in (wrap(advice, cells) if advice else ())]


def _note(snapshot: Snapshot) -> str:
    if snapshot.driver.error is not None:
        return driver_text(snapshot.driver.error)[0]
    return ""


def _card(scene: Scene, card: Gpu, cells: int, rows: int, name_cells: int) -> list[Line]:
    if card.state != "ok":
        text = (
            tr("the card does not answer any more")
            if card.state == "lost"
            else tr("the driver reported an error")
        )
        first = clipped(
            line(Span(f"{card.index} {short_gpu_name(card.name)}  ", "strong"), Span(text, "bad")), cells
        )
        return [first, *[EMPTY] * (rows - 1)]
    if rows == 1:
        return [_row(scene, card, cells, name_cells)]
    if rows == 2:
        return [_row(scene, card, cells, name_cells), _past(scene, card, cells, 2 + name_cells + 1)]
    return _tall(scene, card, cells, rows)


def memory_ink(card: Gpu) -> Ink:
    """Calm while there is room, a warning when it is tight; the figures beside it say the same."""
    share = memory_share(card)
    if share is None:
        return "track"
    return "warn" if is_tight(card) else "good"


def _memory_bar(card: Gpu, cells: int, pen: Pen) -> Line:
    total = card.memory.total
    reserved = (card.memory.reserved or 0) / total if total else 0.0
    return bar(memory_share(card), cells, pen, memory_ink(card), reserved)


def _row(scene: Scene, card: Gpu, cells: int, name_cells: int) -> Line:
    name = cut_middle(short_gpu_name(card.name), name_cells, scene.pen.glyphs)
    head = line(cell(str(card.index), 2, "accent"), cell(name, name_cells + 1, "strong"))
    dim: Ink = "dim" if is_stale(card) else "plain"
    tail = line(
        Span(" "),
        cell(sizes(card.memory.used, card.memory.total), 14, dim, "right"),
        *_figures(card, wide=cells >= 76),
    )
    if is_stale(card):
        tail = (*tail, Span("  " + age(card.age), "warn"))
    room = cells - line_width(head) - line_width(tail)
    past: Line = ()
    if room >= 44 and not is_stale(card):
        columns = room // 3
        past = (Span("  " + spark(scene.history.busy(card.uuid), columns - 2, scene.pen), "heat"),)
    return clipped(
        (*head, *_memory_bar(card, max(4, room - line_width(past)), scene.pen), *tail, *past), cells
    )


def _figures(card: Gpu, *, wide: bool) -> Line:
    heat: Ink = "warn" if card.temperature is not None and card.temperature >= _HOT else "plain"
    figures = [
        cell(percent(card.utilization), 5, "plain", "right"),
        cell(temperature(card.temperature), 5, heat, "right"),
    ]
    if wide:
        figures.append(cell(watts(card.power, card.power_limit), 10, "plain", "right"))
    return tuple(figures)


def _past(scene: Scene, card: Gpu, cells: int, indent: int) -> Line:
    """Under a row: the load of the last minutes, and the peak of memory."""
    head = cell(tr("busy"), 6, "label")
    peak = (
        line(Span("  " + tr("peak {size}", size=size(card.peak_memory)), "dim")) if card.peak_memory else ()
    )
    columns = cells - indent - 6 - line_width(peak)
    if columns < 8:
        return EMPTY
    busy = spark(scene.history.busy(card.uuid), columns, scene.pen)
    return line(Span(" " * indent), head, Span(busy, "heat"), *peak)


def _tall(scene: Scene, card: Gpu, cells: int, rows: int) -> list[Line]:
    """A card of its own: name, memory bar, load, then graphs of the past in what is left."""
    head = line(Span(f"{card.index} ", "accent"), Span(short_gpu_name(card.name), "strong"))
    lines = [
        spread(head, _state_note(card), cells),
        _labelled(tr("memory"), _memory_bar(card, _bar_cells(cells), scene.pen), _memory_words(card), cells),
        _labelled(
            tr("busy"),
            bar(card.utilization, _bar_cells(cells), scene.pen, "accent"),
            clipped(line(Span(" "), *_figures(card, wide=True)), cells),
            cells,
        ),
    ]
    left = rows - len(lines)
    if left >= 2:
        lines += _graphs(scene, card, cells, left - (1 if left > 3 and len(scene.gpus) > 1 else 0))
    return [*lines, *[EMPTY] * (rows - len(lines))]


_LABEL = 8
_WORDS = 31


def _bar_cells(cells: int) -> int:
    return max(8, cells - _LABEL - _WORDS)


def _labelled(label: str, drawn: Line, words: Line, cells: int) -> Line:
    return clipped((cell(label, _LABEL, "label"), *drawn, *words), cells)


def _memory_words(card: Gpu) -> Line:
    free = Span(tr("{size} free", size=size(card.memory.free)), "warn" if is_tight(card) else "dim")
    return line(Span(" "), Span(sizes(card.memory.used, card.memory.total)), Span("  "), free)


def _state_note(card: Gpu) -> Line:
    parts: list[Line] = []
    if is_stale(card):
        parts.append(line(Span(tr("figures from {age}", age=age(card.age)), "warn")))
    if card.throttle:
        reasons = ", ".join(clean(code, 24).replace("_", " ") for code in card.throttle)
        parts.append(line(Span(tr("slowed: {reasons}", reasons=reasons), "warn")))
    if card.peak_memory is not None:
        parts.append(line(Span(tr("peak {size}", size=size(card.peak_memory)), "dim")))
    return joined(parts, "  ", 60)


def _graphs(scene: Scene, card: Gpu, cells: int, rows: int) -> list[Line]:
    """Memory on the left, load on the right, both over the same time."""
    columns = (cells - 2) // 2
    labels = line(
        cell(
            tr("memory, last {minutes} min", minutes=_minutes(columns_of(columns, scene.pen))),
            columns + 2,
            "label",
        ),
        Span(tr("busy"), "label"),
    )
    memory = graph(scene.history.memory(card.uuid), columns, rows - 1, scene.pen)
    busy = graph(scene.history.busy(card.uuid), columns, rows - 1, scene.pen)
    ink = memory_ink(card)
    drawn = [
        line(Span(left, ink), Span("  "), Span(right, "heat"))
        for left, right in zip(memory, busy, strict=True)
    ]
    return [clipped(labels, cells), *drawn]


def _minutes(columns: int) -> int:
    return round(columns * BUCKET / 60)
