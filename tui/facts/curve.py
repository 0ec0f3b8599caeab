"""Curves over the steps of a run, ready to be drawn."""

from dataclasses import dataclass
from typing import Literal

CurveName = Literal["loss", "eval_loss", "learning_rate", "grad_norm", "gpu_memory"]


@dataclass(frozen=True, slots=True)
class Curve:
    """``points`` are finite and in order: the step (for ``gpu_memory`` the seconds since the first sample)
    and the value, ``gpu_memory`` in bytes. ``broken`` are the places where the value was logged as ``nan`` or
    infinite. ``label`` tells curves of one name apart: a card's uuid.
    """

    name: CurveName
    points: tuple[tuple[float, float], ...]
    broken: tuple[float, ...] = ()
    label: str = ""
