# ruff: noqa: E501 # the table of texts reads best one case a line
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from belem.bindings.aiokv import MAX_VALUE_BYTES, SQLiteStore
from belem.bindings.kv import KVError, KVNamespace
from belem.sdk.ops import Answer, Call, Json, Rejection

NOW = 1_700_000_000


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SQLiteStore]:
    async with SQLiteStore(tmp_path / "kv.sqlite", clock=lambda: NOW) as store:
        yield store


@pytest.fixture
def kv(store: SQLiteStore) -> KVNamespace:
    return KVNamespace(store, "id", clock=lambda: NOW)


async def ask(
    kv: KVNamespace, method: str, *args: Json, body: bytes | AsyncIterator[bytes] | None = None
) -> Answer:
    return await kv(Call(method, args, body))


async def read(body: bytes | AsyncIterator[bytes] | None) -> bytes:
    assert body is not None
    assert not isinstance(body, bytes)
    return b"".join([chunk async for chunk in body])


async def chunks(parts: Sequence[bytes], taken: list[int]) -> AsyncIterator[bytes]:
    for part in parts:
        taken.append(len(part))
        yield part


async def test_get_of_a_missing_key_answers_null(kv: KVNamespace) -> None:
    assert await ask(kv, "get", "missing") == Answer(None, None)


async def test_put_and_get(kv: KVNamespace) -> None:
    put = await ask(kv, "put", "key", body=b"value")

    assert put == Answer(None)
    assert await ask(kv, "get", "key", {"type": "text"}) == Answer([None], b"value")


async def test_an_empty_value_differs_from_none(kv: KVNamespace) -> None:
    await ask(kv, "put", "key")

    assert await ask(kv, "get", "key") == Answer([None], b"")


async def test_metadata_is_kept_as_text(kv: KVNamespace) -> None:
    await ask(kv, "put", "key", {"metadata": '{"a": 1}'}, body=b"value")

    assert (await ask(kv, "get", "key")).value == ['{"a": 1}']


async def test_a_stream_is_put_and_got_in_pieces(kv: KVNamespace) -> None:
    taken: list[int] = []
    parts = [bytes([number]) * 50_000 for number in range(5)]

    await ask(kv, "put", "key", body=chunks(parts, taken))
    answer = await ask(kv, "get", "key", {"type": "stream"})

    assert await read(answer.body) == b"".join(parts)


async def test_put_stops_reading_a_stream_at_the_limit(kv: KVNamespace) -> None:
    taken: list[int] = []
    mebibyte = bytes(1024 * 1024)

    with pytest.raises(
        KVError,
        match=r"^KV PUT failed: 413 Value length of 27262976 exceeds limit of 26214400\.$",
    ):
        await ask(kv, "put", "key", body=chunks([mebibyte] * 40, taken))

    assert len(taken) == 26
    assert (await ask(kv, "get", "key")).value is None


async def test_put_refuses_bytes_over_the_limit(kv: KVNamespace) -> None:
    with pytest.raises(KVError, match=r"413 Value length of 26214401 exceeds limit of 26214400\.$"):
        await ask(kv, "put", "key", body=bytes(MAX_VALUE_BYTES + 1))


async def test_namespaces_of_one_store_are_apart(store: SQLiteStore, kv: KVNamespace) -> None:
    other = KVNamespace(store, "other", clock=lambda: NOW)

    await ask(kv, "put", "key", body=b"1")

    assert (await ask(other, "get", "key")).value is None


async def test_get_many_joins_the_values(kv: KVNamespace) -> None:
    await ask(kv, "put", "a", body=b"12")
    await ask(kv, "put", "b", {"metadata": "1"}, body=b"345")

    answer = await ask(kv, "get_many", ["b", "missing", "a", "b"])

    assert answer == Answer([[3, "1"], None, [2, None], None], b"34512")


