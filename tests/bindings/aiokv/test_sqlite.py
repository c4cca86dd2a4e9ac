import asyncio
import os
import signal
import sqlite3
import stat
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from belem.bindings.aiokv import (
    Entry,
    SQLiteStore,
    StoreBusy,
    StoreClosed,
    StoreFailed,
    StoreUnreadable,
)
from tests.bindings.aiokv import writer
from tests.bindings.aiokv.conformance import NOW, Clock, StoreConformance

ROOT = Path(__file__).parents[3]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "kv.sqlite"


@pytest.fixture
async def store(path: Path, clock: Clock) -> AsyncIterator[SQLiteStore]:
    async with SQLiteStore(path, clock=clock) as store:
        yield store


class TestSQLiteStore(StoreConformance):
    pass


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def _read(path: Path) -> bytes:
    return path.read_bytes()


def _names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


def _rows(path: Path) -> int:
    connection = sqlite3.connect(path)
    try:
        (count,) = connection.execute("SELECT count(*) FROM entries").fetchone()
    finally:
        connection.close()
    assert isinstance(count, int)
    return count


async def _spawn_writer(path: Path, count: int) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        str(Path(writer.__file__)),
        str(path),
        str(count),
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}"},
    )


async def test_entries_survive_closing(path: Path) -> None:
    async with SQLiteStore(path) as store:
        await store.put("ns", "key", b"value", metadata="1")

    async with SQLiteStore(path) as store:
        assert await store.get("ns", "key") == Entry(b"value", "1")


async def test_acknowledged_writes_survive_kill_9(path: Path) -> None:
    process = await _spawn_writer(path, 100_000)
    assert process.stdout is not None
    acknowledged = [int(await process.stdout.readline()) for _ in range(200)]
    process.send_signal(signal.SIGKILL)
    acknowledged += [int(line) for line in (await process.stdout.read()).split(b"\n")[:-1]]
    await process.wait()

    async with SQLiteStore(path) as store:
        for number in acknowledged:
            entry = await store.get("ns", f"{number:06}")
            assert entry == Entry(str(number).encode() * 100, str(number))


async def test_processes_share_a_file_made_by_either(path: Path) -> None:
    first, second = await asyncio.gather(_spawn_writer(path, 64), _spawn_writer(path, 64))
    outputs = await asyncio.gather(first.communicate(), second.communicate())

    async with SQLiteStore(path) as store:
        assert [len(output.split()) for output, _ in outputs] == [64, 64]
        assert len((await store.list("ns")).keys) == 64


async def test_a_new_file_is_for_its_owner_only(store: SQLiteStore, path: Path) -> None:
    await store.put("ns", "key", b"secret")

    for file in path.parent.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


async def test_an_acknowledged_write_is_synced(store: SQLiteStore, path: Path) -> None:
    connection = sqlite3.connect(path)
    (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
    connection.close()
    levels = await store._writer.run(  # pyright: ignore[reportPrivateUsage] # a pragma of the connection
        lambda connection: connection.execute("PRAGMA synchronous").fetchone()
    )

    assert mode == "wal"
    assert levels == (2,)  # FULL


async def test_reads_go_on_while_another_process_writes(store: SQLiteStore, path: Path) -> None:
    await store.put("ns", "key", b"value")
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    other.execute("DELETE FROM entries")

    entry = await store.get("ns", "key")

    other.execute("ROLLBACK")
    other.close()
    assert entry == Entry(b"value")


async def test_a_lock_held_too_long_is_reported(path: Path) -> None:
    async with SQLiteStore(path, busy_timeout_ms=10) as store:
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreBusy, match="locked"):
            await store.put("ns", "key", b"value")
        other.execute("ROLLBACK")
        other.close()

        await store.put("ns", "key", b"value")

        assert await store.get("ns", "key") == Entry(b"value")


async def test_a_write_that_fails_does_not_take_its_neighbours_along(
    store: SQLiteStore, path: Path
) -> None:
    other = sqlite3.connect(path)
    other.execute(
        "CREATE TRIGGER refuse BEFORE INSERT ON entries WHEN new.key = X'62' "
        "BEGIN SELECT RAISE(ABORT, 'no b'); END"
    )
    other.close()

    outcomes = await asyncio.gather(
        *(store.put("ns", key, b"") for key in "abc"), return_exceptions=True
    )

    assert [type(outcome).__name__ for outcome in outcomes] == [
        "NoneType",
        "StoreFailed",
        "NoneType",
    ]
    assert [key.name for key in (await store.list("ns")).keys] == ["a", "c"]


