"""Jobs made up around real processes."""

from collections.abc import Sequence

from tui.collect.proc import Proc
from tui.facts.job import Job, Member, MemberRole
from tui.facts.training import Progress


def running_job(
    pids: Sequence[int] = (),
    *,
    progress: Progress | None = None,
    roles: Sequence[MemberRole] = ("main",),
    gpus: tuple[str, ...] = (),
    kind: str = "training",
    output_dir: str | None = None,
) -> Job:
    """A job that runs now; its members are these processes, as they are."""
    members = []
    for index, pid in enumerate(pids):
        stat = Proc().stat(pid)
        assert stat is not None
        members.append(Member(pid, stat.start, roles[min(index, len(roles) - 1)], stat.state))
    return Job(
        id="job",
        kind="service" if kind == "service" else "training",
        state="running",
        ending=None,
        exit_code=None,
        failure=None,
        keeper=True,
        main_pid=pids[0] if pids else None,
        members=tuple(members),
        config=None,
        output_dir=output_dir,
        started_at=None,
        ended_at=None,
        gpus=gpus,
        peak_memory={},
        ports=(),
        progress=progress,
    )
