"""What a host process gives up before it runs anything: its life after its parent, and rights."""

import ctypes
import os
import resource
import signal
import sys
from typing import Final

__all__ = ["close_to_debuggers", "end_with_parent", "give_up_rights"]

# linux/prctl.h
_PR_SET_PDEATHSIG: Final = 1
_PR_SET_DUMPABLE: Final = 4
_PR_SET_NO_NEW_PRIVS: Final = 38

_OPEN_FILES: Final = 65_536


def end_with_parent(parent_pid: int) -> None:
    """Let the kernel kill this process when its parent dies, however it dies.

    Where there is no such thing (outside Linux) the channel's end tells, a little later.
    """
    if sys.platform == "linux":
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent_pid:  # it was gone before the kernel knew
        raise SystemExit(1)


def give_up_rights(*, open_files: int = _OPEN_FILES) -> None:
    """Leave no core files, gain no rights by exec, and be closed to other processes' debuggers.

    Address space has no limit: every isolate reserves gigabytes of it and uses little.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = open_files if hard == resource.RLIM_INFINITY else min(open_files, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    if sys.platform == "linux":
        _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    close_to_debuggers()


def close_to_debuggers() -> None:
    """Keep other processes of this user from reading this one's memory, where that can be done."""
    if sys.platform == "linux":
        _prctl(_PR_SET_DUMPABLE, 0)


def _prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"prctl({option}) failed: {os.strerror(number)}")
