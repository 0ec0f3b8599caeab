"""What a model folder says of the model in it, without loading it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tui.facts.unknown import Unknown

DTYPE_BYTES: Mapping[str, float] = {
    "F64": 8,
    "F32": 4,
    "F16": 2,
    "BF16": 2,
    "I64": 8,
    "I32": 4,
    "I16": 2,
    "I8": 1,
    "U8": 1,
    "BOOL": 1,
    "F8_E4M3": 1,
    "F8_E5M2": 1,
    "F4": 0.5,
}
"""Bytes of one element, by the names that safetensors headers use."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """One tensor of a model: its name, its shape and the name of its type (``BF16``)."""

    name: str
    shape: tuple[int, ...]
    dtype: str

    @property
    def elements(self) -> int:
        """How many numbers it holds."""
        count = 1
        for side in self.shape:
            count *= side
        return count

    @property
    def bytes(self) -> int:
        """Its size in memory; 2 bytes an element where the type is not known here."""
        return int(self.elements * DTYPE_BYTES.get(self.dtype, 2))


@dataclass(frozen=True, slots=True)
class ModelShape:
    """The sides of a decoder, from ``config.json``.

    ``intermediate`` is what one token passes through: of experts, those that are chosen for it.
    ``qk_norm``: queries and keys are normalised, which keeps two more tensors for the backward pass.
    """

    hidden: int | None = None
    layers: int | None = None
    heads: int | None = None
    kv_heads: int | None = None
    head_dim: int | None = None
    intermediate: int | None = None
    vocabulary: int | None = None
    qk_norm: bool = False


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """A model folder.

    ``name`` is the folder's, or the hub's, name. ``tensors`` are the parameters that are loaded: an output
    matrix that is tied to the input embeddings counts once. ``file_bytes`` is the size of all weight files,
    ``missing`` the weight files that should be there and are not, ``truncated`` those that end too early.
    ``counted``: where the tensors come from; ``config``: worked out, since no weight file is there.
    ``quantization`` is the method that the files are stored in (``gptq``, ``awq``, ``fp8``), if any.
    """

    path: str
    name: str
    shape: ModelShape = field(default_factory=ModelShape)
    model_type: str | None = None
    dtype: str | None = None
    tied: bool = False
    tensors: tuple[Tensor, ...] = ()
    counted: str = "files"
    file_bytes: int | None = None
    missing: tuple[str, ...] = ()
    truncated: tuple[str, ...] = ()
    quantization: str | None = None
    multimodal: bool = False
    unknown: Unknown = field(default_factory=dict)

    @property
    def parameters(self) -> int:
        """How many numbers the known tensors hold."""
        return sum(tensor.elements for tensor in self.tensors)
