"""What the machine and the control group say about memory."""

from pathlib import Path

import pytest

from belem.runtime.inference.errors import InsufficientMemory
from belem.runtime.inference.memory import available_bytes, require_memory, resident_bytes


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    (tmp_path / "meminfo").write_text("MemTotal: 9 kB\nMemAvailable:   2048 kB\n")
    return tmp_path


def test_the_machine_limits(proc: Path, tmp_path: Path) -> None:
    assert available_bytes(proc, tmp_path / "none") == 2048 * 1024


def test_a_control_group_limits_where_it_has_less(proc: Path) -> None:
    (proc / "memory.max").write_text("1000000\n")
    (proc / "memory.current").write_text("400000\n")

    assert available_bytes(proc, proc) == 600_000


def test_a_control_group_without_a_limit_does_not_count(proc: Path) -> None:
    (proc / "memory.max").write_text("max\n")
    (proc / "memory.current").write_text("400000\n")

    assert available_bytes(proc, proc) == 2048 * 1024


def test_where_nobody_says_nothing_is_refused(tmp_path: Path) -> None:
    assert available_bytes(tmp_path, tmp_path) is None


def test_what_does_not_fit_is_refused_with_both_numbers() -> None:
    with pytest.raises(InsufficientMemory, match=r"big needs 1048576 MB; \d+ MB are free"):
        require_memory("big", 1 << 40)


def test_this_process_holds_memory() -> None:
    assert resident_bytes() > 1 << 20
