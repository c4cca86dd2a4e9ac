"""structuredClone."""

import pytest

from tests.support.js_guest import JsGuest


@pytest.mark.parametrize(
    "body",
    [
        # primitives
        "return [undefined, null, true, 1.5, -0, NaN, 'é', 10n ** 30n].every((v) =>"
        " Object.is(c(v), v))",
        # boxed primitives
        "return [new Boolean(false), new Number(7), new String('s'), Object(5n)].every((v) =>"
        " c(v) !== v && c(v).constructor === v.constructor && Object.is(c(v).valueOf(),"
        " v.valueOf()))",
        # dates
        "return c(new Date(5)).getTime() === 5 && c(new Date(1.7e12)).getTime() === 1.7e12"
        " && isNaN(c(new Date(NaN))) && c(new Date(5)) instanceof Date",
        # regular expressions, without lastIndex
        "const r = /a(?<n>b)/giu; r.lastIndex = 3; const d = c(r);"
        " return d.source === r.source && d.flags === r.flags && d.lastIndex === 0"
        " && d.exec('ab').groups.n === 'b'",
        # arrays: holes, extra properties, length
        "const a = [1, , 3]; a.x = 'y'; a.length = 5; const d = c(a);"
        " return d.length === 5 && !(1 in d) && d[2] === 3 && d.x === 'y' && Array.isArray(d)",
        "const d = c([, ,]); return d.length === 2 && Object.keys(d).length === 0",
        "const d = c([[1, [2]], {}]); d.push(1); return d[0][1][0] === 2 && d.length === 3",
        # objects: own enumerable strings only, getters evaluated, prototype dropped
        "class P { constructor() { this.own = 1 } get g() { return 2 } }"
        " const p = new P(); Object.defineProperty(p, 'hidden', {value: 1}); p[Symbol()] = 1;"
        " Object.defineProperty(p, 'got', {get: () => [3], enumerable: true}); const d = c(p);"
        ' return JSON.stringify(d) === \'{"own":1,"got":[3]}\''
        " && Object.getPrototypeOf(d) === Object.prototype"
        " && 'value' in Object.getOwnPropertyDescriptor(d, 'got')",
        "const d = c(Object.create(null, {x: {value: 1, enumerable: true}})); return d.x === 1",
        "const d = c(JSON.parse('{\"__proto__\": 5}')); return Object.keys(d)[0] === '__proto__'",
        "return c((function () { return arguments })(1, 2))[1] === 2",
        # maps and sets, with keys that are objects
        "const k = {}, m = new Map([[k, [k]], ['s', new Set([k])]]), d = c(m); const [dk] ="
        " d.keys();"
        " return d instanceof Map && dk !== k && d.get(dk)[0] === dk && d.get('s').has(dk) &&"
        " d.size === 2",
        # cycles and shared references
        "const o = {}; o.self = o; o.list = [o, o]; const s = new Set(); s.add(s); o.s = s; const"
        " d = c(o);"
        " return d.self === d && d.list[0] === d && d.list[1] === d && d.s.has(d.s) && d !== o",
        # buffers and views: one copy of a buffer under all its views
        "const b = new Uint8Array([1, 2, 3, 4, 5, 6, 7, 8]).buffer, d = c({b, u: new"
        " Uint16Array(b, 2, 2),"
        " v: new DataView(b, 4, 2)}); new Uint8Array(b).fill(0);"
        " return d.u.buffer === d.b && d.v.buffer === d.b && d.u[0] === 0x403 && d.u.length === 2"
        " && d.v.byteLength === 2 && d.v.getUint8(1) === 6 && d.u instanceof Uint16Array",
        "return [Int8Array, Uint8ClampedArray, Float16Array, Float32Array, Float64Array,"
        " BigInt64Array,"
        " BigUint64Array].every((T) => c(new T(2)) instanceof T && c(new T(2)).length === 2)",
        "const b = new ArrayBuffer(4, {maxByteLength: 16}), d = c({b, u: new Uint8Array(b)});"
        " d.b.resize(9); return d.b.maxByteLength === 16 && d.u.length === 9 && b.byteLength === 4",
        "return c(new Uint8Array()).length === 0 && c(new ArrayBuffer(0)).byteLength === 0",
        # errors
        "const e = new RangeError('m', {cause: {a: 1}}); e.extra = 1; const d = c(e);"
        " return d instanceof RangeError && d.message === 'm' && d.cause.a === 1 && d.stack ==="
        " e.stack"
        " && !('extra' in d) && !d.propertyIsEnumerable('message') && !('name' in Object.keys(d))",
        "class Mine extends Error { name = 'Mine' } const d = c(new Mine('x'));"
        " return Object.getPrototypeOf(d) === Error.prototype && d.message === 'x'",
        "const e = new Error('a'); e.cause = e; const d = c(e); return d.cause === d",
        "const e = new Error('a'); e.stack = 'mine'; return c(e).stack === 'mine'",
        "return !Object.hasOwn(c(new Error()), 'message') && !Object.hasOwn(c(new Error()),"
        " 'cause')",
        "const d = c(new DOMException('m', 'AbortError'));"
        " return d instanceof DOMException && d.name === 'AbortError' && d.message === 'm'",
    ],
)
def test_clones(guest: JsGuest, body: str) -> None:
    assert guest.evaluate(f"const c = (v) => H.clone(v); {body}") is True


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("() => 1", "() => 1"),
        ("Symbol('s')", "Symbol(s)"),
        ("Object(Symbol('s'))", "#<Symbol>"),
        ("Promise.resolve()", "#<Promise>"),
        ("new WeakMap()", "#<WeakMap>"),
        ("new WeakRef({})", "#<WeakRef>"),
        ("(function* () {})()", "#<Object>"),
        ("new Proxy({}, {})", "#<Object>"),
        ("[].values()", "#<Object>"),
        ("class A { static x = 'é' }", "class A { static x = 'é' }"),
        ("new Thing()", "#<Thing>"),
        ("new (class Sub extends Thing {})()", "#<Sub>"),
    ],
)
def test_what_cannot_be_cloned_is_refused_by_name(guest: JsGuest, value: str, words: str) -> None:
    setup = "class Thing {} H.markPlatform(Thing.prototype);"

    for wrapped in (value, f"[{{a: {value}}}]", f"new Map([[1, {value}]])"):
        name, message = guest.throws(f"{setup} H.clone({wrapped})")
        assert name == "DataCloneError"
        if "Object" not in words:
            assert message == f"{words} could not be cloned."


