"""What the machine has for the run: cards, precision, memory, disks, ports, processes."""

import re
from collections.abc import Iterator

from tui.facts.finding import Action, EvidenceValue, Finding
from tui.facts.machine import Gpu
from tui.insight.preflight.facts import PreflightFacts
from tui.insight.preflight.values import trains
from tui.llamafactory.command import forces_torchrun, torn_word
from tui.llamafactory.schedule import schedule

_MIB, _GIB = 1 << 20, 1 << 30

HELD = 512 * _MIB
"""Of a card, more than a driver and a display keep for themselves."""

SHM_PER_WORKER = 64 * _MIB
WORKER_MEMORY = _GIB
"""What a worker of the tokeniser or the data loader takes: it imports torch and transformers."""

CHECKPOINT_ROOM = 2 * _GIB
OPTIMIZER_BYTES = 12
"""Per trained parameter, for Adam's two moments and a copy of the weight in 32 bits."""

# Cards before Ampere have no bf16: by the words of their names.
_BEFORE_AMPERE = re.compile(
    r"\b(?:V100|P100|P40|P4|T4|K80|M40|M60|TITAN|GTX|(?:RTX )?20[678]0|RTX [3456]000(?! Ada)"
    r"|Quadro (?:RTX|P|GV)\w*)\b"
)


def machine_findings(facts: PreflightFacts) -> Iterator[Finding]:
    """Findings about what the run would meet here."""
    yield from _processes(facts)
    yield from _precision(facts)
    for gpu in facts.machine.gpus or ():
        yield from _card(facts, gpu)
    yield from _workers(facts)
    yield from _offload(facts)
    yield from _disk(facts)
    yield from _port(facts)
    yield from _spaces(facts)


def has_no_bf16(name: str) -> bool:
    """Whether a card of this name computes bf16 by emulation only, many times slower."""
    return _BEFORE_AMPERE.search(name) is not None


def _processes(facts: PreflightFacts) -> Iterator[Finding]:
    cards, processes = facts.machine.cards, facts.processes
    if not trains(facts.config):
        return
    if facts.torchrun and processes == 0:
        action = Action("environment", ("NPROC_PER_NODE=1",))
        yield Finding("torchrun_without_card", "danger", "NPROC_PER_NODE", actions=(action,), blocks=True)
        return
    if facts.torchrun and processes is None:
        evidence: dict[str, EvidenceValue] = {"value": facts.environ.get("NPROC_PER_NODE", "")[:40]}
        yield Finding("process_count_unclear", "warning", "NPROC_PER_NODE", evidence)
    elif facts.torchrun and processes is not None:
        forced = forces_torchrun(facts.environ)
        evidence = {"processes": processes, "cards": cards, "forced": forced}
        if 0 < cards < processes and not _asks_for_cpu(facts):
            yield Finding("processes_beyond_cards", "danger", "NPROC_PER_NODE", evidence, blocks=True)
        else:
            yield Finding("launch_by_torchrun", "info", "", evidence)
    if cards == 0 and not _asks_for_cpu(facts):
        yield Finding("no_card", "warning")


def _asks_for_cpu(facts: PreflightFacts) -> bool:
    return bool(facts.config.flag("use_cpu") or facts.config.flag("no_cuda"))


def _precision(facts: PreflightFacts) -> Iterator[Finding]:
    config = facts.config
    asked = next((key for key in ("pure_bf16", "bf16") if config.flag(key)), None)
    for gpu in facts.machine.gpus or ():
        if asked is not None and has_no_bf16(gpu.name):
            actions = (Action("set", ("fp16=true", f"{asked}=false")),)
            evidence = {"key": asked, "card": gpu.name}
            yield Finding("no_bf16", "danger", asked, evidence, actions, blocks=asked == "pure_bf16")
            return
    if trains(config) and asked is None and not config.flag("fp16") and not _asks_for_cpu(facts):
        yield Finding("full_precision", "advice", "bf16")


def _card(facts: PreflightFacts, gpu: Gpu) -> Iterator[Finding]:
    """Memory that is not free, and whose it is."""
    if gpu.state != "ok":
        yield Finding("card_failing", "danger", gpu.uuid, {"index": gpu.index}, blocks=True)
        return
    live = {job.id for job in facts.machine.jobs if job.state not in ("ended", "lost")}
    users = {job.id for job in facts.machine.jobs if job.id in live and gpu.uuid in job.gpus}
    users |= {owner.job for owner in gpu.owners if owner.job in live and owner.job is not None}
    evidence: dict[str, EvidenceValue] = {
        "index": gpu.index,
        "used": gpu.memory.used,
        "free": gpu.memory.free,
        "total": gpu.memory.total,
    }
    if users:
        evidence["jobs"] = ", ".join(sorted(users))
        actions = tuple(Action("stop", (job,)) for job in sorted(users))
        yield Finding("card_in_use", "danger", gpu.uuid, evidence, actions)
    elif (gpu.memory.used or 0) > HELD:
        owners = [f"{owner.kind} {owner.pid}" for owner in gpu.owners if owner.pid is not None]
        if owners:
            evidence["owners"] = ", ".join(owners[:5])
            yield Finding("card_memory_held", "warning", gpu.uuid, evidence)
        else:
            yield Finding("card_memory_hidden", "warning", gpu.uuid, evidence)