async def test_sweeping_removes_expired_rows_only(
    store: SQLiteStore, path: Path, clock: Clock
) -> None:
    for number in range(5):
        await store.put("ns", f"expires{number}", b"", expiration=NOW + 60)
    await store.put("ns", "later", b"", expiration=NOW + 600)
    await store.put("ns", "never", b"")
    clock.now = NOW + 60

    swept = await store.sweep()

    assert swept == 5
    assert _rows(path) == 2


async def test_the_background_sweep_goes_on_until_all_is_removed(path: Path, clock: Clock) -> None:
    async with SQLiteStore(path, clock=clock, sweep_interval_seconds=0.001) as store:
        await asyncio.gather(
            *(store.put("ns", f"{number}", b"", expiration=NOW + 60) for number in range(600))
        )
        clock.now = NOW + 60

        async with asyncio.timeout(30):
            while _rows(path) > 0:  # noqa: ASYNC110 # nobody announces a sweep
                await asyncio.sleep(0)

    assert _rows(path) == 0


async def test_closing_finishes_the_writes_that_were_accepted(path: Path) -> None:
    store = SQLiteStore(path)
    await store.open()
    puts = [asyncio.create_task(store.put("ns", f"{number}", b"")) for number in range(200)]
    await asyncio.sleep(0)

    await store.aclose()

    assert await asyncio.gather(*puts) == [None] * 200
    assert _rows(path) == 200


async def test_closing_from_two_tasks_waits_in_both(path: Path) -> None:
    store = SQLiteStore(path)
    await store.open()
    first = asyncio.create_task(store.aclose())
    await asyncio.sleep(0)
    first.cancel()

    await store.aclose()

    assert not list(path.parent.glob("*-wal"))  # the last connection to close removes it


async def test_a_store_opens_once(store: SQLiteStore) -> None:
    with pytest.raises(StoreClosed, match="opened before"):
        await store.open()


async def test_a_store_that_is_not_open_refuses(path: Path) -> None:
    with pytest.raises(StoreClosed):
        await SQLiteStore(path).get("ns", "key")


@pytest.mark.parametrize("content", [b"hello, this is not a database at all" * 100, b"x"])
async def test_a_file_that_is_no_database_is_refused(path: Path, content: bytes) -> None:
    _write(path, content)

    with pytest.raises(StoreUnreadable):
        await SQLiteStore(path).open()

    assert _read(path) == content


async def test_the_database_of_another_program_is_left_alone(path: Path) -> None:
    _write(path, b"")
    foreign = sqlite3.connect(path)
    foreign.execute("CREATE TABLE bookmarks (url TEXT)")
    foreign.close()
    before = _read(path)

    with pytest.raises(StoreUnreadable, match="another program"):
        await SQLiteStore(path).open()

    assert _read(path) == before


async def test_a_later_layout_is_refused(path: Path) -> None:
    async with SQLiteStore(path):
        pass
    later = sqlite3.connect(path)
    later.execute("PRAGMA user_version = 2")
    later.close()

    with pytest.raises(StoreUnreadable, match="layout version 2; this build reads version 1"):
        await SQLiteStore(path).open()


async def test_closing_folds_the_log_into_the_file(path: Path) -> None:
    for _ in range(50):  # connections that close at the same moment race
        async with SQLiteStore(path) as store:
            await store.put("ns", "key", b"value")
            await asyncio.gather(*(store.get("ns", "key") for _ in range(4)))

        assert _names(path.parent) == [path.name]


async def test_a_file_cut_short_is_refused(path: Path) -> None:
    async with SQLiteStore(path) as store:
        for number in range(200):
            await store.put("ns", f"{number}", bytes(4000))
    _write(path, _read(path)[:8192])

    with pytest.raises(StoreUnreadable):
        await SQLiteStore(path).open()


async def test_a_folder_in_the_way_is_reported(path: Path) -> None:
    _write(path / "file", b"")

    with pytest.raises(StoreFailed, match="cannot be used"):
        await SQLiteStore(path).open()
