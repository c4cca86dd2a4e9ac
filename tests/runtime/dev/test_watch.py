import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from belem.runtime.dev.watch import Watcher


@pytest.fixture
async def watcher(tmp_path: Path) -> AsyncIterator[Watcher]:
    (tmp_path / "worker.ts").write_text("one")
    watcher = Watcher([tmp_path / "worker.ts", tmp_path / "missing.ts"])
    yield watcher
    watcher.close()


async def next_save(watcher: Watcher) -> frozenset[Path]:
    async with asyncio.timeout(10):
        async for changed in watcher:
            return changed
    raise AssertionError("the watcher ended")


async def test_a_plain_write_is_a_save(watcher: Watcher, tmp_path: Path) -> None:
    saves = asyncio.create_task(next_save(watcher))

    (tmp_path / "worker.ts").write_text("two, longer")

    assert await saves == {tmp_path / "worker.ts"}


async def test_a_rename_over_the_file_is_a_save(watcher: Watcher, tmp_path: Path) -> None:
    saves = asyncio.create_task(next_save(watcher))

    (tmp_path / ".worker.ts.swp").write_text("two")
    os.replace(tmp_path / ".worker.ts.swp", tmp_path / "worker.ts")

    assert await saves == {tmp_path / "worker.ts"}


async def test_a_missing_file_that_appears_is_a_save(watcher: Watcher, tmp_path: Path) -> None:
    saves = asyncio.create_task(next_save(watcher))

    (tmp_path / "missing.ts").write_text("here")

    assert await saves == {tmp_path / "missing.ts"}


async def test_a_neighbour_is_no_save(watcher: Watcher, tmp_path: Path) -> None:
    saves = asyncio.create_task(next_save(watcher))

    (tmp_path / "notes.txt").write_text("not part of the bundle")
    (tmp_path / "worker.ts").write_text("two, longer")

    assert await saves == {tmp_path / "worker.ts"}


async def test_new_files_are_watched_while_waiting(watcher: Watcher, tmp_path: Path) -> None:
    library = tmp_path / "lib"
    library.mkdir()
    (library / "text.ts").write_text("one")
    saves = asyncio.create_task(next_save(watcher))
    await asyncio.sleep(0)

    watcher.watch([tmp_path / "worker.ts", library / "text.ts"])
    (library / "text.ts").write_text("two, longer")

    assert await saves == {library / "text.ts"}


async def test_close_ends_the_iteration(watcher: Watcher) -> None:
    watcher.close()

    assert [changed async for changed in watcher] == []
