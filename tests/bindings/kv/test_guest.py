import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from belem.bindings.aiokv import Entry, SQLiteStore
from belem.bindings.kv import KVNamespace
from belem.isolates import Event, Host, Limits, Program, Script
from belem.isolates.guests.js import javascript

WORKER = Path(__file__).with_name("worker.js")
NOW = 1_700_000_000

# The body of an async function of KV and the request, and what it returned or threw.
Ask = Callable[..., Awaitable[Any]]


@pytest.fixture(scope="module")
def cache_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("code") / "cache"


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SQLiteStore]:
    async with SQLiteStore(tmp_path / "kv.sqlite", clock=lambda: NOW) as store:
        yield store


@pytest.fixture
async def ask(cache_dir: Path, store: SQLiteStore) -> AsyncIterator[Ask]:
    extension = Script("belem:kv", files("belem.bindings.kv").joinpath("guest.js").read_text())
    guest = javascript(extensions=[extension])
    capabilities = {"kv:KV": KVNamespace(store, "id", clock=lambda: NOW)}
    worker = WORKER.read_text()
    async with Host(cache_dir) as host:

        async def run(source: str, body: bytes | None = None) -> Any:
            program = Program(
                main="worker.js",
                modules={
                    "worker.js": worker,
                    "ask.js": f"export default async (KV, request) => {{ {source} }};",
                },
                configuration={"bindings": [{"name": "KV", "type": "kv"}]},
            )
            image = await host.build(guest, program)
            isolate = host.spawn(image, capabilities, Limits(), lambda line: None)
            method = "GET" if body is None else "POST"
            reply = await isolate.dispatch(Event("fetch", f"{method} http://worker/", body))
            text = reply.body
            if not isinstance(text, bytes):
                assert text is not None
                text = b"".join([chunk async for chunk in text])
            await isolate.aclose()
            answer = json.loads(text)
            return answer.get("value", answer)

        yield run


async def test_values_come_back_in_every_type(ask: Ask) -> None:
    value = await ask("""
        await KV.put("key", '{"a":"ü"}');
        return [
          await KV.get("key"), await KV.get("key", "text"), await KV.get("key", { type: "json" }),
          await KV.get("key", "arrayBuffer"),
          await new Response(await KV.get("key", "stream")).text(),
        ];
    """)

    text = '{"a":"ü"}'
    assert value == [text, text, {"a": "ü"}, {"buffer": list(text.encode())}, text]


async def test_a_missing_key_is_null_in_every_type(ask: Ask) -> None:
    value = await ask("""
        const found = [];
        for (const type of ["text", "json", "arrayBuffer", "stream"]) {
          found.push(await KV.get("missing", type));
        }
        return [...found, await KV.getWithMetadata("missing", "stream")];
    """)

    nothing = {"value": None, "metadata": None, "cacheStatus": None}
    assert value == [None, None, None, None, nothing]


async def test_an_empty_value_is_not_missing(ask: Ask) -> None:
    value = await ask("""
        await KV.put("key", "");
        const stream = await KV.get("key", "stream");
        return [
          await KV.get("key"), await KV.get("key", "arrayBuffer"),
          await new Response(stream).text(), await KV.get(["key"]),
        ];
    """)

    assert value == ["", {"buffer": []}, "", {"map": [["key", ""]]}]


@pytest.mark.parametrize(
    ("expression", "stored"),
    [
        ('"\\ufefftext"', "\ufefftext".encode()),
        ("new Uint8Array([0, 1, 255]).buffer", b"\0\1\xff"),
        ("new Uint8Array([9, 0, 1, 255]).subarray(1)", b"\0\1\xff"),
        ("new DataView(new Uint8Array([9, 7]).buffer, 1)", b"\7"),
        ("new Float32Array(1)", bytes(4)),
        ('new Response("streamed").body', b"streamed"),
        ("true", b"true"),
        ('"\\ud800"', "\ufffd".encode()),
    ],
)
async def test_put_stores_the_bytes(
    ask: Ask, store: SQLiteStore, expression: str, stored: bytes
) -> None:
    await ask(f'await KV.put("key", {expression})')

    assert await store.get("id", "key") == Entry(stored)