async def test_get_many_refuses_more_than_25_mebibytes(kv: KVNamespace) -> None:
    half = bytes(MAX_VALUE_BYTES // 2 + 1)
    await ask(kv, "put", "a", body=half)
    await ask(kv, "put", "b", body=half)

    with pytest.raises(
        KVError, match=r"^KV GET_BULK failed: 413 Total size of request exceeds the limit of 25MB$"
    ):
        await ask(kv, "get_many", ["a", "b"])


async def test_delete_forgets_the_key(kv: KVNamespace) -> None:
    await ask(kv, "put", "key", body=b"value")

    await ask(kv, "delete", "key")
    await ask(kv, "delete", "never")

    assert (await ask(kv, "get", "key")).value is None


async def test_list_shows_names_expirations_and_metadata(kv: KVNamespace) -> None:
    await ask(kv, "put", "a", {"expirationTtl": 60, "metadata": "[1]"}, body=b"")
    await ask(kv, "put", "b", body=b"")

    answer = await ask(kv, "list", {})

    assert answer.value == {
        "keys": [{"name": "a", "expiration": NOW + 60, "metadata": "[1]"}, {"name": "b"}],
        "list_complete": True,
    }


async def test_list_goes_on_from_its_cursor(kv: KVNamespace) -> None:
    for name in ["p:1", "p:2", "q"]:
        await ask(kv, "put", name, body=b"")

    first: Any = (await ask(kv, "list", {"prefix": "p:", "limit": 1})).value
    cursor = first["cursor"]
    second: Any = (await ask(kv, "list", {"prefix": "p:", "limit": 1, "cursor": cursor})).value

    assert first["list_complete"] is False
    assert first["keys"] == [{"name": "p:1"}]
    assert second == {"keys": [{"name": "p:2"}], "list_complete": True}


async def test_a_ttl_wins_over_an_expiration(kv: KVNamespace, store: SQLiteStore) -> None:
    await ask(kv, "put", "key", {"expirationTtl": 100, "expiration": NOW + 500}, body=b"")

    entry = await store.get("id", "key")
    assert entry is not None
    assert entry.expiration == NOW + 100


PAST = "Please specify integer greater than the current number of seconds since the UNIX epoch."
SOON = "Expiration times must be at least 60 seconds in the future."


BACKEND_ERRORS: list[tuple[str, list[Json], str]] = [
    ("get", ["k" * 513], "KV GET failed: 414 UTF-8 encoded length of 513 exceeds key length limit of 512."),
    ("put", ["ü" * 257], "KV PUT failed: 414 UTF-8 encoded length of 514 exceeds key length limit of 512."),
    ("delete", ["k" * 513], "KV DELETE failed: 414 UTF-8 encoded length of 513 exceeds key length limit of 512."),
    ("list", [{"prefix": "k" * 513}], "KV GET failed: 414 UTF-8 encoded length of 513 exceeds key length limit of 512."),
    ("get", ["k", {"cacheTtl": 29}], "KV GET failed: 400 Invalid cache_ttl of 29. Cache TTL must be at least 30."),
    ("list", [{"limit": 1001}], "KV GET failed: 400 Invalid key_count_limit of 1001. Please specify an integer less than 1000."),
    ("list", [{"limit": 0}], "KV GET failed: 400 Invalid key_count_limit of 0. Please specify an integer greater than 0."),
    ("list", [{"cursor": "nonsense"}], "KV GET failed: 400 Invalid cursor."),
    ("put", ["k", {"expirationTtl": 59}], "KV PUT failed: 400 Invalid expiration_ttl of 59. Expiration TTL must be at least 60."),
    ("put", ["k", {"expirationTtl": 0}], "KV PUT failed: 400 Invalid expiration_ttl of 0. Please specify integer greater than 0."),
    ("put", ["k", {"expiration": NOW}], f"KV PUT failed: 400 Invalid expiration of {NOW}. {PAST}"),
    ("put", ["k", {"expiration": NOW + 59}], f"KV PUT failed: 400 Invalid expiration of {NOW + 59}. {SOON}"),
    ("put", ["k", {"metadata": '"' + "x" * 1023 + '"'}], "KV PUT failed: 413 Metadata length of 1025 exceeds limit of 1024."),
    ("put", ["k", {"metadata": "{"}], "KV PUT failed: 400 Metadata is not JSON."),
    ("put", ["k", {"metadata": "NaN"}], "KV PUT failed: 400 Metadata is not JSON."),
    ("put", ["k", {"metadata": "[" * 1024}], "KV PUT failed: 400 Metadata is not JSON."),
    ("get_many", [[]], "KV GET_BULK failed: 400 You must request a minimum of 1 key"),
    ("get_many", [["k"] * 101], "KV GET_BULK failed: 400 You can request a maximum of 100 keys"),
    ("get_many", [["k"], {"type": "stream"}], 'KV GET_BULK failed: 400 "stream" is not a valid type. Use "json" or "text"'),
    ("get_many", [["a", ""]], "KV GET_BULK failed: 400 Key names must not be empty"),
    ("get_many", [["."]], 'KV GET_BULK failed: 400 Illegal key name ".". Please use a different name.'),
    ("get_many", [["k" * 513]], "KV GET_BULK failed: 414 UTF-8 encoded length of 513 exceeds key length limit of 512."),
    ("get_many", [["k"], {"cacheTtl": 5}], "KV GET_BULK failed: 400 Invalid cache_ttl of 5. Cache TTL must be at least 30."),
]  # fmt: skip


@pytest.mark.parametrize(("method", "args", "message"), BACKEND_ERRORS)
async def test_backend_errors_have_workers_texts(
    kv: KVNamespace, method: str, args: list[Json], message: str
) -> None:
    with pytest.raises(KVError) as caught:
        await ask(kv, method, *args, body=b"value")

    assert (caught.value.name, caught.value.message) == ("Error", message)
    assert str(caught.value.status) in message
    assert caught.value.side == "user"


@pytest.mark.parametrize(
    ("method", "args", "message"),
    [
        ("get", [""], "Key name cannot be empty."),
        ("put", ["."], '"." is not allowed as a key name.'),
        ("delete", [".."], '".." is not allowed as a key name.'),
    ],
)
async def test_key_names_are_type_errors(
    kv: KVNamespace, method: str, args: list[Json], message: str
) -> None:
    with pytest.raises(Rejection) as caught:
        await ask(kv, method, *args, body=b"value")

    assert (caught.value.name, caught.value.message) == ("TypeError", message)


WRONG_TYPES: list[tuple[str, list[Json]]] = [
    ("drop", ["key"]),
    ("get", []),
    ("get", [5]),
    ("get", [None]),
    ("get", ["\ud800"]),
    ("get", ["k", "text"]),
    ("get", ["k", {"cacheTtl": True}]),
    ("get", ["k", {"cacheTtl": 60.5}]),
    ("get", ["k", {"cacheTtl": "60"}]),
    ("get_many", ["key"]),
    ("get_many", [{"key": 1}]),
    ("get_many", [["k", 1]]),
    ("put", [["k"]]),
    ("put", ["k", []]),
    ("put", ["k", {"metadata": {"a": 1}}]),
    ("put", ["k", {"expirationTtl": "60"}]),
    ("delete", [False]),
    ("list", [{"limit": "5"}]),
    ("list", [{"prefix": 5}]),
    ("list", [{"cursor": {}}]),
]


@pytest.mark.parametrize(("method", "args"), WRONG_TYPES)
async def test_arguments_of_other_types_are_refused(
    kv: KVNamespace, method: str, args: list[Json]
) -> None:
    with pytest.raises(Rejection) as caught:
        await ask(kv, method, *args, body=b"value")

    assert caught.value.name == "TypeError"


@pytest.mark.parametrize("args", [None, "get", {"0": "key"}, 5])
async def test_arguments_that_are_no_list_are_refused(kv: KVNamespace, args: Json) -> None:
    with pytest.raises(Rejection):
        await kv(Call("get", args))


@pytest.mark.parametrize("method", ["get", "get_many", "put", "delete", "list"])
async def test_a_store_that_fails_says_nothing_of_itself(
    store: SQLiteStore, kv: KVNamespace, method: str
) -> None:
    await store.aclose()
    args: dict[str, list[Json]] = {"get_many": [["k"]], "list": [{}]}

    with pytest.raises(KVError, match=r"^KV [A-Z_]+ failed: 503 Service Unavailable$") as caught:
        await ask(kv, method, *args.get(method, ["k"]), body=b"value")

    assert caught.value.code == "kv/unavailable"
    assert caught.value.side == "system"
