"""Who a process is, for good.

A PID alone names nobody: PIDs are reused, within seconds where ``pid_max`` is 32768. Start ticks tell
two holders of a PID apart; the boot id and the start of PID 1 tell apart two lives of the machine and
of the container, between which both can repeat.
"""

from tui.collect.proc import Proc
from tui.facts.job import Identity, Member


def identify(pid: int, proc: Proc) -> Identity | None:
    """The process that has this PID now; ``None`` when there is none in sight."""
    stat = proc.stat(pid)
    return None if stat is None else Identity(proc.boot_id(), proc.init_start(), pid, stat.start)


def same_boot(identity: Identity, proc: Proc) -> bool:
    """Whether the machine and the container are still in the life in which it was recorded."""
    return identity.boot_id == proc.boot_id() and identity.init_start == proc.init_start()


def same(identity: Identity, proc: Proc) -> bool:
    """Whether the PID still names the recorded process; a zombie is still itself."""
    stat = proc.stat(identity.pid)
    return stat is not None and stat.start == identity.start and same_boot(identity, proc)


def identity_of(member: Member, relative: Identity) -> Identity:
    """The identity of a member that was seen in the same life of the machine as ``relative``."""
    return Identity(relative.boot_id, relative.init_start, member.pid, member.start)
