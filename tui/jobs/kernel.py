"""Kernel calls that Python has no name for, through the C library."""

import ctypes
import os

_SET_NAME = 15
_SET_CHILD_SUBREAPER = 36
_KEEP_SIZE_AND_PUNCH_HOLE = 0x01 | 0x02

_libc = ctypes.CDLL(None, use_errno=True)


def checked(result: int) -> int:
    """The result of a C call that says -1 for an error.

    Raises:
        OSError: with the errno that the call left.
    """
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def system_call(number: int, *arguments: int) -> int:
    """A system call by its number; every argument is a word wide."""
    words = [ctypes.c_long(argument) for argument in arguments]
    return checked(_libc.syscall(ctypes.c_long(number), *words))


def become_subreaper() -> None:
    """From now on orphaned descendants become children of this process, not of PID 1."""
    checked(_libc.prctl(_SET_CHILD_SUBREAPER, *map(ctypes.c_ulong, (1, 0, 0, 0))))


def set_title(title: str) -> None:
    """The name in ``/proc/PID/comm``; the kernel keeps 15 bytes."""
    checked(_libc.prctl(_SET_NAME, ctypes.c_char_p(title.encode()), *map(ctypes.c_ulong, (0, 0, 0))))


def punch_hole(descriptor: int, offset: int, length: int) -> None:
    """Give the blocks of a part of a file back; the part reads as zeros, the size stays.

    Raises:
        OSError: EOPNOTSUPP where the file system cannot.
    """
    where = (ctypes.c_int64(offset), ctypes.c_int64(length))
    checked(_libc.fallocate(descriptor, _KEEP_SIZE_AND_PUNCH_HOLE, *where))
