"""Keep a tenant's process to the files that it needs, through Linux's Landlock.

Without it, whoever broke out of the guest could read every file of the host's user: other tenants'
code and secrets, KV, the token. It needs no rights, and cannot be undone.
"""

import ctypes
import os
import stat
import struct
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

__all__ = ["allow_only", "files_to_run", "is_available"]

# linux/landlock.h; the numbers are the same on every architecture
_CREATE_RULESET: Final = 444
_ADD_RULE: Final = 445
_RESTRICT_SELF: Final = 446
_VERSION: Final = 1
_PATH_BENEATH: Final = 1

_EXECUTE: Final = 1 << 0
_WRITE_FILE: Final = 1 << 1
_READ_FILE: Final = 1 << 2
_READ_DIR: Final = 1 << 3
_TRUNCATE: Final = 1 << 14
_IOCTL_DEVICE: Final = 1 << 15
_READ: Final = _EXECUTE | _READ_FILE | _READ_DIR
_OF_FILES: Final = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEVICE
# By the ABI that first knew it: every access that a rule may be about.
_BITS_OF_ABI: Final = ((5, 16), (3, 15), (2, 14), (1, 13))
# Abstract Unix sockets, and signals to processes outside.
_SCOPES: Final = 0b11
_SCOPES_ABI: Final = 6

_RULESET: Final = struct.Struct("QQQ")  # accesses to files, to the network (all stay), scopes
_PATH_RULE: Final = struct.Struct("=Qi")


def is_available() -> bool:
    """Return whether this kernel has it."""
    return sys.platform == "linux" and _abi() > 0


def allow_only(*, read: Iterable[Path], write: Iterable[Path]) -> None:
    """Allow this thread, and those that it will start, no other files.

    It needs `PR_SET_NO_NEW_PRIVS`. What is open stays open.
    """
    abi = _abi()
    known = (1 << next(bits for first, bits in _BITS_OF_ABI if abi >= first)) - 1
    scopes = _SCOPES if abi >= _SCOPES_ABI else 0
    attributes = _RULESET.pack(known, 0, scopes)
    # An older kernel takes the structure only as long as it knows it.
    size = _RULESET.size if scopes else 8
    ruleset = _syscall(_CREATE_RULESET, attributes, size, 0)
    try:
        for path in read:
            _allow(ruleset, path, _READ & known)
        for path in write:
            _allow(ruleset, path, known & ~_EXECUTE)
        _syscall(_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


def files_to_run() -> list[Path]:
    """Return what this program reads to run: Python, itself, and what it asks the system."""
    ours = [
        entry for name in ("runtime", "sdk", "isolates", "bindings") for entry in _package(name)
    ]
    system = ["/usr", "/lib", "/lib32", "/lib64", "/bin", "/etc", "/run/systemd/resolve"]
    system += ["/dev/null", "/dev/urandom", "/proc/self", "/proc/meminfo", "/proc/cpuinfo"]
    python = [sys.prefix, sys.base_prefix, *sys.path]
    paths = {Path(os.path.realpath(name)) for name in (*ours, *system, *python) if name}
    return sorted(path for path in paths if os.access(path, os.R_OK))


def _package(name: str) -> list[str]:
    # An editable installation has links to where the packages are.
    return list(__import__(f"belem.{name}", fromlist=["__path__"]).__path__)


def _allow(ruleset: int, path: Path, access: int) -> None:
    descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
            access &= _OF_FILES
        rule = _PATH_RULE.pack(access, descriptor)
        _syscall(_ADD_RULE, ruleset, _PATH_BENEATH, rule, 0)
    finally:
        # A rule is about an inode. The kernel makes those of /proc anew when memory is short,
        # unless something has them open.
        if path.parts[1:2] != ("proc",):
            os.close(descriptor)


def _abi() -> int:
    try:
        return _syscall(_CREATE_RULESET, None, 0, _VERSION)
    except OSError:
        return 0


def _syscall(number: int, *arguments: int | bytes | None) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    given = [
        ctypes.c_long(argument) if isinstance(argument, int) else argument for argument in arguments
    ]
    result: int = libc.syscall(ctypes.c_long(number), *given)
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"Landlock: {os.strerror(error)}")
    return result
