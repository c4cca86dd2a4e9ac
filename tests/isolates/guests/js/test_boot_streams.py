"""Streams."""

from pathlib import Path
from typing import Any

import pytest

from tests.isolates.guests.js.cases import Cases, Thrown, parametrized
from tests.support.javascript import run_cases

READ_ALL = "const all = async (s) => { const out = []; for await (const one of s) out.push(one); return out; };"
COUNT = "const count = (n, log = []) => { let i = 0; return new ReadableStream({ pull(c) { i < n ? c.enqueue(i++) : c.close(); }, cancel(r) { log.push(r); } }, { highWaterMark: 0 }); };"

CASES: Cases = {
    "read to the end": (
        COUNT + "const r = count(2).getReader(); return [await r.read(), await r.read(), await r.read(), await r.closed]",
        [{"value": 0, "done": False}, {"value": 1, "done": False}, {"done": True}, "(undefined)"],
    ),
    "async iteration": (COUNT + READ_ALL + "return all(count(3))", [0, 1, 2]),
    "leaving the loop cancels": (
        COUNT + "const log = []; const s = count(9, log); for await (const x of s) if (x === 1) break; return [log.length, s.locked]", [1, False],
    ),
    "preventCancel": (
        COUNT + READ_ALL + "const s = count(4); for await (const x of s.values({ preventCancel: true })) if (x === 1) break; return all(s)", [2, 3],
    ),
    "from an iterable": (READ_ALL + "return all(ReadableStream.from([1, Promise.resolve(2), 3]))", [1, 2, 3]),
    "from an async generator, cancelled": (
        "let closed = false; async function* g() { try { yield 1; yield 2; } finally { closed = true; } }"
        "const r = ReadableStream.from(g()).getReader(); const first = await r.read(); await r.cancel(); return [first.value, closed]",
        [1, True],
    ),
    "start, pull and backpressure": (
        "const log = []; const s = new ReadableStream({ start(c) { log.push('s', c.desiredSize); }, pull(c) { log.push('p', c.desiredSize); c.enqueue(1); } }, { highWaterMark: 2 });"
        "await 0; await 0; await 0; await new Promise((d) => setTimeout(d)); return log",
        ["s", 2, "p", 2, "p", 1],
    ),
    "a size function": (
        "let c; new ReadableStream({ start(x) { c = x; } }, new ByteLengthQueuingStrategy({ highWaterMark: 10 })); c.enqueue(new Uint8Array(4)); return c.desiredSize",
        6,
    ),
    "an error reaches reader and closed": (
        "const s = new ReadableStream({ pull() { throw new RangeError('x'); } }); const r = s.getReader();"
        "const a = await r.read().catch((e) => e.name); const b = await r.closed.catch((e) => e.message); return [a, b]",
        ["RangeError", "x"],
    ),
    "start may throw": ("new ReadableStream({ start() { throw new RangeError('x'); } })", Thrown("RangeError", "x")),
    "a stream has one reader": (
        "const s = new ReadableStream(); s.getReader(); s.getReader();", Thrown("TypeError", "This ReadableStream is currently locked to a reader."),
    ),
    "a released reader rejects its reads": (
        "const s = new ReadableStream(); const r = s.getReader(); const p = r.read(); r.releaseLock(); const a = await p.catch((e) => e.name);"
        "const b = await r.read().catch((e) => e.name); return [a, b, s.locked]",
        ["TypeError", "TypeError", False],
    ),
    "enqueue after close": (
        "let c; new ReadableStream({ start(x) { c = x; } }); c.close(); c.enqueue(1);", Thrown("TypeError"),
    ),
    "tee": (COUNT + READ_ALL + "const [a, b] = count(3).tee(); return [await all(a), await all(b)]", [[0, 1, 2], [0, 1, 2]]),
    "tee cancels its source when both have": (
        COUNT + "const log = []; const [a, b] = count(3, log).tee(); const p = a.cancel('a'); await b.cancel('b'); await p; return log", [["a", "b"]],
    ),
    "tee errors both": (
        "const [a, b] = new ReadableStream({ pull() { throw new RangeError(); } }).tee();"
        "return Promise.all([a, b].map((s) => s.getReader().read().catch((e) => e.name)))",
        ["RangeError", "RangeError"],
    ),
    "tee of bytes gives each its own": (
        "const [a, b] = new Response('ab').body.tee(); const x = (await a.getReader().read()).value; x[0] = 0; return [x, (await b.getReader().read()).value]",
        [{"bytes": [0, 98]}, {"bytes": [97, 98]}],
    ),
    "a byte stream fills the reader's buffer": (
        "const s = new ReadableStream({ type: 'bytes', pull(c) { const v = c.byobRequest.view; v[0] = 1; v[1] = 2; c.byobRequest.respond(2); } });"
        "const r = s.getReader({ mode: 'byob' }); const { value, done } = await r.read(new Uint8Array(8)); return [value, done, value.buffer.byteLength]",
        [{"bytes": [1, 2]}, False, 8],
    ),
    "enqueued bytes fill the reader's buffer": (
        "const r = new Response('abcdef').body.getReader({ mode: 'byob' });"
        "const a = await r.read(new Uint8Array(4)); const b = await r.read(new Uint8Array(4)); const c = await r.read(new Uint8Array(4));"
        "return [text(a.value), text(b.value), c.done, c.value.byteLength]",
        ["abcd", "ef", True, 0],
    ),
    "min waits for enough": (
        "let c; const s = new ReadableStream({ type: 'bytes', start(x) { c = x; } }); const p = s.getReader({ mode: 'byob' }).read(new Uint8Array(8), { min: 3 });"
        "c.enqueue(bytes('ab')); c.enqueue(bytes('cd')); return text((await p).value)",
        "abcd",
    ),
    "wider views": (
        "let c; const s = new ReadableStream({ type: 'bytes', start(x) { c = x; } }); const p = s.getReader({ mode: 'byob' }).read(new Uint16Array(4));"
        "c.enqueue(new Uint8Array([1, 0, 2])); c.enqueue(new Uint8Array([0])); return [...(await p).value]",
        [1],
    ),
    "autoAllocateChunkSize": (
        "const s = new ReadableStream({ type: 'bytes', autoAllocateChunkSize: 4, pull(c) { c.byobRequest.view[0] = 9; c.byobRequest.respond(1); } });"
        "return (await s.getReader().read()).value",
        {"bytes": [9]},
    ),
    "enqueue takes the buffer": (
        "let c; new ReadableStream({ type: 'bytes', start(x) { c = x; } }); const b = bytes('abc'); c.enqueue(b); return b.byteLength", 0,
    ),
    "a byte stream takes views only": (
        "let c; new ReadableStream({ type: 'bytes', start(x) { c = x; } }); c.enqueue('x');", Thrown("TypeError"),
    ),
    "closing with a BYOB read open": (
        "let c; const s = new ReadableStream({ type: 'bytes', start(x) { c = x; } }); const p = s.getReader({ mode: 'byob' }).read(new Uint8Array(3));"
        "c.close(); c.byobRequest.respond(0); const { value, done } = await p; return [value.byteLength, done]",
        [0, True],
    ),
    "byob needs a byte stream": ("new ReadableStream().getReader({ mode: 'byob' })", Thrown("TypeError")),
    "writes are in order, one at a time": (
        "const log = []; const s = new WritableStream({ async write(x) { log.push('+' + x); await 0; log.push('-' + x); }, close() { log.push('c'); } });"
        "const w = s.getWriter(); w.write(1); w.write(2); await w.close(); return log",
        ["+1", "-1", "+2", "-2", "c"],
    ),
    "ready and desiredSize": (
        "let go; const s = new WritableStream({ write() { return new Promise((d) => { go = d; }); } }, { highWaterMark: 1 }); const w = s.getWriter();"
        "await w.ready; const before = w.desiredSize; w.write(1); const during = w.desiredSize; await 0; await 0; go(); await w.ready; return [before, during, w.desiredSize]",
        [1, 0, 1],
    ),
    "a failing write errors the stream": (
        "const w = new WritableStream({ write() { throw new RangeError('x'); } }).getWriter(); const a = await w.write(1).catch((e) => e.name);"
        "const b = await w.write(2).catch((e) => e.message); const c = await w.closed.catch((e) => e.message); return [a, b, c]",
        ["RangeError", "x", "x"],
    ),
    "abort": (
        "const log = []; let signal; const s = new WritableStream({ start(c) { signal = c.signal; }, abort(r) { log.push(r); } }); const w = s.getWriter(); await 0;"
        "const closed = w.closed.catch((e) => e); await w.abort('why'); return [log, signal.aborted, signal.reason, await closed]",
        [["why"], True, "why", "why"],
    ),
    "close twice": (
        "const w = new WritableStream().getWriter(); await w.close(); return w.close().catch((e) => e.name)", "TypeError",
    ),
    "controller.error": (
        "let c; const w = new WritableStream({ start(x) { c = x; } }).getWriter(); c.error(new RangeError('x')); return w.write(1).catch((e) => e.message)", "x",
    ),
    "pipeTo moves and closes": (
        COUNT + "const log = []; await count(3).pipeTo(new WritableStream({ write(x) { log.push(x); }, close() { log.push('c'); } })); return log", [0, 1, 2, "c"],
    ),
    "pipeTo passes an error on": (
        "const log = []; const s = new ReadableStream({ pull() { throw new RangeError('x'); } });"
        "const e = await s.pipeTo(new WritableStream({ abort(r) { log.push(r.message); } })).catch((e) => e.name); return [e, log]",
        ["RangeError", ["x"]],
    ),
    "pipeTo cancels its source when the sink fails": (
        COUNT + "const log = []; const e = await count(9, log).pipeTo(new WritableStream({ write() { throw new RangeError('x'); } })).catch((e) => e.name);"
        "return [e, log.map((r) => r.message)]",
        ["RangeError", ["x"]],
    ),
    "pipeTo stops on a signal": (
        "const c = new AbortController(); const log = []; const s = new ReadableStream({ cancel(r) { log.push('c' + r); } });"
        "const p = s.pipeTo(new WritableStream({ abort(r) { log.push('a' + r); } }), { signal: c.signal }); c.abort(1); const e = await p.catch((e) => e);"
        "return [e, log.sort()]",
        [1, ["a1", "c1"]],
    ),
    "prevent options": (
        COUNT + "const log = []; const t = new WritableStream({ write(x) { log.push(x); }, close() { log.push('c'); } });"
        "await count(1).pipeTo(t, { preventClose: true }); await count(1).pipeTo(t); return log",
        [0, 0, "c"],
    ),
    "pipeThrough a transform with flush": (
        COUNT + READ_ALL + "return all(count(3).pipeThrough(new TransformStream({ start(c) { c.enqueue('s'); }, transform(x, c) { if (x !== 1) c.enqueue(x * 10); }, flush(c) { c.enqueue('f'); } })))",
        ["s", 0, 20, "f"],
    ),
    "a transform that throws errors both sides": (
        "const t = new TransformStream({ transform() { throw new RangeError('x'); } }); const w = t.writable.getWriter(); const r = t.readable.getReader();"
        "const p = w.write(1).catch((e) => e.name); const q = r.read().catch((e) => e.message); return [await p, await q]",
        ["RangeError", "x"],
    ),
    "terminate": (
        READ_ALL + "const t = new TransformStream({ transform(x, c) { c.enqueue(x); c.terminate(); } }); const w = t.writable.getWriter();"
        "w.write(1).catch(() => {}); w.closed.catch(() => {}); const out = await all(t.readable); return [out, await w.write(2).catch((e) => e.name)]",
        [[1], "TypeError"],
    ),
    "cancelling the readable side tells the transformer": (
        "const log = []; const t = new TransformStream({ cancel(r) { log.push(r); } }); await t.readable.cancel('why');"
        "return [log, await t.writable.getWriter().write(1).catch((e) => e)]",
        [["why"], "why"],
    ),
    "a transform holds back its writer": (
        "const t = new TransformStream(); const w = t.writable.getWriter(); let written = false; const p = w.write(1).then(() => { written = true; });"
        "await 0; await 0; await 0; const before = written; await t.readable.getReader().read(); await p; return [before, written]",
        [False, True],
    ),
    "an identity transform takes bytes only": (
        "const { writable } = new IdentityTransformStream(); await writable.getWriter().write('text')", Thrown("TypeError"),
    ),
    "an identity transform reads by BYOB": (
        "const { readable, writable } = new IdentityTransformStream(); const w = writable.getWriter(); const p = w.write(bytes('hello'));"
        "const r = readable.getReader({ mode: 'byob' }); const a = await r.read(new Uint8Array(3)); const b = await r.read(new Uint8Array(3)); await p; return [text(a.value), text(b.value)]",
        ["hel", "lo"],
    ),
    "too many bytes for a fixed length": (
        "const { readable, writable } = new FixedLengthStream(2); readable.getReader().read().catch(() => {}); await writable.getWriter().write(bytes('abc'))",
        Thrown("TypeError", "Attempt to write too many bytes through a FixedLengthStream."),
    ),
    "too few bytes for a fixed length": (
        "const { readable, writable } = new FixedLengthStream(2); new Response(readable).text().catch(() => {}); await writable.getWriter().close()",
        Thrown("TypeError", "FixedLengthStream did not see all expected bytes before close()."),
    ),
    "strategies": (
        "const c = new CountQueuingStrategy({ highWaterMark: 3 }); const b = new ByteLengthQueuingStrategy({ highWaterMark: 4 });"
        "return [c.highWaterMark, c.size(), b.highWaterMark, b.size(new Uint8Array(7)), c.size === new CountQueuingStrategy({ highWaterMark: 1 }).size]",
        [3, 1, 4, 7, True],
    ),
    "bad high water mark": ("new ReadableStream({}, { highWaterMark: -1 })", Thrown("RangeError")),
    "many chunks do not recurse": (
        "let n = 0; const s = new ReadableStream({ start(c) { for (let i = 0; i < 20000; i++) c.enqueue(new Uint8Array(1)); c.close(); } });"
        "return (await new Response(s).bytes()).length",
        20000,
    ),
    "classes look native": (
        "[String(new ReadableStream()), String(new WritableStream()), String(new TransformStream()), Object.keys(new ReadableStream()),"
        " Object.keys(WritableStream.prototype)]",
        ["[object ReadableStream]", "[object WritableStream]", "[object TransformStream]", [], ["locked", "abort", "close", "getWriter"]],
    ),
    "illegal invocations": (
        "[() => ReadableStream.prototype.getReader.call({}), () => Object.getOwnPropertyDescriptor(WritableStream.prototype, 'locked').get.call(1),"
        " () => new ReadableStreamDefaultController(), () => new ReadableStreamBYOBRequest()].map((f) => { try { f(); } catch (e) { return e.name; } })",
        ["TypeError"] * 4,
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def outcomes(cache_dir: Path) -> dict[str, Any]:
    return run_cases(cache_dir, {name: body for name, (body, _) in CASES.items()})


@parametrized(CASES)
def test_streams(outcomes: dict[str, Any], name: str, expected: object) -> None:
    assert outcomes[name] == expected