async def test_text_keeps_its_byte_order_mark(ask: Ask, store: SQLiteStore) -> None:
    await store.put("id", "key", "\ufefftext".encode())

    assert await ask('return KV.get("key")') == "\ufefftext"


async def test_metadata_and_expiration_reach_the_store(ask: Ask, store: SQLiteStore) -> None:
    await ask("""
        await KV.put("ttl", "v", { expirationTtl: 60.9, metadata: { a: [1, "ü"] } });
        await KV.put("at", "v", { expiration: "1700000060" });
        await KV.put("none", "v", { metadata: null });
    """)

    assert await store.get("id", "ttl") == Entry(b"v", '{"a":[1,"ü"]}', NOW + 60)
    assert await store.get("id", "at") == Entry(b"v", None, NOW + 60)
    assert await store.get("id", "none") == Entry(b"v")


async def test_metadata_comes_back(ask: Ask) -> None:
    value = await ask("""
        await KV.put("key", "v", { metadata: { a: 1 } });
        return [await KV.getWithMetadata("key"), (await KV.list()).keys];
    """)

    assert value == [
        {"value": "v", "metadata": {"a": 1}, "cacheStatus": None},
        [{"name": "key", "metadata": {"a": 1}}],
    ]


async def test_many_keys_make_a_map_in_their_order(ask: Ask) -> None:
    value = await ask("""
        await KV.put("b", "[1]", { metadata: 5 });
        await KV.put("1", "[2]");
        return [
          await KV.get(["b", "missing", 1, "b"], "json"),
          await KV.getWithMetadata(["1", "b", "missing"]),
        ];
    """)

    assert value[0] == {"map": [["b", [1]], ["missing", None], ["1", [2]]]}
    assert value[1] == {
        "map": [
            ["1", {"value": "[2]", "metadata": None}],
            ["b", {"value": "[1]", "metadata": 5}],
            ["missing", None],
        ]
    }


async def test_one_value_that_is_no_json_fails_many(ask: Ask) -> None:
    answer = await ask('await KV.put("a", "{"); return KV.get(["a"], "json");')

    message = "400 At least one of the requested keys corresponds to a non-json value"
    assert answer == {"throws": ["Error", f"KV GET_BULK failed: {message}"]}


async def test_json_that_is_none_is_a_syntax_error(ask: Ask) -> None:
    answer = await ask('await KV.put("a", "{"); return KV.get("a", "json");')

    assert answer["throws"][0] == "SyntaxError"


async def test_a_type_is_looked_at_when_there_is_a_value(ask: Ask) -> None:
    assert await ask('return KV.get("missing", "xml")') is None  # as on Workers


async def test_the_largest_value_goes_in_and_out(ask: Ask, store: SQLiteStore) -> None:
    value = await ask("""
        const bytes = new Uint8Array(25 * 1024 * 1024).fill(97);
        await KV.put("key", bytes);
        const back = await KV.get("key", "arrayBuffer");
        let streamed = 0;
        for await (const chunk of await KV.get("key", "stream")) streamed += chunk.byteLength;
        return [back.byteLength, streamed];
    """)

    assert value == [25 * 1024 * 1024] * 2
    assert await store.get("id", "key") == Entry(b"a" * 25 * 1024 * 1024)


async def test_a_stream_over_the_limit_is_refused_and_cancelled(ask: Ask) -> None:
    value = await ask("""
        let pulled = 0, cancelled = false;
        const stream = new ReadableStream({
          pull(controller) { pulled++; controller.enqueue(new Uint8Array(1024 * 1024)); },
          cancel() { cancelled = true; },
        });
        const message = await KV.put("key", stream).catch((error) => error.message);
        await new Promise((resolve) => setTimeout(resolve, 1));
        return [message, pulled < 40, cancelled, await KV.get("key")];
    """)

    assert re.fullmatch(
        r"KV PUT failed: 413 Value length of 26\d{6} exceeds limit of 26214400\.", value[0]
    )
    assert value[1:] == [True, True, None]


