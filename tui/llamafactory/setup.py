"""What LLaMA-Factory's settings mean for memory: types, sharding, batches, kernels."""

from collections.abc import Mapping

from tui.facts.memory import MemoryReason
from tui.facts.setup import Quantization, Sharding, TrainingSetup
from tui.facts.weights import ModelFacts
from tui.llamafactory.config import TrainingConfig
from tui.llamafactory.deepspeed import Deepspeed, deepspeed_of, read_deepspeed
from tui.llamafactory.steps import DEFAULT_BATCH, DEFAULT_CUTOFF, packs, positive
from tui.llamafactory.trainable import elements_by_layer, method_of, output_matrix, trainable
from tui.llamafactory.yaml_text import Value

DEFAULT_OPTIMIZER = "adamw_torch"
_LIGER_FAMILIES = frozenset(
    {
        *("gemma", "gemma2", "gemma3", "gemma3_text", "glm", "glm4", "glm4v", "granite", "llama", "llava"),
        *("mistral", "mixtral", "mllama", "olmo2", "paligemma", "phi3", "qwen2", "qwen2_vl", "qwen2_5_vl"),
        *("qwen3", "qwen3_moe", "qwen3_next", "qwen3_5", "gpt_oss"),
    }
)
_NO_LOGITS_NEEDED = frozenset({"pt", "sft"})
_MODELLED = frozenset({"pt", "sft"})
_PAIRS = frozenset({"dpo", "kto", "rm"})
_OWN_OPTIMIZERS = ("use_galore", "use_apollo", "use_badam", "use_adam_mini", "use_muon")
_DEFAULT_LIVE = 1_000_000_000
_DEFAULT_BUCKET = 500_000_000


def training_setup(
    config: TrainingConfig,
    model: ModelFacts,
    *,
    world: int | None,
    torchrun: bool | None = None,
    versions: Mapping[str, str | None] | None = None,
) -> TrainingSetup:
    """What a config does with a model.

    Args:
        config: The training.
        model: Its model.
        world: Ranks together; ``None``: unknown.
        torchrun: Whether LLaMA-Factory trains under torchrun, where it makes segments expandable.
        versions: Installed packages; what is absent there cannot be used.
    """
    method = method_of(config)
    changed = trainable(model, config)
    reasons: list[MemoryReason] = []
    sharding = _sharding(config, reasons)
    compute = 2 if any(config.flag(key) for key in ("bf16", "fp16", "pure_bf16")) else _file_size(model)
    mixed = not sharding.engine and any(config.flag(key) for key in ("bf16", "fp16"))
    upcast = not config.flag("pure_bf16") and not config.flag("use_badam")
    fused = _uses_liger(config, model, versions, reasons)
    stage = config.stage or "sft"
    head = output_matrix(model)
    if stage not in _MODELLED:
        reasons.append("stage_not_modelled")
    _note_model(model, config, reasons)
    return TrainingSetup(
        stage=stage,
        method=method,
        adapter=changed.adapter,
        trained=sum(tensor.elements for tensor in changed.own),
        trained_layer=max(elements_by_layer(changed.own).values(), default=0),
        trained_head=head.elements if head is not None and head in changed.own else 0,
        trained_bytes=compute if sharding.engine else 4 if upcast else _file_size(model),
        compute_bytes=compute,
        mixed=mixed,
        casts_frozen=mixed and _other_type(config, model),
        optimizer=_optimizer(config, reasons),
        batch=positive(config, "per_device_train_batch_size", DEFAULT_BATCH) * (2 if stage in _PAIRS else 1),
        eval_batch=_eval_batch(config),
        cutoff=positive(config, "cutoff_len", DEFAULT_CUTOFF),
        packing=packs(config),
        checkpointing=not config.flag("disable_gradient_checkpointing"),
        hidden_on_host=config.flag("use_unsloth_gc") is True,
        fused_norm=fused,
        fused_loss=fused and stage in _NO_LOGITS_NEEDED,
        eager=config.text("flash_attn") == "disabled",
        reference=stage == "dpo" and method in {"full", "freeze"},
        expandable=torchrun is True,
        world=world,
        sharding=sharding,
        quantization=_quantization(config, model),
        reasons=tuple(dict.fromkeys(reasons)),
    )


