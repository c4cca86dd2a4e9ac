"""console: what values look like, and what is logged that nobody caught."""

import pytest

from tests.support.javascript import JavaScript

# JavaScript arguments of console.log -> the text; the expected values are Node's.
LINES = {
    "'a', 1, null, undefined, true, 5n, Symbol('x'), -0": "a 1 null undefined true 5n Symbol(x) -0",
    "{ a: 1, 'b-c': 'x', [Symbol('s')]: [1, 'two'] }": "{ a: 1, 'b-c': 'x', [Symbol(s)]: [ 1, 'two' ] }",
    "[], {}, [[]], [{}]": "[] {} [ [] ] [ {} ]",
    "{ a: { b: { c: { d: 1 } } } }": "{ a: { b: { c: [Object] } } }",
    "[[[[1]]]]": "[ [ [ [Array] ] ] ]",
    "new Map([['a', { b: 1 }]]), new Set([1, 'x'])": "Map(1) { 'a' => { b: 1 } } Set(2) { 1, 'x' }",
    "[1, , 3, , ,]": "[ 1, <1 empty item>, 3, <2 empty items> ]",
    "new Uint8Array([1, 2]), new ArrayBuffer(2)": (
        "Uint8Array(2) [ 1, 2 ] ArrayBuffer { [Uint8Contents]: <00 00>, byteLength: 2 }"
    ),
    "function f() {}, () => {}, class A {}, class B extends Map {}, async () => {}": (
        "[Function: f] [Function (anonymous)] [class A] [class B extends Map] [AsyncFunction (anonymous)]"
    ),
    "new Date(0), /a/g, new Date(NaN)": "1970-01-01T00:00:00.000Z /a/g Invalid Date",
    "new (class Foo { x = 1 })(), Object.create(null), Object.create({})": "Foo { x: 1 } [Object: null prototype] {} {}",
    "new Number(1), new String('a'), new Boolean(false)": "[Number: 1] [String: 'a'] [Boolean: false]",
    "{ get a() { return 1 }, set b(x) {}, get c() { return 1 }, set c(x) {} }": (
        "{ a: [Getter], b: [Setter], c: [Getter/Setter] }"
    ),
    "(() => { const o = { n: 1 }; o.self = o; return o })()": "<ref *1> { n: 1, self: [Circular *1] }",
    "[\"it's\", 'a\\nb', 'say \"it\\'s\"']": "[ \"it's\", 'a\\nb', `say \"it's\"` ]",
    "{ f() {}, g: class {} }": "{ f: [Function: f], g: [class g] }",
    "Object.assign(() => {}, { a: 1 })": "[Function (anonymous)] { a: 1 }",
    "new WeakMap(), Symbol.iterator": "WeakMap { <items unknown> } Symbol(Symbol.iterator)",
    "Array.from({ length: 8 }, (_, i) => i * 100)": "[\n    0, 100, 200, 300,\n  400, 500, 600, 700\n]",
    "{ a: 'x'.repeat(60), b: 'y'.repeat(30) }": "{\n  a: '" + "x" * 60 + "',\n  b: '" + "y" * 30 + "'\n}",
    "{ a: { b: { c: {} } } }": "{ a: { b: { c: {} } } }",
    "Array(101).fill(7).length, 'x'.repeat(3)": "101 xxx",
    "'%s is %d years and %i, %f, %j %O%% %c.', 'Bob', 42.5, 42.9, '1.5', { a: 1 }, [1], 'css', 'more'": (
        "Bob is 42.5 years and 42, 1.5, {\"a\":1} [ 1 ]% . more"
    ),
    "'100%', 5": "100% 5",
    "'%s', { a: { b: 1 } }, 'x'": "{ a: [Object] } x",
    "'a', 'b'": "a b",
    "": "",
}  # fmt: skip


async def logged(js: JavaScript, statements: list[str]) -> list[tuple[str, str]]:
    source = "export default { fetch() { %s; return new Response(''); } }" % ";\n".join(statements)
    async with js.worker(source) as worker:
        await worker.fetch()
        return worker.logged


async def test_values_look_as_in_node(js: JavaScript) -> None:
    found = await logged(js, [f"console.log({arguments})" for arguments in LINES])

    assert dict(zip(LINES, (text for _, text in found), strict=True)) == LINES


async def test_errors_show_stack_cause_and_properties(js: JavaScript) -> None:
    [(_, text), (_, nested)] = await logged(
        js,
        [
            "console.log(Object.assign(new RangeError('bad', { cause: new Error('why') }), { code: 'E1' }))",
            "console.log({ error: Object.assign(new Error('x'), { stack: '' }) })",
        ],
    )

    lines = text.splitlines()
    assert lines[0] == "RangeError: bad"
    assert lines[1].startswith("    at fetch (worker.js:1:")
    assert "  code: 'E1'," in lines
    assert any(line.startswith("  [cause]: Error: why") for line in lines)
    assert "belem:" not in text
    assert nested == "{ error: [Error: x] }"


