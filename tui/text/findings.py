"""Sentences for findings: what is, what it means, what to do.

A new finding needs one entry: its sentence, its advice, and how its evidence is shown. Evidence that
has no entry in ``shown_as`` is shown as clean text. ``{subject}`` is what the finding is about (a job's
id, a path), every other placeholder is a key of its evidence.
"""

from tui.facts.finding import EvidenceValue, Finding
from tui.text import units
from tui.text.outside import outside
from tui.text.preflight_findings import PREFLIGHT
from tui.text.training_findings import TRAINING
from tui.text.translate import tr, tr_noop
from tui.text.words import Words, as_duration, as_size

FINDINGS: dict[str, Words] = {
    **PREFLIGHT,
    **TRAINING,
    "gpu_memory_unexplained": Words(
        tr_noop("GPU {index} has {memory} in use that no process visible here explains."),
        tr_noop(
            "A process that has just ended may need seconds to let go. If it stays, it lies outside this"
            " container, and only a restart of the instance frees it."
        ),
        {"memory": as_size},
    ),
    "gpu_lost": Words(
        tr_noop("GPU {index} does not answer any more."),
        tr_noop("Save what runs on the other cards, then restart the instance."),
    ),
    "gpu_failing": Words(
        tr_noop("GPU {index} cannot be read; its card or the driver is in trouble."),
        tr_noop("A training that runs may go on: let it save first, then restart the instance."),
    ),
    "jobs_share_gpu": Words(
        tr_noop("GPU {index} is used by several jobs: {jobs}."),
        tr_noop("They share its memory and slow each other down; the one that asks for too much fails."),
    ),
    "rank_on_other_card": Words(
        tr_noop("Rank {ranks} of {job} also holds {memory} on GPU {index}, which is another rank's card."),
        tr_noop(
            "After a resume every rank loads the checkpoint through the first card. It is harmless as long"
            " as that card has room."
        ),
        {"memory": as_size},
    ),
    "card_unused": Words(
        tr_noop("{job} may use GPU {index} and does not."),
        tr_noop("Train with torchrun on all cards (FORCE_TORCHRUN=1), or give the card to another run."),
    ),
    "gpu_memory_errors": Words(
        tr_noop("GPU {index} has counted {count} memory errors that could not be corrected."),
        tr_noop("Results since then may be wrong. Save, and ask for another card."),
    ),
    "driver_missing": Words(
        tr_noop("There is no NVIDIA driver here; GPUs cannot be shown."),
        tr_noop("If this instance should have a GPU, start it with one."),
    ),
    "driver_error": Words(
        tr_noop("The NVIDIA driver reports an error; GPUs cannot be shown."),
        tr_noop("A training that runs may go on: let it save first, then restart the instance."),
    ),
    "driver_silent": Words(
        tr_noop("The NVIDIA driver has not answered for {seconds}; a card may hang."),
        tr_noop("A training that runs may go on: let it save first, then restart the instance."),
        {"seconds": as_duration},
    ),
    "no_gpu_mode": Words(
        tr_noop("This instance runs in no-GPU mode: files can be prepared, nothing can be trained."),
        tr_noop("To train, power it off and start it with a GPU in the console."),
    ),
    "version_mismatch": Words(
        tr_noop("The driver on the host was upgraded under this container, so GPUs cannot be read any more."),
        tr_noop("A training that runs may go on: let it save first, then restart the instance."),
    ),
    "disk_nearly_full": Words(
        tr_noop("{subject} has {free} free of {total}."),
        tr_noop(
            "A checkpoint that does not fit ends the run: remove old checkpoints or caches, or move them."
        ),
        {"free": as_size, "total": as_size},
    ),
    "inodes_nearly_gone": Words(
        tr_noop("{subject} can hold only {inodes_free} more files."),
        tr_noop("Remove folders with very many small files, such as package caches."),
    ),
    "shm_small": Words(
        tr_noop("The shared memory (/dev/shm) holds only {total}; data loaders may end with a bus error."),
        tr_noop("Set dataloader_num_workers: 0, or give the container more shared memory."),
        {"total": as_size},
    ),
    "oom_kill_seen": Words(
        tr_noop("The kernel has killed {count} processes here because the container's memory ran out."),
        tr_noop(
            "Use fewer workers (preprocessing_num_workers, dataloader_num_workers),"
            " or an instance with more memory."
        ),
    ),
    "host_memory_high": Words(
        tr_noop(
            "The container uses {used} of its {limit} of memory; beyond that the kernel kills a process."
        ),
        tr_noop("Use fewer workers, and close services that are not needed."),
        {"used": as_size, "limit": as_size},
    ),
    "memory_throttled": Words(
        tr_noop("The container's memory is at its brake mark ({high}): the kernel slows every process down."),
        tr_noop("Use fewer workers; the run is slow, not dead."),
        {"high": as_size},
    ),
    "job_unreadable": Words(
        tr_noop("The records in the job folder {subject} cannot be understood: {reason}"),
        tr_noop("They were left as they are; perhaps another version of llamaherd wrote them."),
    ),
    "job_failed": Words(tr_noop("Job {subject} failed: {failure}")),
    "job_stuck": Words(
        tr_noop("Job {subject} has processes that no signal can end: {pids}."),
        tr_noop(
            "They wait inside the kernel, usually for the GPU."
            " Wait, or restart the instance to free the memory."
        ),
    ),
    "job_lost": Words(
        tr_noop("Job {subject} lost its keeper without a record of the end."),
        tr_noop(
            "Its log and its output folder tell how far it came;"
            " the last complete checkpoint can be continued."
        ),
    ),
    "keeper_gone": Words(
        tr_noop("Job {subject} runs on without its keeper."),
        tr_noop(
            "The training is unharmed. `llamaherd stop {subject}` still stops it, proved by repeated looks."
        ),
    ),
    "keeper_unverified": Words(
        tr_noop(
            "That nothing of job {subject} is left was seen, not proved: its keeper was not there to the end."
        ),
        tr_noop("If GPU memory stays in use, look at the owners above."),
    ),
    "untrained": Words(
        tr_noop("Job {subject} ended with exit code 0, and nothing was trained."),
        tr_noop(
            "Its log says why; often the output folder already held a finished run,"
            " which was continued and had no step left."
        ),
    ),
    "partial": Words(
        tr_noop("Job {subject} ended without an error at step {step} of {total}."),
        tr_noop("The last complete checkpoint can be continued with resume_from_checkpoint."),
    ),
    "left_behind": Words(
        tr_noop("Job {subject} has ended and left processes behind: {pids}."),
        tr_noop("`llamaherd stop {subject}` ends it."),
    ),
}


def finding_text(finding: Finding) -> tuple[str, str]:
    """What was found, and what to do (``""`` where there is nothing to do).

    A code without an entry is shown with its evidence: plain, and better than silence.
    """
    words = FINDINGS.get(finding.code)
    if words is None:
        evidence = [f"{outside(name, 60)}={_shown(value)}" for name, value in finding.evidence.items()]
        return " ".join([outside(finding.code, 60), _shown(finding.subject), *evidence]), ""
    values = {"subject": _shown(finding.subject)} | {
        name: words.shown_as[name](value) if name in words.shown_as else _shown(value)
        for name, value in finding.evidence.items()
    }
    return tr(words.message, **values), tr(words.advice, **values) if words.advice else ""


def _shown(value: EvidenceValue) -> str:
    return units.UNKNOWN if value is None else outside(str(value))
