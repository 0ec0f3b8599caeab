"""Which physical cards a process may use, by its environment, as CUDA reads it.

``CUDA_VISIBLE_DEVICES`` holds indexes, uuids or their beginnings, of cards or of MIG instances. The
list ends at the first entry that names nothing, a repeated entry voids it all, and an empty list hides
every card. Indexes count in the order of ``CUDA_DEVICE_ORDER``: by default the fastest card comes
first, which among cards of one model is the order of the driver.
"""

from collections.abc import Mapping, Sequence

from tui.facts.machine import Gpu

VISIBLE, ORDER, LOCAL_RANK = "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "LOCAL_RANK"
_BY_BUS = "PCI_BUS_ID"


def is_chosen(environment: Mapping[str, str]) -> bool:
    """Whether the environment says which cards to use."""
    return VISIBLE in environment


def visible_cards(environment: Mapping[str, str], gpus: Sequence[Gpu]) -> tuple[str, ...] | None:
    """The uuids of the cards, in the order in which the process counts them.

    ``None``: it cannot be told, because the cards differ and the order of their speed is not known.
    """
    in_order = sorted(gpus, key=lambda gpu: gpu.index)
    if VISIBLE not in environment:
        return tuple(gpu.uuid for gpu in in_order)
    alike = len({gpu.name for gpu in in_order}) <= 1 or environment.get(ORDER) == _BY_BUS
    found: list[tuple[str, str]] = []  # the card, and what of it
    for entry in environment[VISIBLE].split(","):
        text = entry.strip()
        if text.isascii() and text.isdigit() and len(text) < 4:
            if not alike:
                return None
            named = [(gpu.uuid, "") for gpu in in_order[int(text) : int(text) + 1]]
        elif text.startswith("MIG-"):
            named = [
                (gpu.uuid, instance)
                for gpu in in_order
                for instance in gpu.detail.instances
                if instance.startswith(text)
            ]
        else:
            named = [
                (gpu.uuid, "") for gpu in in_order if text.startswith("GPU-") and gpu.uuid.startswith(text)
            ]
        if len(named) != 1:
            break
        if named[0] in found:
            return ()
        found += named
    return tuple(dict.fromkeys(uuid for uuid, _ in found))


def card_of_rank(environment: Mapping[str, str], gpus: Sequence[Gpu]) -> str | None:
    """The uuid of the card that a rank of torchrun works on; ``None``: no such rank, or not to be told."""
    local = environment.get(LOCAL_RANK, "")
    cards = visible_cards(environment, gpus)
    if cards is None or not (local.isascii() and local.isdigit() and len(local) < 4):
        return None
    return cards[int(local)] if int(local) < len(cards) else None
