"""Whether a model's or an adapter's folder can be loaded: what must lie in it, read without loading."""

from dataclasses import dataclass
from pathlib import Path

from tui.facts.weights import ModelFacts
from tui.llamafactory.installed import is_file
from tui.llamafactory.json_file import JsonFileError, JsonProblem, read_json_file, text_in
from tui.llamafactory.safetensors import read_header
from tui.llamafactory.weights import read_model as read_weights

_TOKENIZERS = ("tokenizer.json", "vocab.json", "vocab.txt", "*.model", "*.tiktoken", "tokenization_*.py")
_TOKENIZER_LIMIT = 16 << 20
_NEW_TOKENIZER = "TokenizersBackend"
"""The class that transformers 5 writes for any fast tokeniser, and 4 does not know."""

_ADAPTER_WEIGHTS = ("adapter_model.safetensors", "adapter_model.bin")


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """A model on disk. ``config_problem``: of its ``config.json``. ``needs_transformers_5``: its
    tokeniser was saved by transformers 5. ``facts``: its weights and shapes.
    """

    path: str
    exists: bool
    config_problem: JsonProblem | None = None
    has_tokenizer: bool = False
    needs_transformers_5: bool = False
    facts: ModelFacts | None = None

    @property
    def is_whole(self) -> bool:
        """Whether there are weights, and nothing of them is lacking."""
        facts = self.facts
        return facts is not None and bool(facts.file_bytes) and not (facts.missing or facts.truncated)

    @property
    def size(self) -> int:
        """Bytes of the weight files."""
        return (self.facts.file_bytes or 0) if self.facts is not None else 0

    @property
    def quantized(self) -> str | None:
        """The method it was quantised with beforehand (``gptq``, ``awq``, …)."""
        return self.facts.quantization if self.facts is not None else None


@dataclass(frozen=True, slots=True)
class AdapterFolder:
    """A LoRA adapter on disk. ``base_model``: the model that it was made for, as its config names it."""

    path: str
    exists: bool
    config_problem: JsonProblem | None = None
    base_model: str | None = None
    has_weights: bool = False
    is_truncated: bool = False


def read_model_folder(path: Path) -> ModelFolder:
    """Look at a model's folder. Never raises for what is in it."""
    if not _is_folder(path):
        return ModelFolder(str(path), exists=False)
    problem: JsonProblem | None = None
    try:
        read_json_file(path / "config.json")
    except JsonFileError as error:
        problem = error.problem
    return ModelFolder(
        str(path),
        exists=True,
        config_problem=problem,
        has_tokenizer=any(any(path.glob(pattern)) for pattern in _TOKENIZERS),
        needs_transformers_5=_tokenizer_class(path) == _NEW_TOKENIZER,
        facts=read_weights(path),
    )


def read_adapter_folder(path: Path) -> AdapterFolder:
    """Look at an adapter's folder. Never raises for what is in it."""
    if not _is_folder(path):
        return AdapterFolder(str(path), exists=False)
    found = next((path / name for name in _ADAPTER_WEIGHTS if is_file(path / name)), None)
    truncated = found is not None and found.suffix == ".safetensors" and not _is_whole(found)
    try:
        config = read_json_file(path / "adapter_config.json")
    except JsonFileError as error:
        return AdapterFolder(str(path), exists=True, config_problem=error.problem)
    base = text_in(config, "base_model_name_or_path")
    return AdapterFolder(
        str(path), exists=True, base_model=base, has_weights=found is not None, is_truncated=truncated
    )


def _is_whole(path: Path) -> bool:
    try:
        return read_header(path)[1]
    except (OSError, ValueError):
        return False


def _tokenizer_class(path: Path) -> str | None:
    try:
        return text_in(read_json_file(path / "tokenizer_config.json", _TOKENIZER_LIMIT), "tokenizer_class")
    except JsonFileError:
        return None


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False
