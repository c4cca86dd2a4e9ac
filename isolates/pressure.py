"""Whether the machine, or the container that this process runs in, is short of memory."""

from pathlib import Path
from typing import Final

__all__ = ["MemoryPressure"]

_LEAST_FREE: Final = 0.1  # of all there is


class MemoryPressure:
    """Read what the kernel says; where it says nothing (not Linux), there is no pressure."""

    def __init__(self, root: Path = Path("/"), *, least_free: float = _LEAST_FREE) -> None:
        self._least_free = least_free
        self._meminfo = root / "proc/meminfo"
        self._cgroup = _cgroup(root)

    def is_high(self) -> bool:
        """Say whether less is free than should be: two small reads, a tenth of a millisecond."""
        return min(self._machine_free(), self._cgroup_free()) < self._least_free

    def _machine_free(self) -> float:
        facts = _table(self._meminfo)
        total = facts.get("MemTotal:", 0)
        return facts.get("MemAvailable:", total) / total if total else 1.0

    def _cgroup_free(self) -> float:
        if self._cgroup is None:
            return 1.0
        try:
            limit = (self._cgroup / "memory.max").read_text().strip()
            used = int((self._cgroup / "memory.current").read_text())
            # "max" is no number: then the machine is the limit.
            limit_bytes = int(limit) if limit.isdecimal() else 0
        except (OSError, ValueError):
            return 1.0
        if not limit_bytes:
            return 1.0
        # Files that were read and not since are given back before anything is short.
        reclaimable = _table(self._cgroup / "memory.stat").get("inactive_file", 0)
        return 1 - (used - reclaimable) / limit_bytes


def _cgroup(root: Path) -> Path | None:
    """Find this process's group in the unified hierarchy."""
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        if line.startswith("0::/"):
            return root / "sys/fs/cgroup" / line.removeprefix("0::/")
    return None


def _table(path: Path) -> dict[str, int]:
    """Read lines of a name and a number; what the kernel adds after them is a unit."""
    try:
        rows = [line.split() for line in path.read_text().splitlines()]
    except OSError:
        return {}
    return {row[0]: int(row[1]) for row in rows if len(row) > 1 and row[1].isdecimal()}
