"""console: what values look like, and what is logged that nobody caught."""

import json
from pathlib import Path

import pytest

from tests.support.javascript import JavaScript

LINES = Path(__file__).with_name("lines.js").read_text()


async def logged(js: JavaScript, statements: list[str]) -> list[tuple[str, str]]:
    body = ";\n".join(statements)
    source = f"export default {{ fetch() {{ {body}; return new Response(''); }} }}"
    async with js.worker(source) as worker:
        await worker.fetch()
        return worker.logged


async def test_values_look_as_in_node(js: JavaScript) -> None:
    source = """import lines from "./lines.js";
    export default { fetch() {
      for (const [values] of lines) console.log(...values());
      return Response.json(lines.map(([, text]) => text));
    } };"""

    async with js.worker(source, modules={"lines.js": LINES}) as worker:
        expected = json.loads((await worker.fetch()).body)
        found = [text for _, text in worker.logged]

    assert found == expected


async def test_errors_show_stack_cause_and_properties(js: JavaScript) -> None:
    [(_, text), (_, nested)] = await logged(
        js,
        [
            "const bad = new RangeError('bad', { cause: new Error('why') })",
            "console.log(Object.assign(bad, { code: 'E1' }))",
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
            "console.group('g')", "console.log('in\\nside')", "console.groupEnd()",
            "console.log('out')", "console.count()", "console.count('a')", "console.count()",
            "console.countReset()", "console.count()", "console.assert(true, 'no')",
            "console.assert(false, 'yes %s', 1)", "console.assert(false)",
            "console.dir({ a: { b: { c: { d: 1 } } } }, { depth: 0 })",
            "console.time('t')", "console.timeEnd('t')", "console.timeEnd('t')",
        ],
    )  # fmt: skip

    assert [text for _, text in found] == [
        "g", "  in\n  side", "out", "default: 1", "a: 1", "default: 2", "default: 1",
        "Assertion failed: yes 1", "Assertion failed", "{ a: [Object] }", "t: 0ms",
        "Timer 't' does not exist",
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
    source = """addEventListener("unhandledrejection", (event) => {
      event.preventDefault();
      console.log("mine", event.reason);
    });
    addEventListener("error", (event) => {
      event.preventDefault();
      console.log("error", event.message);
    });
    export default { async fetch() {
      Promise.reject(7);
      reportError(new Error("x"));
      await scheduler.wait(1);
      return new Response("");
    } };"""

    async with js.worker(source) as worker:
        await worker.fetch()
        assert sorted(worker.logged) == [("log", "error x"), ("log", "mine 7")]
