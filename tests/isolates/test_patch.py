"""Patches: small, exact, and distrustful of bytes that are none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from belem.isolates.patch import NO_PATCH, apply, difference, read_patch, runs

PAGES = 64 << 10


@given(
    st.dictionaries(st.integers(0, 2 * PAGES - 1), st.integers(0, 255), max_size=40),
    st.integers(1, 2),
)
def test_a_patch_turns_the_one_memory_into_the_other(
    bytes_at: dict[int, int], regions: int
) -> None:
    base = bytes(range(256)) * (regions * PAGES // 256)
    memory = bytearray(base) + bytes(2 * PAGES - len(base))
    for address, value in bytes_at.items():
        memory[address] = value

    patch = read_patch(bytes(difference(base, bytes(memory))))

    assert apply(base, patch, len(memory)) == memory
    assert len(patch) <= (8 + 128) * len(bytes_at)


def test_equal_memories_have_an_empty_patch() -> None:
    assert difference(bytes(PAGES), bytes(2 * PAGES)) == NO_PATCH


def test_neighbouring_blocks_are_one_run() -> None:
    memory = bytes(1024) + b"x" * 512 + bytes(PAGES - 1536)

    assert list(runs(difference(bytes(PAGES), memory))) == [(1024, b"x" * 512)]


@pytest.mark.parametrize("data", [bytes(7), bytes(4) + b"\x01\0\0\0", bytes(9)])
def test_bytes_that_are_no_patch_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"The patch ends|passes the end"):
        read_patch(data)
