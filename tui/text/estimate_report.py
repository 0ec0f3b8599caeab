"""Steps, memory and token lengths of a training before it starts, in words."""

from collections.abc import Sequence

from tui.facts.estimate import Estimate
from tui.facts.memory import (
    ByteRange,
    Calibration,
    CheckName,
    FitCheck,
    MemoryEstimate,
    MemoryReason,
    Moment,
    PartName,
    RuleOfThumb,
    Verdict,
)
from tui.facts.steps import LengthProgress
from tui.text import units
from tui.text.layout import Cell, Column, Page, Table
from tui.text.length_report import length_lines
from tui.text.outside import outside
from tui.text.step_report import step_lines
from tui.text.translate import tr, tr_noop

_LEAST_WIDTH = 40

PARTS: dict[PartName, str] = {
    "weights": tr_noop("weights"),
    "reference": tr_noop("reference model"),
    "adapter": tr_noop("adapter"),
    "gradients": tr_noop("gradients"),
    "optimizer": tr_noop("optimizer states"),
    "activations": tr_noop("activations"),
    "logits": tr_noop("logits and their copies"),
    "casts": tr_noop("weights in the type of the calculation"),
    "gathered": tr_noop("fetched from other cards, buffers"),
    "framework": tr_noop("driver context and libraries"),
}
MOMENTS: dict[Moment, str] = {
    "load": tr_noop("after loading"),
    "layers": tr_noop("in the layers' backward pass"),
    "logits": tr_noop("at the loss"),
    "optimizer": tr_noop("at the optimizer step"),
    "evaluation": tr_noop("during an evaluation"),
}
MEMORY_REASONS: dict[MemoryReason, str] = {
    "lengths_unknown": tr_noop(
        "Lengths are not measured: the longest sample is taken to have between half the limit and the limit."
        " `llamaherd check CONFIG --lengths` measures them."
    ),
    "lengths_vary": tr_noop(
        "Batches of different length leave unused blocks in torch's cache, more or fewer by their order."
    ),
    "context_size": tr_noop("The driver's context differs with card and version."),
    "communication": tr_noop("Buffers of the communication between cards differ with their connection."),
    "optimizer_unknown": tr_noop("What this optimizer keeps is not known here."),
    "optimizer_paged": tr_noop("A paged optimizer moves its states to the host when the card is full."),
    "optimizer_temporaries": tr_noop("The optimizer's step may need a copy of what is trained."),
    "quantization_overhead": tr_noop("How this quantization stores its scales is not known here."),
    "counted_from_config": tr_noop("There are no weight files: parameters are worked out from config.json."),
    "files_incomplete": tr_noop(
        "Weight files are missing or cut short: the weights are at least this large."
    ),
    "architecture_unknown": tr_noop(
        "The shape of this model is not known: what its passes need cannot be worked out."
    ),
    "multimodal": tr_noop("What images, video or sound need is not in it."),
    "experts": tr_noop("How tokens spread over the experts is not in it."),
    "gradient_precision": tr_noop("DeepSpeed may gather gradients in 16 or in 32 bits."),
    "gather_size": tr_noop("How many parameters are fetched ahead depends on their use."),
    "stage_not_modelled": tr_noop("This stage is estimated as supervised training of as many sequences."),
    "liger_unsupported": tr_noop("The liger kernel is not used: it is not installed, or not for this model."),
    "unsloth": tr_noop("What unsloth saves is not in it."),
    "sharding_unknown": tr_noop("How weights are shared among the cards could not be read."),
    "world_unknown": tr_noop("The number of cards is not known: one is taken."),
    "kernels_vary": tr_noop("Kernels keep more or fewer tensors."),
    "model_absent": tr_noop("The model is not on this machine: download it, or name its folder."),
    "vocabulary_resized": tr_noop("What new tokens add is not in it."),
}
_QUESTIONS: dict[CheckName, str] = {
    "disk": tr_noop("model files on the disk"),
    "weights": tr_noop("weights on a card"),
    "training": tr_noop("training on a card"),
}
_VERDICTS: dict[Verdict, str] = {
    "fits": tr_noop("fits"),
    "tight": tr_noop("may fit, may not"),
    "does_not_fit": tr_noop("does not fit"),
    "unknown": tr_noop("unknown"),
}


def estimate_report(result: Estimate, width: int = 80, colour: bool = False, ascii: bool = False) -> str:
    """The whole estimate: steps, memory, lengths if they were measured."""
    page = Page(max(_LEAST_WIDTH, width), colour, ascii)
    sections = [step_lines(page, result.steps), memory_lines(page, result)]
    if result.lengths is not None:
        sections.append(length_lines(page, result.lengths, result.summary))
    return "\n\n".join("\n".join(lines) for lines in sections)


def progress_text(progress: LengthProgress) -> str:
    """How far a measurement of lengths is, as one line."""
    return tr(
        "{count} samples measured, {time}", count=progress.samples, time=units.duration(progress.seconds)
    )


