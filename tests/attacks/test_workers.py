"""Workers that burn, fill, flood and recurse: each attack ends, and the neighbour never waits."""

import pytest

from tests.attacks.conftest import Host

ENDLESS = {
    "for": "for (;;);",
    "microtasks": "for (;;) await null;",
    "promise chain": "const again = () => Promise.resolve().then(again); await again();",
    "regex": "/(x+x+)+y/.test('x'.repeat(64));",
    "sort": "Array.from({ length: 1e6 }, (_, n) => n).sort(() => { for (;;); });",
    "BigInt": "let n = 3n; for (;;) n **= 3n;",
    "BigInt division": "const n = 7n ** 200000n; for (;;) n / 3n;",
    "proxy": "const p = new Proxy({}, { get: () => { for (;;); } }); p.x;",
    "getter": "JSON.stringify({ get x() { for (;;); } });",
    "toJSON": "Response.json({ toJSON() { for (;;); } });",
    "valueOf": "+{ valueOf() { for (;;); } };",
    "iterator": "new Headers({ *[Symbol.iterator]() { for (;;) yield ['a', 'b']; } });",
    "thenable": "await { then() { for (;;); } };",
    "header getter": "new Response('', { get headers() { for (;;); } });",
    "stream pull": "return new Response(new ReadableStream({ pull() { for (;;); } }));",
    "string repeat": "for (let s = 'x'; ; s = s.replace(/x/g, 'xx').slice(0, 1e6));",
    "indexOf": "const s = 'a'.repeat(5e6); for (;;) s.indexOf('b');",
    "timers": "for (;;) await scheduler.wait(0), (() => { for (let n = 0; n < 1e6; n++); })();",
    "waitUntil": "ctx.waitUntil((async () => { for (;;) await 0; })()); await scheduler.wait(9e3);",
}
MEMORY = {
    "buffers": "const held = []; for (;;) held.push(new Uint8Array(1 << 20).fill(1));",
    "strings": "let s = 'x'.repeat(1000); const held = []; for (;;) held.push(s += s);",
    "objects": "const held = []; for (;;) held.push({ n: [held.length, {}] });",
    "map": "const m = new Map(); for (let n = 0; ; n++) m.set(n, new Map());",
    "closures": "let f; for (;;) { const g = f; f = () => [g, new Array(1000).fill(1)]; }",
    "promises": "const held = []; for (;;) held.push(new Promise(() => {}));",
    "sparse array": "const a = []; for (let n = 0; ; n++) a[n * 1000] = new Array(100).fill(n);",
    "structuredClone": "let v = [1]; for (;;) v = structuredClone([v, v]);",
    "join": "for (;;) new Array(1e7).fill('0123456789').join('').length;",
    "JSON": "let s = '[1]'; for (;;) { JSON.parse(s); s = `[${s},${s}]`; }",
    "tee": """const [a, b] = new Response('x'.repeat(1e6)).body.tee(); const held = [a, b];
      for (;;) held.push(...held.pop().tee());""",
    "headers": "const h = new Headers(); for (let n = 0; ; n++) h.set('x' + n, 'y'.repeat(1000));",
}
# What is refused in the guest, or cut off by the host: answered with the word "survived".
FLOODS = {
    "log lines": "for (let n = 0; n < 300000; n++) console.log('');",
    "long log": "console.log('x'.repeat(3e7));",
    "log objects": "const o = { a: [[[{}]]] }; for (let n = 0; n < 20000; n++) console.error(o);",
    "ops": "await Promise.allSettled(Array.from({ length: 50000 }, () => env.NOTES.get('a')));",
    "fetches": """await Promise.allSettled(
      Array.from({ length: 5000 }, () => fetch('http://192.0.2.1/')));""",
    "timers": "for (let n = 0; n < 100000; n++) setTimeout(() => {}, 60000);",
    "aborts": "for (let n = 0; n < 20000; n++) AbortSignal.timeout(50000);",
    "rejections": "for (let n = 0; n < 20000; n++) Promise.reject(new Error('x'.repeat(100)));",
    "kv writes": """await Promise.allSettled(Array.from({ length: 300 }, (_, n) =>
      env.NOTES.put('k' + n, new Uint8Array(1 << 20))));""",
    "wide kv keys": "await env.NOTES.put('x'.repeat(1e6), '1').catch(() => {});",
    "streams": """const held = []; for (let n = 0; n < 3000; n++) held.push(
      new Response(new ReadableStream({ pull(c) { c.enqueue(new Uint8Array(1e5)); } })));""",
    "random": "for (let n = 0; n < 20000; n++) crypto.randomUUID();",
    "digests": """await Promise.allSettled(Array.from({ length: 2000 }, () =>
      crypto.subtle.digest('SHA-512', new Uint8Array(1e5))));""",
}
RECURSION = {
    "function": "const f = (n) => f(n + 1) + 1; f(0);",
    "getter": "const o = { get x() { return this.x; } }; o.x;",
    "proxy": "const p = new Proxy({}, { get: (t, k, r) => r[k] }); p.x;",
    "toString": "const o = { toString: () => `${o}` }; `${o}`;",
    "JSON.parse": "JSON.parse('['.repeat(1e6));",
    "JSON.stringify": "let a = []; for (let n = 0; n < 1e6; n++) a = [a]; JSON.stringify(a);",
    "structuredClone": "let a = []; for (let n = 0; n < 1e6; n++) a = [a]; structuredClone(a);",
    "console.log": "let a = []; for (let n = 0; n < 1e5; n++) a = [a]; console.log(a);",
    "regex": "new RegExp('('.repeat(1e5) + ')'.repeat(1e5));",
    "sort": "const f = () => [2, 1].sort(f).length; f();",
    "error cause": """let e; for (let n = 0; n < 1e5; n++) e = new Error('x', { cause: e });
      console.log(e);""",
}
LIMITS = {"1102", "1105"}


def worker(body: str) -> str:
    return f"export default {{ async fetch(request, env, ctx) {{ {body} }} }}"


@pytest.mark.parametrize("body", ENDLESS.values(), ids=ENDLESS.keys())
async def test_what_never_ends_is_ended(host: Host, body: str) -> None:
    host.deploy(worker(body))

    answers = await host.attack()

    for status, text in answers:
        assert status == 503, text
        assert any(f"error code: {code}" in text for code in LIMITS), text
    assert any("error code: 1102" in text for _, text in answers)


@pytest.mark.parametrize("body", MEMORY.values(), ids=MEMORY.keys())
async def test_what_fills_memory_ends_with_its_isolate_or_its_time(host: Host, body: str) -> None:
    host.deploy(worker(body))

    for status, text in await host.attack():
        assert status in (500, 503), text


@pytest.mark.parametrize("body", FLOODS.values(), ids=FLOODS.keys())
async def test_a_flood_is_bounded(host: Host, body: str) -> None:
    host.deploy(worker(f"{body} return new Response('survived');"))

    for status, text in await host.attack():
        assert (status, text) == (200, "survived") or status == 503, text


@pytest.mark.parametrize("body", RECURSION.values(), ids=RECURSION.keys())
async def test_deep_recursion_is_an_error_or_nothing(host: Host, body: str) -> None:
    host.deploy(
        worker(
            f"try {{ {body} }} catch (error) {{ return new Response(error.name); }}"
            "return new Response('nothing');"
        )
    )

    for status, text in await host.attack():
        assert status == 503 or text in {
            "RangeError", "InternalError", "SyntaxError", "nothing", "DataCloneError",
        }, text  # fmt: skip