async def test_platform_objects_show_what_they_are(js: JavaScript) -> None:
    [(_, headers), (_, url), (_, response)] = await logged(
        js,
        [
            "console.log(new Headers({ b: '2', a: '1' }))",
            "console.log(new URLSearchParams('a=1'))",
            "console.log(new Response('x', { status: 404 }))",
        ],
    )

    assert headers == "Headers { 'a' => '1', 'b' => '2' }"
    assert url == "URLSearchParams { 'a' => '1', size: 1 }"
    assert response.startswith("Response {\n")
    assert "  status: 404,\n" in response


async def test_levels(js: JavaScript) -> None:
    statements = [f"console.{name}('x')" for name in ("debug", "info", "log", "warn", "error")]

    found = await logged(js, [*statements, "console.trace('here')"])

    assert found[:5] == [(name, "x") for name in ("debug", "info", "log", "warn", "error")]
    assert found[5][1].startswith("Trace: here\n    at fetch (worker.js")


async def test_groups_counts_and_assertions(js: JavaScript) -> None:
    found = await logged(
        js,
        [
            "console.group('g')", "console.log('in\\nside')", "console.groupEnd()", "console.log('out')",
            "console.count()", "console.count('a')", "console.count()", "console.countReset()", "console.count()",
            "console.assert(true, 'no')", "console.assert(false, 'yes %s', 1)", "console.assert(false)",
            "console.dir({ a: { b: { c: { d: 1 } } } }, { depth: 0 })",
            "console.time('t')", "console.timeEnd('t')", "console.timeEnd('t')",
        ],
    )  # fmt: skip

    assert [text for _, text in found] == [
        "g", "  in\n  side", "out", "default: 1", "a: 1", "default: 2", "default: 1",
        "Assertion failed: yes 1", "Assertion failed", "{ a: [Object] }", "t: 0ms", "Timer 't' does not exist",
    ]  # fmt: skip


async def test_tables(js: JavaScript) -> None:
    [(_, text)] = await logged(js, ["console.table([{ a: 1, b: 'x' }, { a: 2 }])"])

    assert text.splitlines() == [
        "┌─────────┬───┬─────┐",
        "│ (index) │ a │ b   │",
        "├─────────┼───┼─────┤",
        "│ 0       │ 1 │ 'x' │",
        "│ 1       │ 2 │     │",
        "└─────────┴───┴─────┘",
    ]


@pytest.mark.parametrize(
    "value",
    [
        "new Proxy({}, { ownKeys() { throw new Error('no'); } })",
        "{ get [Symbol.toStringTag]() { throw new Error('no'); } }",
        "Object.defineProperty(new Error('x'), 'message', { get() { throw new Error('no'); } })",
        "{ toString() { throw new Error('no'); }, [Symbol.toPrimitive]() { throw 1; } }",
    ],
)
async def test_hostile_values_cannot_break_the_console(js: JavaScript, value: str) -> None:
    found = await logged(js, [f"console.log('%s', {value})", "console.log('still here')"])

    assert found[-1] == ("log", "still here")


async def test_long_texts_are_cut(js: JavaScript) -> None:
    found = await logged(
        js, ["console.log('x'.repeat(500000))", "console.log(Array(5000).fill('y'.repeat(50)))"]
    )

    assert found[0][1].endswith(f"... {500_000 - 128 * 1024} more characters")
    assert "... 4900 more items" in found[1][1]


async def test_what_nobody_caught_is_logged(js: JavaScript) -> None:
    source = """export default { async fetch(request, env, ctx) {
      setTimeout(() => { throw new RangeError("in a timer"); });
      queueMicrotask(() => { throw new Error("in a microtask"); });
      Promise.reject(new TypeError("in a promise"));
      reportError("reported");
      Promise.reject(new Error("caught late")).catch(() => {});
      await scheduler.wait(5);
      return new Response("fine");
    } };"""

    async with js.worker(source) as worker:
        answer = await worker.fetch()
        firsts = sorted(text.splitlines()[0] for level, text in worker.logged if level == "error")

    assert answer.text == "fine"
    assert firsts == [
        "Uncaught 'reported'", "Uncaught (in promise) TypeError: in a promise",
        "Uncaught Error: in a microtask", "Uncaught RangeError: in a timer",
    ]  # fmt: skip


async def test_listeners_may_take_over_uncaught_errors(js: JavaScript) -> None:
    source = """addEventListener("unhandledrejection", (event) => { event.preventDefault(); console.log("mine", event.reason); });
    addEventListener("error", (event) => { event.preventDefault(); console.log("error", event.message); });
    export default { async fetch() {
      Promise.reject(7); reportError(new Error("x")); await scheduler.wait(1); return new Response(""); } };"""

    async with js.worker(source) as worker:
        await worker.fetch()
        assert sorted(worker.logged) == [("log", "error x"), ("log", "mine 7")]