async def test_a_request_body_is_put_as_it_comes(ask: Ask, store: SQLiteStore) -> None:
    body = bytes(range(256)) * 4096

    await ask('await KV.put("key", request.body)', body)

    assert await store.get("id", "key") == Entry(body)


async def test_a_stream_that_fails_puts_nothing(ask: Ask, store: SQLiteStore) -> None:
    answer = await ask("""
        const stream = new ReadableStream({
          start(controller) { controller.enqueue(new Uint8Array(5)); },
          pull(controller) { controller.error(new Error("broken off")); },
        });
        return KV.put("key", stream);
    """)

    assert "throws" in answer
    assert await store.get("id", "key") is None


@pytest.mark.parametrize("value", ["{}", "[]", "() => 1", "new Date(0)", "new String('a')"])
async def test_put_refuses_other_objects(ask: Ask, value: str) -> None:
    answer = await ask(f'await KV.put("key", {value})')

    assert answer["throws"][0] == "TypeError"
    assert answer["throws"][1].startswith("KV put() accepts only strings, ArrayBuffers,")


@pytest.mark.parametrize(
    "options", ["{ expirationTtl: 2 ** 31 }", "{ expiration: -(2 ** 31) - 1 }"]
)
async def test_numbers_beyond_32_bits_are_refused(ask: Ask, options: str) -> None:
    answer = await ask(f'await KV.put("key", "v", {options})')

    message = "Value out of range. Must be between -2147483648 and 2147483647 (inclusive)."
    assert answer == {"throws": ["TypeError", message]}


async def test_the_class_cannot_be_used_past_its_instances(ask: Ask) -> None:
    value = await ask("""
        const message = async (run) => {
          try { await run(); } catch (error) { return [error.name, error.message]; }
        };
        const { get } = KV;
        return [
          await message(() => new KV.constructor()),
          await message(() => new KV.constructor({}, "AI")),
          await message(() => get("key")),
          await message(() => KV.get.call({}, "key")),
          await message(() => KV.put.call(Object.create(KV), "key", "v")),
        ];
    """)

    constructor = ["TypeError", "Illegal constructor"]
    assert value[:2] == [constructor, constructor]
    for name, message in value[2:]:
        assert name == "TypeError"
        assert message.startswith("Illegal invocation")


async def test_nothing_of_the_host_is_within_reach(ask: Ask) -> None:
    value = await ask("""
        return [
          typeof globalThis.__belem, Reflect.ownKeys(KV), JSON.stringify(KV),
          Reflect.ownKeys(KV.constructor).map(String).sort(),
          Reflect.ownKeys(Object.getPrototypeOf(KV)).map(String).sort(),
        ];
    """)

    assert value == [
        "undefined",
        [],
        "{}",
        ["length", "name", "prototype"],
        [
            "Symbol(Symbol.toStringTag)",
            "constructor",
            "delete",
            "get",
            "getWithMetadata",
            "list",
            "put",
        ],
    ]


async def test_patched_globals_change_nothing(ask: Ask) -> None:
    value = await ask("""
        const seen = [];
        const spy = (object, name) => {
          const original = object[name];
          object[name] = function (...args) { seen.push(name); return original.apply(this, args); };
        };
        for (const name of ["parse", "stringify"]) spy(JSON, name);
        for (const name of ["set", "has"]) spy(Map.prototype, name);
        spy(TextDecoder.prototype, "decode");
        spy(Array, "isArray");
        globalThis.ReadableStream = globalThis.TypeError = undefined;
        await KV.put("key", '{"a":1}', { metadata: { m: 1 } });
        const found = await KV.getWithMetadata("key", "json");
        const many = await KV.get(["key"]);
        const { keys } = await KV.list();
        return [found, many.size, keys, seen.slice()];
    """)

    assert value == [
        {"value": {"a": 1}, "metadata": {"m": 1}, "cacheStatus": None},
        1,
        [{"name": "key", "metadata": {"m": 1}}],
        [],
    ]
