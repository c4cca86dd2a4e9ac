"""What every store must do. A store's test module subclasses this and gives `store` and `clock`."""

import asyncio

import pytest

from belem.bindings.aiokv import (
    MAX_KEY_BYTES,
    MAX_METADATA_BYTES,
    MAX_VALUE_BYTES,
    Entry,
    InvalidArgument,
    InvalidCursor,
    InvalidKey,
    InvalidLimit,
    Key,
    Store,
    StoreClosed,
    TooLarge,
)

NOW = 1_700_000_000


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self, now: float = NOW) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


class StoreConformance:
    """The behaviour of `Store`, whatever keeps the bytes."""

    async def test_get_returns_none_for_a_missing_key(self, store: Store) -> None:
        assert await store.get("ns", "nothing") is None

    async def test_put_keeps_value_metadata_and_expiration(self, store: Store) -> None:
        await store.put("ns", "key", b"\0value\xff", metadata='{"a":1}', expiration=NOW + 60)

        assert await store.get("ns", "key") == Entry(b"\0value\xff", '{"a":1}', NOW + 60)

    async def test_put_replaces_the_whole_entry(self, store: Store) -> None:
        await store.put("ns", "key", b"old", metadata="1", expiration=NOW + 60)

        await store.put("ns", "key", b"new")

        assert await store.get("ns", "key") == Entry(b"new")

    async def test_an_empty_value_is_a_value(self, store: Store) -> None:
        await store.put("ns", "key", b"")

        assert await store.get("ns", "key") == Entry(b"")

    async def test_the_largest_value_comes_back(self, store: Store) -> None:
        value = bytes(range(256)) * (MAX_VALUE_BYTES // 256)

        await store.put("ns", "key", value)

        entry = await store.get("ns", "key")
        assert entry is not None
        assert entry.value == value

    async def test_namespaces_do_not_see_each_other(self, store: Store) -> None:
        await store.put("one", "key", b"1")
        await store.put("two", "key", b"2")

        await store.delete("one", "key")

        assert await store.get("one", "key") is None
        assert await store.get("two", "key") == Entry(b"2")
        assert (await store.list("one")).keys == ()

    async def test_delete_of_a_missing_key_is_fine(self, store: Store) -> None:
        await store.delete("ns", "nothing")

        assert await store.get("ns", "nothing") is None

    async def test_delete_many_leaves_the_others(self, store: Store) -> None:
        for key in "abc":
            await store.put("ns", key, b"")

        await store.delete_many("ns", ["a", "c", "missing"])

        assert [key.name for key in (await store.list("ns")).keys] == ["b"]

    async def test_get_many_returns_what_exists(self, store: Store) -> None:
        await store.put("ns", "a", b"1", metadata="1")
        await store.put("ns", "b", b"2")

        found = await store.get_many("ns", ["b", "missing", "a", "a"])

        assert found == {"a": Entry(b"1", "1"), "b": Entry(b"2")}

    async def test_get_many_refuses_more_than_its_limit_together(self, store: Store) -> None:
        await store.put("ns", "a", b"12345")
        await store.put("ns", "b", b"12345")

        assert len(await store.get_many("ns", ["a", "b"], limit_bytes=10)) == 2
        with pytest.raises(TooLarge, match="over 9 bytes"):
            await store.get_many("ns", ["a", "b"], limit_bytes=9)

    async def test_an_expired_entry_is_gone_at_once(self, store: Store, clock: Clock) -> None:
        await store.put("ns", "key", b"", expiration=NOW + 60)

        clock.now = NOW + 59.9
        before = await store.get("ns", "key")
        clock.now = NOW + 60
        after = await store.get("ns", "key")

        assert before is not None
        assert after is None
        assert await store.get_many("ns", ["key"]) == {}
        assert (await store.list("ns")).keys == ()

    async def test_put_brings_an_expired_key_back(self, store: Store, clock: Clock) -> None:
        await store.put("ns", "key", b"old", expiration=NOW + 60)
        clock.now = NOW + 61

        await store.put("ns", "key", b"new")
        await store.put("ns", "other", b"")

        assert await store.get("ns", "key") == Entry(b"new")

    async def test_a_put_that_is_expired_already_hides_the_key(self, store: Store) -> None:
        await store.put("ns", "key", b"old")

        await store.put("ns", "key", b"new", expiration=NOW - 1)

        assert await store.get("ns", "key") is None

    async def test_list_orders_keys_by_their_utf8_bytes(self, store: Store) -> None:
        names = ["b", "a", "aa", "a\0", "é", "z", "\uffff", "\U0001f600", "~", "A", "a/b"]
        for name in names:
            await store.put("ns", name, b"")

        page = await store.list("ns")

        assert [key.name for key in page.keys] == sorted(names, key=str.encode)
        assert page.cursor is None

    async def test_list_shows_metadata_and_expiration(self, store: Store) -> None:
        await store.put("ns", "a", b"value", metadata='{"x":[1]}', expiration=NOW + 100)
        await store.put("ns", "b", b"value")

        page = await store.list("ns")

        assert page.keys == (Key("a", '{"x":[1]}', NOW + 100), Key("b"))

    @pytest.mark.parametrize(
        ("prefix", "expected"),
        [
            ("", ["a", "a:1", "a:2", "a\U0010ffff", "b"]),
            ("a", ["a", "a:1", "a:2", "a\U0010ffff"]),
            ("a:", ["a:1", "a:2"]),
            ("a\U0010ffff", ["a\U0010ffff"]),
            ("c", []),
        ],
    )
    async def test_list_finds_keys_by_prefix(
        self, store: Store, prefix: str, expected: list[str]
    ) -> None:
        for name in ["a", "a:1", "a:2", "a\U0010ffff", "b"]:
            await store.put("ns", name, b"")

        page = await store.list("ns", prefix=prefix)

        assert [key.name for key in page.keys] == expected

    @pytest.mark.parametrize("limit", [1, 2, 3, 4, 7, 8])
    async def test_pages_together_are_the_whole_listing(self, store: Store, limit: int) -> None:
        names = [f"p{number}" for number in range(7)]
        for name in [*names, "a", "q"]:
            await store.put("ns", name, b"")

        seen: list[str] = []
        page = await store.list("ns", prefix="p", limit=limit)
        seen += [key.name for key in page.keys]
        while page.cursor is not None:
            assert len(page.keys) == limit
            page = await store.list("ns", prefix="p", limit=limit, cursor=page.cursor)
            seen += [key.name for key in page.keys]

        assert seen == names

    async def test_a_cursor_stands_when_its_key_is_deleted(self, store: Store) -> None:
        for name in "abcd":
            await store.put("ns", name, b"")
        page = await store.list("ns", limit=2)

        await store.delete_many("ns", ["b", "c"])

        rest = await store.list("ns", limit=2, cursor=page.cursor)
        assert [key.name for key in rest.keys] == ["d"]

    @pytest.mark.parametrize(
        "cursor", ["", "A", "AAAA", "!!!", "é", "x" * 5000, "AgAAAABr", "null"]
    )
    async def test_a_cursor_from_elsewhere_is_refused(self, store: Store, cursor: str) -> None:
        with pytest.raises(InvalidCursor):
            await store.list("ns", cursor=cursor)

    @pytest.mark.parametrize("limit", [0, -1, 1001])
    async def test_a_page_size_out_of_range_is_refused(self, store: Store, limit: int) -> None:
        with pytest.raises(InvalidLimit, match=f"is {limit}; it must be 1 to 1000"):
            await store.list("ns", limit=limit)

    @pytest.mark.parametrize("key", ["", "x" * (MAX_KEY_BYTES + 1), "é" * 257, "\ud800"])
    async def test_a_key_out_of_bounds_is_refused(self, store: Store, key: str) -> None:
        with pytest.raises(InvalidKey):
            await store.put("ns", key, b"")
        with pytest.raises(InvalidKey):
            await store.get("ns", key)
        with pytest.raises(InvalidKey):
            await store.delete("ns", key)
        with pytest.raises(InvalidKey):
            await store.get_many("ns", [key])

    async def test_a_key_of_the_greatest_length_works(self, store: Store) -> None:
        key = "é" * (MAX_KEY_BYTES // 2)

        await store.put("ns", key, b"v")

        assert await store.get("ns", key) == Entry(b"v")

    @pytest.mark.parametrize("namespace", ["", "n" * 257])
    async def test_a_namespace_out_of_bounds_is_refused(self, store: Store, namespace: str) -> None:
        with pytest.raises(InvalidKey, match="Namespace"):
            await store.put(namespace, "key", b"")

    async def test_oversize_values_and_metadata_are_refused(self, store: Store) -> None:
        with pytest.raises(TooLarge, match="Value is 26214401 bytes; the limit is 26214400"):
            await store.put("ns", "key", bytes(MAX_VALUE_BYTES + 1))
        with pytest.raises(TooLarge, match="Metadata is 1026 bytes"):
            await store.put("ns", "key", b"", metadata="é" * (MAX_METADATA_BYTES // 2 + 1))
        with pytest.raises(InvalidArgument, match="surrogate"):
            await store.put("ns", "key", b"", metadata="\udfff")

    async def test_concurrent_writes_all_land(self, store: Store) -> None:
        async with asyncio.TaskGroup() as tasks:
            for number in range(300):
                tasks.create_task(store.put("ns", f"k{number:03}", str(number).encode()))

        found = await store.get_many("ns", [f"k{number:03}" for number in range(300)])
        assert [int(entry.value) for entry in found.values()] == list(range(300))

    async def test_the_last_of_ordered_writes_wins(self, store: Store) -> None:
        async with asyncio.TaskGroup() as tasks:
            for number in range(100):
                tasks.create_task(store.put("ns", "key", str(number).encode()))

        assert await store.get("ns", "key") == Entry(b"99")

    async def test_a_cancelled_put_is_whole_or_absent(self, store: Store) -> None:
        puts = [
            asyncio.create_task(store.put("ns", f"k{number}", b"value", metadata="1"))
            for number in range(50)
        ]
        await asyncio.sleep(0)
        for put in puts[::2]:
            put.cancel()
        outcomes = await asyncio.gather(*puts, return_exceptions=True)

        found = await store.get_many("ns", [f"k{number}" for number in range(50)])
        assert set(found.values()) == {Entry(b"value", "1")}
        for number, outcome in enumerate(outcomes):
            assert outcome is None or isinstance(outcome, asyncio.CancelledError)
            assert outcome is not None or f"k{number}" in found

    async def test_a_closed_store_refuses(self, store: Store) -> None:
        await store.aclose()
        await store.aclose()

        with pytest.raises(StoreClosed):
            await store.get("ns", "key")
        with pytest.raises(StoreClosed):
            await store.put("ns", "key", b"")