def test_a_getters_throw_comes_through(guest: JsGuest) -> None:
    assert guest.throws("H.clone([{get a() { throw new RangeError('mine') }}])") == (
        "RangeError",
        "mine",
    )


@pytest.mark.parametrize(
    "body",
    [
        # a property removed, a map changed, an array shrunk, while they are copied
        "const o = {get a() { delete o.b; return 1 }, b: 2}; return !('b' in H.clone(o))",
        "const m = new Map([[{get x() { m.clear(); return 1 }}, 1], [2, 2]]); return"
        " H.clone(m).size === 2",
        "const a = [{get x() { a.length = 0; return 1 }}, 2, 3]; H.clone(a); return true",
        "const a = [{get x() { a.push(9); return 1 }}, 2]; return H.clone(a).length >= 2",
        "const a = [{get x() { a.foo = 1; return 1 }}, 2]; H.clone(a); return true",
        "const b = new ArrayBuffer(8); const o = {get a() { b.transfer(); return 1 }};"
        " try { H.clone([o, b]) } catch (e) { return e.name === 'DataCloneError' }",
        "const b = new ArrayBuffer(8, {maxByteLength: 8}), u = new Uint8Array(b, 4, 4);"
        " try { H.clone([{get a() { b.resize(2); return 1 }}, u]) } catch (e) { return e.name ==="
        " 'DataCloneError' }",
        "const b = new ArrayBuffer(8, {maxByteLength: 8}), v = new DataView(b, 4, 4);"
        " try { H.clone([b, {get a() { b.resize(2); return 1 }}, v]); return true } catch (e) {"
        " return true }",
    ],
)
def test_getters_that_change_what_is_cloned_do_no_harm(guest: JsGuest, body: str) -> None:
    assert guest.evaluate(body) is True


def test_a_transferred_buffer_is_detached_and_its_content_moves(guest: JsGuest) -> None:
    body = (
        "const b = new Uint8Array([1, 2]).buffer, u = new Uint8Array(b), other = new"
        " ArrayBuffer(3);"
        "const d = H.clone({u}, [b, other]);"
        "return [b.detached, other.detached, u.length, [...d.u], d.u.buffer.detached]"
    )

    assert guest.evaluate(body) == [True, True, 0, [1, 2], False]


@pytest.mark.parametrize(
    "transfer",
    ["[b, b]", "[{}]", "[1]", "[detached]", "[new Uint8Array(1)]", "[() => 1]"],
)
def test_a_transfer_list_must_be_distinct_whole_buffers(guest: JsGuest, transfer: str) -> None:
    setup = (
        "const b = globalThis.kept = new ArrayBuffer(1), detached = new ArrayBuffer(1);"
        "detached.transfer();"
    )

    assert guest.throws(f"{setup} H.clone(1, {transfer})")[0] == "DataCloneError"
    assert guest.evaluate("return kept.detached") is False


def test_a_clone_that_fails_transfers_nothing(guest: JsGuest) -> None:
    assert guest.throws("globalThis.b = new ArrayBuffer(1); H.clone([b, () => 1], [b])")[0] == (
        "DataCloneError"
    )
    assert guest.evaluate("return b.detached") is False


def test_nothing_leaks_from_clones(guest: JsGuest) -> None:
    loop = (
        "const e = new Error('x', {cause: new Map([[{}, new Set([1])]])});"
        "const v = {a: [1, 'é', {}], e, d: new Date(), r: /x/g, u: new Uint8Array(9), n:"
        " Object(1n),"
        "  x: new DOMException('a', 'b')}; v.self = v;"
        "for (let i = 0; i < 100; i++) { H.clone(v); try { H.clone([v, () => 1]) } catch {}"
        "  H.clone(1, [new ArrayBuffer(5)]); try { H.clone(e, [e]) } catch {} }"
    )
    guest.evaluate(loop)
    guest.collect()
    before = guest.heap_bytes()

    for _ in range(5):
        guest.evaluate(loop)
    guest.collect()

    assert guest.heap_bytes() - before < 3_000
