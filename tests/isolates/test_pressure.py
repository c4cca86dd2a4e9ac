"""Memory pressure, from what the kernel writes."""

from pathlib import Path

import pytest

from belem.isolates.pressure import MemoryPressure


def kernel(
    root: Path,
    *,
    available_kib: int = 900,
    limit: str | None = None,
    used: int = 0,
    inactive_file: int = 0,
) -> Path:
    """Write what a kernel with 1,000 KiB of memory would."""
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/meminfo").write_text(
        f"MemTotal:           1000 kB\nMemFree:  5 kB\nMemAvailable:  {available_kib} kB\n"
    )
    (root / "proc/self/cgroup").write_text("4:cpu:/old\n0::/pods/belem\n")
    group = root / "sys/fs/cgroup/pods/belem"
    group.mkdir(parents=True)
    if limit is not None:
        (group / "memory.max").write_text(f"{limit}\n")
        (group / "memory.current").write_text(f"{used}\n")
        (group / "memory.stat").write_text(f"anon 5\ninactive_file {inactive_file}\n")
    return root


def test_a_machine_with_room_has_none(tmp_path: Path) -> None:
    assert not MemoryPressure(kernel(tmp_path)).is_high()


def test_a_machine_that_is_nearly_full_has(tmp_path: Path) -> None:
    assert MemoryPressure(kernel(tmp_path, available_kib=99)).is_high()


@pytest.mark.parametrize(
    ("limit", "used", "inactive_file", "high"),
    [
        ("max", 990, 0, False),
        ("1000", 800, 0, False),
        ("1000", 950, 0, True),
        ("1000", 950, 200, False),  # files that may go
        ("damaged", 950, 0, False),
    ],
)
def test_a_container_has_a_limit_of_its_own(
    tmp_path: Path, limit: str, used: int, inactive_file: int, high: bool
) -> None:
    root = kernel(tmp_path, limit=limit, used=used, inactive_file=inactive_file)

    assert MemoryPressure(root).is_high() is high


def test_where_the_kernel_says_nothing_there_is_none(tmp_path: Path) -> None:
    assert not MemoryPressure(tmp_path).is_high()


def test_this_machine_can_be_read() -> None:
    assert MemoryPressure(least_free=2.0).is_high()
    assert not MemoryPressure(least_free=-1.0).is_high()