def _workers(facts: PreflightFacts) -> Iterator[Finding]:
    config, machine = facts.config, facts.machine
    ranks = max(1, facts.processes or 1)
    loaders = (config.whole("dataloader_num_workers") or 0) * ranks
    mappers = config.whole("preprocessing_num_workers") or 0
    if loaders and machine.shm.total is not None and machine.shm.total < loaders * SHM_PER_WORKER:
        evidence: dict[str, EvidenceValue] = {"total": machine.shm.total, "workers": loaders}
        action = Action("set", ("dataloader_num_workers=0",))
        yield Finding("shm_too_small", "warning", "dataloader_num_workers", evidence, (action,))
    if machine.cpus is not None and mappers > 2 * max(1.0, machine.cpus):
        evidence = {"workers": mappers, "cpus": round(machine.cpus, 1)}
        action = Action("set", (f"preprocessing_num_workers={max(1, int(machine.cpus))}",))
        yield Finding("too_many_workers", "advice", "preprocessing_num_workers", evidence, (action,))
    free = _free_memory(facts)
    needed = max(loaders, mappers) * WORKER_MEMORY
    if free is not None and needed > free:
        evidence = {"workers": max(loaders, mappers), "needed": needed, "free": free}
        yield Finding("workers_need_memory", "warning", "preprocessing_num_workers", evidence)


def _free_memory(facts: PreflightFacts) -> int | None:
    memory = facts.machine.memory
    return None if memory.limit is None or memory.used is None else memory.limit - memory.used


def _offload(facts: PreflightFacts) -> Iterator[Finding]:
    """What DeepSpeed moves to the host: the optimiser of all trained weights, or the weights too."""
    deepspeed, free = facts.deepspeed, _free_memory(facts)
    if deepspeed is None or facts.model is None or not facts.model.size or free is None:
        return
    weights = facts.model.size
    trained = weights // 2 if facts.config.text("finetuning_type") == "full" else 0
    needed = trained * OPTIMIZER_BYTES if deepspeed.offload_optimizer else 0
    needed += weights if deepspeed.offload_param else 0
    if needed > free:
        evidence: dict[str, EvidenceValue] = {"needed": needed, "free": free}
        yield Finding("offload_needs_memory", "danger", deepspeed.path or "deepspeed", evidence)


def checkpoint_size(facts: PreflightFacts) -> int | None:
    """Bytes of one checkpoint of a training of all weights: they and Adam's state; of a LoRA, which is
    small beside any disk, ``None``.
    """
    weights = facts.model.size if facts.model is not None else 0
    if not weights or facts.config.text("finetuning_type") != "full":
        return None
    plan = schedule(facts.config.values)
    saves_state = plan.save_steps is not None or plan.save_epochs
    only_model = facts.config.flag("save_only_model") is True or not saves_state
    return weights if only_model else weights + weights // 2 * OPTIMIZER_BYTES


def _disk(facts: PreflightFacts) -> Iterator[Finding]:
    place = facts.output_place
    if place is None or place.free is None or not trains(facts.config):
        return
    one = checkpoint_size(facts)
    kept = _checkpoints_kept(facts)
    needed = max(CHECKPOINT_ROOM, 0 if one is None else one * kept)
    if place.free < needed:
        evidence: dict[str, EvidenceValue] = {"free": place.free, "needed": needed, "checkpoints": kept}
        # The first checkpoint fails for sure; how many more there will be is a guess.
        blocks = one is not None and place.free < one
        yield Finding(
            "disk_too_small", "danger" if blocks else "warning", place.path, evidence, blocks=blocks
        )


def _checkpoints_kept(facts: PreflightFacts) -> int:
    """How many checkpoints lie there at once, as far as the config tells: one more than the limit, since
    the old one goes after the new one came.
    """
    limit, steps = facts.config.whole("save_total_limit"), facts.config.max_steps
    plan = schedule(facts.config.values)
    if limit is not None and limit > 0:
        return limit + 1
    if steps is not None and steps > 0 and plan.save_steps is not None and plan.save_steps >= 1:
        return max(1, int(steps // plan.save_steps))
    return 2


def _port(facts: PreflightFacts) -> Iterator[Finding]:
    written = facts.environ.get("MASTER_PORT", "")
    if not facts.torchrun or not (written.isascii() and written.isdigit() and len(written) < 6):
        return
    is_first_node = facts.environ.get("NODE_RANK", "0") == "0"
    if is_first_node and int(written) in facts.machine.ports_taken:
        yield Finding("port_taken", "danger", "MASTER_PORT", {"port": int(written)}, blocks=True)


def _spaces(facts: PreflightFacts) -> Iterator[Finding]:
    torn = torn_word(facts.words) if facts.torchrun else None
    if torn is not None:
        yield Finding("space_in_path", "danger", torn[:200], blocks=True)