def memory_lines(page: Page, result: Estimate) -> list[str]:
    """The memory by part, the two figures, whether it fits, and the rule of thumb."""
    memory = result.memory
    lines = [page.heading(tr("Memory of each card"))]
    if result.model:
        lines += page.paragraph(_model_line(result), 2)
    if memory.needed is None:
        why = memory.unknown.get("needed", "not_yet")
        text = tr("How much is needed is unknown: {reason}.", reason=units.reason(why))
        lines += page.paragraph(text, 2)
    lines += _part_table(memory, page)
    lines += _figure_lines(memory, page)
    lines += [line for part in memory.host for line in page.paragraph(_host_line(part.name, part.bytes), 2)]
    lines += _check_lines(result.checks, page)
    if memory.rule is not None:
        lines += page.paragraph(_rule_line(memory.rule), 2)
    lines += [line for entry in result.measured for line in page.paragraph(_measured_line(entry), 2)]
    reasons = [*memory.reasons, *(reason for part in memory.parts for reason in part.reasons)]
    for reason in dict.fromkeys(reasons):
        lines += page.paragraph(tr(MEMORY_REASONS[reason]), 4, "dim")
    return lines


def between(size: ByteRange | None) -> str:
    """A range of bytes, ``8.5 - 9.0 GiB``; one figure where both ends look the same."""
    if size is None:
        return units.UNKNOWN
    low, high = units.size(size.low), units.size(size.high)
    if low == high:
        return high
    number, _, unit = low.partition(" ")
    return f"{number} - {high}" if high.endswith(f" {unit}") else f"{low} - {high}"


def _model_line(result: Estimate) -> str:
    name = outside(result.model or "")
    if result.parameters is None:
        return name
    text = tr("{model}: {count} parameters", model=name, count=f"{result.parameters:,}")
    lacking = (*result.missing, *result.truncated)
    if lacking:
        shown = tr(", ").join(outside(file, 60) for file in lacking[:4])
        return tr("{what}; missing or cut short: {files}", what=text, files=shown)
    return text


def _part_table(memory: MemoryEstimate, page: Page) -> list[str]:
    rows: list[Sequence[Cell]] = [
        (Cell(tr(PARTS[part.name])), Cell(between(part.bytes))) for part in memory.parts
    ]
    return Table([Column(), Column(align="right")], rows).lines(page, 2) if rows else []


def _figure_lines(memory: MemoryEstimate, page: Page) -> list[str]:
    if memory.needed is None or memory.moment is None:
        return []
    needed = tr(
        "Needed at once: {size}, most {moment}.",
        size=between(memory.needed),
        moment=tr(MOMENTS[memory.moment]),
    )
    lines = page.paragraph(needed, 2, "bold")
    training = [size for moment, size in memory.moments.items() if moment != "evaluation"]
    if memory.moment == "evaluation" and training:
        most = max(training, key=lambda size: size.high)
        text = tr("Training alone needs {size}: see per_device_eval_batch_size.", size=between(most))
        lines += page.paragraph(text, 2)
    reserved = tr(
        "Likely shown as in use: {size}, since torch keeps what it once had.", size=between(memory.reserved)
    )
    return [*lines, *page.paragraph(reserved, 2)]


def _host_line(name: PartName, size: ByteRange) -> str:
    return tr("In the host's memory: {what}, {size}.", what=tr(PARTS[name]), size=between(size))


def _check_lines(checks: Sequence[FitCheck], page: Page) -> list[str]:
    rows: list[Sequence[Cell]] = []
    for check in checks:
        have = tr("of {size} free", size=units.size(check.have)) if check.have is not None else ""
        rows.append(
            (
                Cell(tr(_QUESTIONS[check.name])),
                Cell(between(check.need)),
                Cell(have),
                Cell(tr(_VERDICTS[check.verdict]), "bad" if check.verdict == "does_not_fit" else "plain"),
            )
        )
    columns = [Column(), Column(align="right"), Column(), Column()]
    return Table(columns, rows).lines(page, 2) if rows else []


def _rule_line(rule: RuleOfThumb) -> str:
    return tr(
        "Rule of thumb, for LoRA on one card: {total} GB = {weights} weights + {framework} framework"
        " + {adapter} adapter + {activations} for {tokens} thousand tokens.",
        total=_short(rule.total),
        weights=_short(rule.weights),
        framework=_short(rule.framework),
        adapter=_short(rule.adapter),
        activations=_short(rule.activations),
        tokens=_short(rule.thousand_tokens),
    )


def _measured_line(entry: Calibration) -> str:
    return tr(
        "Measured with {model} on {card} ({method}): {measured}; the estimate was {estimate}.",
        model=outside(entry.model, 60),
        card=outside(entry.card, 60),
        method=outside(entry.method, 40),
        measured=units.size(entry.measured),
        estimate=between(entry.reserved),
    )


def _short(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0")