def _note_model(model: ModelFacts, config: TrainingConfig, reasons: list[MemoryReason]) -> None:
    if model.counted == "config":
        reasons.append("counted_from_config")
    if model.missing or model.truncated:
        reasons.append("files_incomplete")
    if model.multimodal:
        reasons.append("multimodal")
    if any(".experts." in tensor.name for tensor in model.tensors):
        reasons.append("experts")
    if config.flag("use_unsloth"):
        reasons.append("unsloth")
    if config.flag("resize_vocab"):
        reasons.append("vocabulary_resized")


def _file_size(model: ModelFacts) -> int:
    """Bytes of a number as the model's files have it; loading keeps that type."""
    return 4 if model.dtype == "float32" or (model.tensors and model.tensors[0].dtype == "F32") else 2


def _other_type(config: TrainingConfig, model: ModelFacts) -> bool:
    wanted = "F16" if config.flag("fp16") else "BF16"
    return bool(model.tensors) and model.tensors[0].dtype not in {wanted, "U8", "I8", "I32"}


def _uses_liger(
    config: TrainingConfig,
    model: ModelFacts,
    versions: Mapping[str, str | None] | None,
    reasons: list[MemoryReason],
) -> bool:
    if not config.flag("enable_liger_kernel"):
        return False
    absent = versions is not None and versions.get("liger_kernel") is None
    if absent or (model.model_type is not None and model.model_type not in _LIGER_FAMILIES):
        reasons.append("liger_unsupported")
        return False
    return True


def _optimizer(config: TrainingConfig, reasons: list[MemoryReason]) -> str:
    if any(config.flag(key) for key in _OWN_OPTIMIZERS):
        reasons.append("optimizer_unknown")
        return "unknown"
    return (config.text("optim") or DEFAULT_OPTIMIZER)[:100]


def _eval_batch(config: TrainingConfig) -> int | None:
    """Evaluations take 8 samples a card unless told otherwise: not the training's own number."""
    strategy = config.values.get("eval_strategy", config.values.get("evaluation_strategy"))
    evaluates = config.flag("do_eval") or (isinstance(strategy, str) and strategy != "no")
    return positive(config, "per_device_eval_batch_size", DEFAULT_BATCH) if evaluates else None


def _quantization(config: TrainingConfig, model: ModelFacts) -> Quantization | None:
    bits = positive(config, "quantization_bit", 0)
    if not bits or model.quantization is not None:
        return None
    method = config.text("quantization_method") or "bnb"
    return Quantization(method[:30], bits, config.flag("double_quantization") is not False)


def _sharding(config: TrainingConfig, reasons: list[MemoryReason]) -> Sharding:
    written = config.values.get("deepspeed")
    if written:
        zero = _deepspeed(config, written)
        if zero is None or zero.problem is not None:
            reasons.append("sharding_unknown")
            return Sharding(engine=True)
        return Sharding(
            stage=min(3, max(0, zero.stage)),
            engine=True,
            offload_optimizer=zero.offload_optimizer,
            offload_parameters=zero.offload_param,
            live_limit=zero.live_limit or _DEFAULT_LIVE,
            bucket=zero.bucket,
        )
    fsdp = config.values.get("fsdp")
    text = fsdp if isinstance(fsdp, str) else " ".join(map(str, fsdp)) if isinstance(fsdp, list) else ""
    if "shard" in text:
        reasons.append("sharding_unknown")
        stage = 2 if "grad_op" in text else 3
        offload = "offload" in text
        return Sharding(stage, False, offload, offload, _DEFAULT_LIVE, _DEFAULT_BUCKET)
    return Sharding()


def _deepspeed(config: TrainingConfig, written: Value) -> Deepspeed | None:
    """From its file, or written out in the config."""
    if isinstance(written, dict):
        return deepspeed_of({str(key): value for key, value in written.items()})
    return None if config.deepspeed is None else read_deepspeed(config.deepspeed)
