"""Which pages were written to: the kernel's own list, and the map of older kernels."""

import ctypes
import errno
import fcntl
import mmap
import os
from collections.abc import Callable, Iterator
from typing import Final

import pytest

from belem.isolates.written import WrittenPages

_PAGE: Final = mmap.PAGESIZE
_PAGES: Final = 64


@pytest.fixture
def pages() -> Iterator[WrittenPages]:
    written = WrittenPages()
    if not written.supported:
        pytest.skip("this system has no /proc/self/pagemap")
    yield written
    written.close()


@pytest.fixture
def memory() -> Iterator[mmap.mmap]:
    """A private mapping of a file, as a wasm memory that begins as an image is."""
    file = os.memfd_create("image")
    os.write(file, b"x" * (_PAGES * _PAGE))
    mapped = mmap.mmap(file, _PAGES * _PAGE, flags=mmap.MAP_PRIVATE)
    os.close(file)
    yield mapped
    mapped.close()


def _base(memory: mmap.mmap) -> int:
    return ctypes.addressof(ctypes.c_char.from_buffer(memory))


def _older_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise OSError(errno.ENOTTY, "Inappropriate ioctl for device")

    monkeypatch.setattr(fcntl, "ioctl", refuse)


def _this_kernel(_: pytest.MonkeyPatch) -> None:
    pass


@pytest.mark.parametrize("kernel", [_this_kernel, _older_kernel])
def test_runs_of_written_pages_are_told(
    pages: WrittenPages,
    memory: mmap.mmap,
    monkeypatch: pytest.MonkeyPatch,
    kernel: Callable[[pytest.MonkeyPatch], None],
) -> None:
    kernel(monkeypatch)
    for page in range(0, _PAGES, 2):  # to read is not to write
        assert memory[page * _PAGE] == ord("x")
    for page in (3, 4, 5, 9, _PAGES - 1):
        memory[page * _PAGE + 17] = 0

    spans = pages.spans(_base(memory), len(memory))

    assert spans is not None
    assert [(start // _PAGE, end // _PAGE) for start, end in spans] == [
        (3, 6), (9, 10), (_PAGES - 1, _PAGES),
    ]  # fmt: skip


@pytest.mark.parametrize("kernel", [_this_kernel, _older_kernel])
def test_untouched_memory_has_none(
    pages: WrittenPages,
    memory: mmap.mmap,
    monkeypatch: pytest.MonkeyPatch,
    kernel: Callable[[pytest.MonkeyPatch], None],
) -> None:
    kernel(monkeypatch)

    assert pages.spans(_base(memory), len(memory)) == []


def test_too_many_runs_are_not_told(pages: WrittenPages) -> None:
    size = 1024 * _PAGE
    with mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE) as memory:
        for page in range(0, 1024, 2):
            memory[page * _PAGE] = 1
        base = ctypes.addressof(ctypes.c_char.from_buffer(memory))

        assert pages.spans(base, size) is None


def test_without_the_map_nothing_is_supported(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object) -> int:
        raise FileNotFoundError("/proc/self/pagemap")

    monkeypatch.setattr(os, "open", missing)

    assert not WrittenPages().supported
