"""What a process is, judged by what it executes.

Two processes with one argument vector are told apart by the vector of the parent: data loaders and the
tokeniser's pool are forked from the trainer and keep its command line. Process titles are cut to 15
characters (``llamafactory-cl``), so a title is only ever a hint.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tui.facts.job import MemberRole
from tui.facts.machine import DATA_WORKER_TITLE, ProcessKind
from tui.llamafactory.argv import (
    Execution,
    agent_target,
    cli_subcommand,
    config_argument,
    execution,
    is_training_script,
)
from tui.llamafactory.command import forces_torchrun

_SERVICES: Mapping[str, ProcessKind] = {"webui": "webui", "webchat": "chat", "chat": "chat", "api": "api"}

# multiprocessing starts these itself when the start method is not fork.
_SPAWNED_CODE = ("from multiprocessing.spawn import", "from multiprocessing.forkserver import")
_TRACKER_CODE = "from multiprocessing.resource_tracker import"

# This program's own helpers are started without a script: their module stands in the code of
# ``python -c CODE``, or right behind it.
_OWN_MODULE = re.compile(r"tui\.(?:jobs|collect|operate)\.[a-z_]+")
_OWN_IMPORT = re.compile(r"import sys; sys\.path[^;\n]{0,60}; from (tui\.[a-z]+\.[a-z_]+) import main; ")
_KEEPER = "tui.jobs.keeper"

_VLLM_TITLE = "VLLM::"

_NOTEBOOKS = frozenset(
    {"jupyter", "jupyter-lab", "jupyter-notebook", "jupyter-server", "jupyterhub-singleuser"}
)
_NOTEBOOK_MODULES = frozenset({"ipykernel_launcher", "ipykernel", "jupyterlab", "notebook", "jupyter_server"})
_MONITORS = frozenset(
    {
        "nvidia-smi",
        "nvitop",
        "nvtop",
        "gpustat",
        "btop",
        "dcgm-exporter",
        "nv-hostengine",
        "llamaherd",
        "tensorboard",
        "autopanel",
    }
)
_MONITOR_MODULES = frozenset({"nvitop", "gpustat", "tensorboard", "tensorboard.main", "tui"})


@dataclass(frozen=True, slots=True)
class ProcessRole:
    """What a process is for. ``rank`` is the global rank where the process has one.

    ``config`` is the config file as the command line names it, relative to that process's folder.
    ``is_llamafactory`` is true for LLaMA-Factory's own code and for the workers forked from it.
    """

    kind: ProcessKind = "other"
    role: MemberRole = "other"
    rank: int | None = None
    config: str | None = None
    is_llamafactory: bool = False


_OTHER = ProcessRole()


def classify(
    argv: Sequence[str],
    comm: str,
    environ: Mapping[str, str] | None,
    parent_argv: Sequence[str] | None = None,
) -> ProcessRole:
    """The role of one process.

    A ``main`` may turn out to be the wrapper of a torchrun agent, which only its children tell: see
    ``with_children``. Without ``parent_argv`` a forked worker looks like the trainer, except where
    torch has set its title.

    Args:
        argv: the command line, possibly rewritten by the process itself.
        comm: the title of ``/proc/PID/comm``.
        environ: ``None`` when it could not be read.
        parent_argv: the command line of the parent, ``None`` when unknown.
    """
    own = _own_role(argv, environ)
    if own.role == "agent":
        return own
    if parent_argv is not None:
        if argv and tuple(argv) == tuple(parent_argv):
            return _forked(own, comm)
        if _is_spawned(argv):
            return _forked(_own_role(parent_argv, environ), comm)
    if comm == DATA_WORKER_TITLE:
        return _forked(own, comm)
    return own


def with_children(role: ProcessRole, children: Iterable[ProcessRole]) -> ProcessRole:
    """The role, once the children are known: a trainer that has a torchrun agent is its wrapper."""
    if role.role == "main" and any(child.role == "agent" for child in children):
        return replace(role, role="wrapper")
    return role


def _own_role(argv: Sequence[str], environ: Mapping[str, str] | None) -> ProcessRole:
    run = execution(argv)
    cli = cli_subcommand(run)
    if cli is not None:
        return _cli_role(*cli, environ)
    if is_training_script(run):
        return _rank_role(run, environ)
    target = agent_target(run)
    if target is None:
        return _foreign_role(run)
    if is_training_script(target):
        return ProcessRole("train", "agent", config=config_argument(target.arguments), is_llamafactory=True)
    return ProcessRole("other", "agent")


def _cli_role(subcommand: str, arguments: Sequence[str], environ: Mapping[str, str] | None) -> ProcessRole:
    config = config_argument(arguments)
    if subcommand == "train":
        forced = environ is not None and forces_torchrun(environ)
        return ProcessRole("train", "wrapper" if forced else "main", config=config, is_llamafactory=True)
    kind = _SERVICES.get(subcommand, "other")
    role: MemberRole = "service" if subcommand in _SERVICES else "main"
    return ProcessRole(kind, role, config=config, is_llamafactory=True)


def _rank_role(run: Execution, environ: Mapping[str, str] | None) -> ProcessRole:
    """A cluster may export RANK to every process, so only LOCAL_RANK, which launchers add, counts."""
    local = environ.get("LOCAL_RANK") if environ is not None else _deepspeed_rank(run.arguments)
    started_alone = environ is not None and local is None and not run.program.endswith("launcher.py")
    rank = _whole(environ.get("RANK") if environ is not None else None)
    return ProcessRole(
        "train",
        "main" if started_alone else "rank",
        rank=None if started_alone else rank if rank is not None else _whole(local),
        config=config_argument(run.arguments),
        is_llamafactory=True,
    )


def _foreign_role(run: Execution) -> ProcessRole:
    module = run.module or ""
    if run.name == "vllm" or run.program.startswith(_VLLM_TITLE) or module.startswith("vllm.entrypoints."):
        is_server = not run.program.startswith(_VLLM_TITLE)
        return ProcessRole("vllm", "service" if is_server else "other")
    if run.name in _NOTEBOOKS or module in _NOTEBOOK_MODULES or run.name == "ipykernel_launcher.py":
        return ProcessRole("notebook")
    helper = _own_helper(run)
    if helper is not None:
        return ProcessRole("monitor", "keeper" if helper == _KEEPER else "other")
    if run.name in _MONITORS or module in _MONITOR_MODULES:
        return ProcessRole("monitor")
    return _OTHER


def _own_helper(run: Execution) -> str | None:
    if run.code is None:
        return None
    imported = _OWN_IMPORT.match(run.code)
    if imported is not None:
        return imported[1]
    return next((word for word in run.arguments[:2] if _OWN_MODULE.fullmatch(word)), None)


def _forked(parent: ProcessRole, comm: str) -> ProcessRole:
    """The role of a process that runs its parent's code."""
    if parent.kind == "train":
        role: MemberRole = "data_worker" if comm == DATA_WORKER_TITLE else "pool"
        return replace(parent, kind="data_worker", role=role)
    if comm == DATA_WORKER_TITLE:
        return replace(parent, kind="data_worker", role="data_worker")
    return replace(parent, role="other") if parent.role == "service" else parent


def _is_spawned(argv: Sequence[str]) -> bool:
    code = execution(argv).code
    return code is not None and code.startswith((*_SPAWNED_CODE, _TRACKER_CODE))


def _deepspeed_rank(arguments: Sequence[str]) -> str | None:
    for word in arguments:
        if word.startswith("--local_rank="):
            return word.partition("=")[2]
    return None


def _whole(text: str | None) -> int | None:
    return int(text) if text is not None and len(text) <= 6 and text.isascii() and text.isdigit() else None
