"""The engine's life: made once, kept small, safe at the ends of its memory and stack."""

import re

import pytest
from wasmtime import Trap

from tests.isolates.guests.js.native.conftest import Compiled
from tests.support.js_guest import JsGuest, fault


def test_there_is_one_interpreter(guest: JsGuest) -> None:
    with pytest.raises(Trap):
        guest.init_again()


@pytest.mark.parametrize(
    "code", ["eval('1')", "(0, eval)('1')", "new Function('1')", "Function('1')"]
)
def test_code_from_strings_is_refused_as_on_workers(guest: JsGuest, code: str) -> None:
    assert guest.throws(code) == (
        "EvalError",
        "Code generation from strings disallowed for this context",
    )


@pytest.mark.parametrize("kind", ["async () => {}", "function* () {}", "async function* () {}"])
def test_the_hidden_function_constructors_are_refused_too(guest: JsGuest, kind: str) -> None:
    assert guest.throws(f"new (({kind}).constructor)('1')")[0] == "EvalError"


def test_eval_of_what_is_no_string_returns_it(guest: JsGuest) -> None:
    assert guest.evaluate("return eval(5)") == 5


@pytest.mark.parametrize("name", ["SharedArrayBuffer", "Atomics", "WebAssembly"])
def test_what_could_serve_as_a_clock_is_not_there(guest: JsGuest, name: str) -> None:
    assert guest.evaluate(f"return typeof {name}") == "undefined"


def test_local_time_is_utc(guest: JsGuest) -> None:
    body = "return [new Date(2024, 6, 1).toISOString(), new Date(0).getTimezoneOffset()]"

    assert guest.evaluate(body) == ["2024-07-01T00:00:00.000Z", 0]


def test_collecting_wipes_the_stack_for_an_image(guest: JsGuest) -> None:
    guest.evaluate("(function f(n) { n && f(n - 1) })(300)")
    assert any(guest.memory()[STACK_BYTES - 65536 : STACK_BYTES - 4096])

    guest.collect()

    assert not any(guest.memory()[16 : STACK_BYTES - 4096])
    assert guest.evaluate("return 1 + 1") == 2


def test_collecting_wipes_the_boxes(guest: JsGuest) -> None:
    guest.step_raw(b"only ever in the inbox", 0)
    assert b"only ever in the inbox" in guest.memory()

    guest.collect()

    assert b"only ever in the inbox" not in guest.memory()


def test_collecting_frees_cycles(guest: JsGuest) -> None:
    guest.collect()
    before = guest.heap_bytes()
    guest.load("cycles.js", "for (let i = 0; i < 500; i++) { const o = {}; o.o = o }")
    assert guest.heap_bytes() - before > 10_000

    guest.collect()

    assert guest.heap_bytes() - before < 2_000


STACK_BYTES = 4 << 20
PROXY = "let p = {}; for (let i = 0; i < 50000; i++) p = new Proxy(p, {});"
NEST = "let a = []; for (let i = 0; i < 50000; i++) a = [a];"


@pytest.mark.parametrize(
    "body",
    [
        "(function f() { f() })()",
        "(function f() { return 1 + f() })()",
        "new (class A { m(a, b) { return this.m(a, b) + 1 } })().m()",
        "(function f() { [1].map(f) })()",
        "(function f() { 'a'.replace(/a/, f) })()",
        "(function F() { Reflect.construct(F, []) })()",
        "const o = {get x() { return o.x }}; o.x",
        "const o = {[Symbol.iterator]() { return [...o] }}; [...o]",
        "const o = {toString() { return `${o}` }}; `${o}`",
        "const o = {toString() { return '' + [o, o].sort() }}; '' + o",
        "const o = {toJSON() { return JSON.stringify(o) }}; JSON.stringify(o)",
        "const o = {toJSON() { H.send(1, 1, o) }}; H.send(1, 1, o)",
        "const o = {toJSON() { H.op(o) }}; H.op(o)",
        "const o = {get x() { return H.clone(o) }}; H.clone(o)",
        "JSON.parse('['.repeat(100000))",
        "JSON.parse('{\"a\":'.repeat(100000))",
        f"{PROXY} p.x",
        f"{PROXY} Object.keys(p)",
        f"{PROXY} delete p.x",
        f"{PROXY} Object.defineProperty(p, 'x', {{value: 1}})",
        f"{NEST} a.flat(Infinity)",
        f"{NEST} String(a)",
        f"{NEST} H.clone(a)",
        "let m = 0; for (let i = 0; i < 50000; i++) m = new Map([[1, m]]); H.clone(m)",
        "let e; for (let i = 0; i < 50000; i++) e = new Error('', {cause: e}); H.clone(e)",
        "function* g() { yield* g() } for (const x of g());",
        "new RegExp('(?:'.repeat(50000))",
        "new RegExp('(?='.repeat(50000) + ')'.repeat(50000))",
    ],
)
def test_deep_recursion_ends_in_an_error_and_never_in_a_trap(guest: JsGuest, body: str) -> None:
    name, message = guest.throws(body)

    assert (name, message) in [
        ("RangeError", "Maximum call stack size exceeded"),
        ("SyntaxError", "stack overflow"),
    ]
    assert guest.evaluate("return 1") == 1


OPENINGS = """
( { x=[ x={a: ! x=a=> x=(a= x=a? 2** a= x=`${ if(1) for(;;) try{ [...[ await_ new_ typeof_ let_[
if(1);else_ switch(1){case_1: class_A{x=class{x= function_f(){ x={get_a(){return_{
"""


@pytest.mark.parametrize("opening", OPENINGS.split())
def test_deeply_nested_source_is_refused_and_never_traps(guest: JsGuest, opening: str) -> None:
    opening = opening.replace("_", " ")
    guest.load("deep.js", opening + re.sub(r"^(x=|let )", "", opening) * 50_000, 1)

    assert fault(guest.load("deep.js", "", 2))["name"] in (
        "RangeError",
        "SyntaxError",
        "InternalError",
        "ReferenceError",
    )


def test_all_of_the_stack_is_about_ten_thousand_calls(compiled: Compiled) -> None:
    depths: list[int] = []
    for stack_bytes in (128 << 10, 256 << 10):
        guest = JsGuest(*compiled, stack_bytes=stack_bytes)
        body = "let n = 0; try { (function f() { n++; f() })() } catch { return n }"
        depth = guest.evaluate(body)
        assert isinstance(depth, int)
        depths.append(depth)

    bytes_for_a_call = (128 << 10) / (depths[1] - depths[0])
    usable = (4 << 20) - (256 << 10)
    assert 9_000 < usable / bytes_for_a_call < 13_000
