import asyncio
import dataclasses
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from belem.runtime.control import Binding, SQLiteVersionStore, Upload
from belem.runtime.control.blobs import Blobs
from belem.runtime.control.errors import StoreFault
from belem.sdk import Json
from tests.runtime.control.stages import upload


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SQLiteVersionStore]:
    opened = SQLiteVersionStore(tmp_path, now_ms=lambda: 1_700_000_000_000)
    yield opened
    await opened.aclose()


async def test_a_version_comes_back_as_it_was_uploaded(
    store: SQLiteVersionStore, tmp_path: Path
) -> None:
    variables: dict[str, Json] = {"A": "text", "B": {"deep": [1, None]}}
    made = Upload(
        worker="hello",
        main_module="src/worker.js",
        modules={"src/worker.js": "export default {}", "src/é.js": "export const a = '€'"},
        bindings=(Binding("AI", "ai"), Binding("KV", "kv_namespace", "id-1")),
        vars=variables,
        compatibility_date="2026-11-01",
        compatibility_flags=("nodejs_compat",),
        cpu_ms=50,
    )
    version = await store.deploy(made)
    await store.aclose()

    reopened = SQLiteVersionStore(tmp_path)
    found = await reopened.active("hello")
    await reopened.aclose()

    assert found == version
    assert found is not None
    assert found.upload == made
    assert (found.number, found.created_ms) == (1, 1_700_000_000_000)


async def test_the_newest_version_is_the_active_one(store: SQLiteVersionStore) -> None:
    await store.deploy(upload(source="one"))
    second = await store.deploy(upload(source="two"))

    active = await store.active("hello")

    assert active == second
    assert second.number == 2


async def test_workers_are_listed_by_name(store: SQLiteVersionStore) -> None:
    await store.deploy(upload("b"))
    await store.deploy(dataclasses.replace(upload("a"), bindings=(Binding("AI", "ai"),)))

    first, second = await store.list()

    assert (first.name, first.number, first.bindings) == ("a", 1, (Binding("AI", "ai"),))
    assert second.name == "b"


async def test_a_deleted_worker_is_gone_and_starts_again_at_one(
    store: SQLiteVersionStore,
) -> None:
    await store.deploy(upload())
    await store.deploy(upload())

    assert await store.delete("hello")

    assert not await store.delete("hello")
    assert await store.active("hello") is None
    assert (await store.deploy(upload())).number == 1


async def test_modules_are_stored_once_and_go_with_their_last_version(
    store: SQLiteVersionStore, tmp_path: Path
) -> None:
    await store.deploy(upload("a", "shared"))
    await store.deploy(upload("b", "shared"))
    await store.deploy(upload("c", "alone"))

    await store.delete("a")
    await store.delete("c")

    assert len(list((tmp_path / "blobs").glob("??/*"))) == 1
    assert await store.active("b") is not None


async def test_what_a_crash_left_goes_with_the_first_removal_and_shared_modules_stay(
    store: SQLiteVersionStore, tmp_path: Path
) -> None:
    for name, source in (("a", "first"), ("b", "shared"), ("c", "shared"), ("d", "alone")):
        await store.deploy(upload(name, source))
    Blobs(tmp_path / "blobs").put(b"of a version that was never kept")

    counts = list[int]()
    for name in "abcd":
        await store.delete(name)
        counts.append(len(list((tmp_path / "blobs").glob("??/*"))))

    assert counts == [2, 2, 1, 0]


async def test_more_blobs_than_are_looked_for_singly_go_too(
    store: SQLiteVersionStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("belem.runtime.control.store._MOST_LOOKED_FOR", 1)
    modules = {f"{number}.js": f"module {number}" for number in range(5)}
    await store.deploy(upload("a", "first"))
    await store.deploy(dataclasses.replace(upload("b"), modules=modules, main_module="0.js"))

    await store.delete("a")
    await store.delete("b")

    assert list((tmp_path / "blobs").glob("??/*")) == []


async def test_old_versions_are_pruned(
    store: SQLiteVersionStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("belem.runtime.control.store._KEPT_VERSIONS", 2)
    for number in range(4):
        await store.deploy(upload(source=f"version {number}"))

    with sqlite3.connect(tmp_path / "versions.sqlite") as db:
        numbers = [row[0] for row in db.execute("SELECT number FROM versions ORDER BY number")]

    db.close()
    assert numbers == [3, 4]
    active = await store.active("hello")
    assert active is not None
    assert active.upload.modules["worker.js"] == "version 3"


async def test_deploys_at_once_get_numbers_of_their_own(store: SQLiteVersionStore) -> None:
    versions = await asyncio.gather(*(store.deploy(upload(source=str(n))) for n in range(20)))

    assert sorted(version.number for version in versions) == list(range(1, 21))
    active = await store.active("hello")
    assert active is not None
    assert active.number == 20


async def test_a_failed_deploy_leaves_the_old_version_active(
    store: SQLiteVersionStore, tmp_path: Path
) -> None:
    before = await store.deploy(upload(source="old"))
    blobs = tmp_path / "blobs"
    blobs.rename(tmp_path / "away")
    blobs.write_text("not a folder")

    with pytest.raises(StoreFault):
        await store.deploy(upload(source="new"))

    blobs.unlink()
    (tmp_path / "away").rename(blobs)
    assert await store.active("hello") == before


async def test_a_closed_store_says_so(store: SQLiteVersionStore) -> None:
    await store.aclose()
    await store.aclose()

    with pytest.raises(StoreFault, match="closed"):
        await store.list()
