"""The memory that is free for a model, by the machine and by the control group."""

from pathlib import Path
from typing import Final

from belem.runtime.inference.errors import InsufficientMemory

__all__ = ["available_bytes", "require_memory", "resident_bytes"]

_PROC: Final = Path("/proc")
_CGROUP: Final = Path("/sys/fs/cgroup")
_PAGE_BYTES: Final = 4096
_MB: Final = 1 << 20


def require_memory(what: str, need_bytes: int) -> None:
    """Raise before loading what would not fit: the kernel would end the process instead."""
    free_bytes = available_bytes()
    if free_bytes is not None and need_bytes > free_bytes:
        raise InsufficientMemory(
            f"{what} needs {need_bytes // _MB} MB; {free_bytes // _MB} MB are free. A smaller "
            "--context or fewer --slots need less."
        )


def available_bytes(proc: Path = _PROC, cgroup: Path = _CGROUP) -> int | None:
    """Return the bytes that can be had without swapping; None where nobody says."""
    free = [value for value in (_machine_bytes(proc), _cgroup_bytes(cgroup)) if value is not None]
    return min(free, default=None)


def resident_bytes(proc: Path = _PROC) -> int:
    """Return the memory that this process holds now; 0 where nobody says."""
    try:
        return int((proc / "self/statm").read_text().split()[1]) * _PAGE_BYTES
    except (OSError, ValueError, IndexError):
        return 0


def _machine_bytes(proc: Path) -> int | None:
    try:
        for line in (proc / "meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    return None


def _cgroup_bytes(cgroup: Path) -> int | None:
    try:
        limit = int((cgroup / "memory.max").read_text())  # "max" where there is none
        return max(0, limit - int((cgroup / "memory.current").read_text()))
    except (OSError, ValueError):
        return None
