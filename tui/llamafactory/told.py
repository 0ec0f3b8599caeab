"""What a console log tells of the settings that a run really uses, and of events worth counting.

The texts are those of LLaMA-Factory 0.9.4 to 0.9.6, DeepSpeed, torch, SwanLab and W&B.
"""

import re
from collections import Counter
from dataclasses import replace

from tui.facts.secrets import mask_text
from tui.facts.training import Attention, NotedEvent, Told

_ADDRESS_LIMIT = 300
_LINE_LIMIT = 2000

_PROCESS = re.compile(
    r"Process rank: \d{1,5}, world size: (\d{1,6}), .{0,200}?compute dtype: (?:torch\.)?(\w{1,20})"
)
_METHOD = re.compile(r"Fine-tuning method: (\w{1,20})")
_QUANTIZED = re.compile(r"(?:Quantizing model to|Loading) (\d{1,2})[ -]bit")
_ZERO_STAGE = re.compile(r"ZeRO [Ss]tage (\d)|DeepSpeed ZeRO(3) detected")
_SAVING = re.compile(r"Saving model checkpoint to (\S.{0,4095})")
_CHECKPOINT_END = re.compile(r"[/\\]checkpoint-\d{1,12}[/\\]?$")
_TRACKER = re.compile(
    r"(?:swanlab|wandb): .{0,80}?(?:View run .{0,120}?at:? |saved locally in )"
    r"(https?://[^\s\x1b]{1,300}|[/.~\w][^\s\x1b]{0,300})"
)

_ATTENTION: tuple[tuple[str, Attention], ...] = (
    ("Using FlashAttention-2 for", "fa2"),
    ("Using FlashAttention-3", "fa3"),
    ("Using torch SDPA", "sdpa"),
    ("Using vanilla attention", "eager"),
    ("FlashAttention-2 is not installed, use eager", "eager"),
)
_EVENTS: tuple[tuple[NotedEvent, re.Pattern[str]], ...] = (
    (
        "allocation_retry",
        re.compile(
            r"allocator cache flushes since last step|[Mm]emory allocation .{0,80}fail"
            r"|CUDACachingAllocator.{0,200}(?:fail|retry|out of memory)|Plan failed .{0,90}OutOfMemory"
        ),
    ),
    (
        "fp16_overflow",
        re.compile(r"OVERFLOW! .{0,40}Skipping step|[Gg]radient overflow\.? .{0,20}[Ss]kipping"),
    ),
    ("dropped_sample", re.compile(r"^Dropped (?:lengthy|invalid) example")),
    ("over_long_sample", re.compile(r"Token indices sequence length is longer than")),
)
_EVENT_WORDS = ("alloc", "OVERFLOW", "verflow", "Dropped ", "Token indices", "Plan failed")


class ToldReader:
    """Takes messages of records and bare lines, in the order of the log."""

    def __init__(self) -> None:
        self._told = Told()
        self._events: Counter[NotedEvent] = Counter()

    def facts(self) -> Told:
        """All of it, frozen."""
        return replace(self._told, events=dict(self._events))

    def message(self, message: str) -> None:
        """The text of a logger's record."""
        told = self._told
        if (process := _PROCESS.match(message)) is not None:
            dtype = "float32" if process[2] == "None" else process[2]
            self._told = replace(told, world_size=int(process[1]), compute_dtype=dtype)
        elif (method := _METHOD.match(message)) is not None:
            self._told = replace(told, finetuning=method[1].lower())
        elif message.startswith("Gradient checkpointing enabled"):
            self._told = replace(told, gradient_checkpointing=True)
        elif message.startswith("Liger kernel has been applied"):
            self._told = replace(told, liger=True)
        elif (bits := _QUANTIZED.match(message)) is not None:
            self._told = replace(told, quantization=int(bits[1]))
        elif message.startswith("trainable params: "):
            # Everything that is switched on has been said by now.
            self._told = replace(
                told,
                gradient_checkpointing=bool(told.gradient_checkpointing),
                liger=bool(told.liger),
                quantization=told.quantization or 0,
            )
        elif (saving := _SAVING.match(message)) is not None:
            self._told = replace(told, output_dir=_CHECKPOINT_END.sub("", mask_text(saving[1].rstrip())))
        elif (
            attention := next((kind for start, kind in _ATTENTION if message.startswith(start)), None)
        ) is not None:
            self._told = replace(told, attention=attention)
        else:
            self._other(message)

    def line(self, text: str) -> None:
        """A line that no logger wrote."""
        if text.startswith(("swanlab:", "wandb:")) and (tracker := _TRACKER.match(text)) is not None:
            self._told = replace(self._told, tracker=mask_text(tracker[1])[:_ADDRESS_LIMIT])
        else:
            self._other(text)

    def _other(self, text: str) -> None:
        if "ZeRO" in text and (stage := _ZERO_STAGE.search(text)) is not None:
            self._told = replace(self._told, zero_stage=int(stage[1] or stage[2]))
        if any(word in text for word in _EVENT_WORDS):
            for event, pattern in _EVENTS:
                if pattern.search(text[:_LINE_LIMIT]) is not None:
                    self._events[event] += 1
