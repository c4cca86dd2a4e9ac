"""Errors that reach the host without the boot code's help."""

import pytest
from wasmtime import Trap

from belem.sdk.abi import ToGuest
from tests.isolates.guests.js.native.conftest import Compiled
from tests.support.js_guest import JsGuest, fault, record


@pytest.mark.parametrize(
    ("thrown", "name", "message"),
    [
        ("new TypeError('t')", "TypeError", "t"),
        (
            "new Error('\"quoted\" \\\\ \\n \\u0001 é 😀 \\ud800')",
            "Error",
            '"quoted" \\ \n \x01 é 😀 \ufffd',
        ),
        ("new DOMException('d', 'AbortError')", "AbortError", "d"),
        ("'text'", "Error", "text"),
        ("42", "Error", "42"),
        ("10n", "Error", "10"),
        ("null", "Error", "null"),
        ("undefined", "Error", "undefined"),
        ("Symbol('s')", "Error", "a symbol was thrown"),
        ("{}", "Error", ""),
        ("{name: 'N', message: 'm', stack: 's'}", "N", "m"),
        ("{name: 5, message: {}}", "Error", ""),
        ("Object.create(null)", "Error", ""),
        ("new Proxy({}, {get() { throw 1 }})", "Error", ""),
        ("{get name() { throw 1 }, get message() { throw 2 }}", "Error", ""),
    ],
)
def test_whatever_is_thrown_becomes_a_fault(
    guest: JsGuest, thrown: str, name: str, message: str
) -> None:
    problem = fault(guest.load("throw.js", f"throw {thrown}"))

    assert (problem["name"], problem["message"]) == (name, message)
    assert guest.evaluate("return 1") == 1


def test_the_stack_says_where(guest: JsGuest) -> None:
    problem = fault(guest.load("src/where.js", "function f() {\n  null.x }\nf()"))

    assert "f (src/where.js:2" in str(problem["stack"])


def test_a_worker_cannot_change_how_faults_are_written(guest: JsGuest) -> None:
    guest.load(
        "evil.js",
        "Object.prototype.toJSON = String.prototype.toJSON = () => 'evil'; JSON.stringify = null;"
        "Error.prepareStackTrace = () => ({})",
    )

    problem = fault(guest.load("throw.js", "throw new Error('plain')"))

    assert problem == {"name": "Error", "message": "plain", "stack": ""}


def test_a_long_message_is_cut(guest: JsGuest) -> None:
    problem = fault(guest.load("long.js", "throw new Error('é'.repeat(1e6))"))

    assert problem["message"] == "é" * 16384


def test_a_syntax_error_in_a_script_says_where(guest: JsGuest) -> None:
    problem = fault(guest.load("boot.js", "let a = 1;\nlet b = ;"))

    assert (problem["name"], problem["file"], problem["line"]) == ("SyntaxError", "boot.js", 2)


def test_a_throw_in_a_microtask_is_a_fault(guest: JsGuest) -> None:
    problem = fault(guest.load("micro.js", "queueMicrotask(() => { throw new Error('late') })"))

    assert problem["message"] == "late"


def test_memory_that_runs_out_is_an_error_that_can_be_caught(guest: JsGuest) -> None:
    body = (
        "const hoard = []; try { for (;;) hoard.push(new Uint8Array(1 << 20)) }"
        " catch (e) { hoard.length = 0; return [e.name, e.message] }"
    )

    assert guest.evaluate(body) == ["InternalError", "out of memory"]
    assert guest.evaluate("return new Uint8Array(1 << 20).length") == 1 << 20


@pytest.mark.parametrize(
    "hoard",
    [
        "a.push({})",
        "a.push('x'.repeat(99) + a.length)",
        "a.push([a])",
        "a.push(() => a)",
        "a.push(new Map([[a.length, {}]]))",
        "a.push(H.urlParse('http://a/' + a.length))",
        "a.push(H.clone({a: [1, 2, {b: 'c' + a.length}]}))",
        "a.push(H.utf8Encode('x' + a.length))",
        "a.push(new Error('e'))",
        "a.push(new RegExp('x' + a.length))",
        "H.send(9, 9, 'x'.repeat(5000))",
    ],
)
def test_small_things_that_use_memory_up_leave_the_guest_alive(
    compiled: Compiled, hoard: str
) -> None:
    guest = JsGuest(*compiled, memory_bytes=16 << 20)

    records = guest.load("hoard.js", f"{{ const a = []; for (;;) {{ {hoard} }} }}")

    assert "out of memory" in str(fault([r for r in records if r.kind == 1][:1])["message"])
    assert guest.evaluate("return [1, 'alive'].join()") == "1,alive"


def test_a_guest_without_memory_to_report_in_is_given_up(compiled: Compiled) -> None:
    guest = JsGuest(*compiled, memory_bytes=16 << 20)

    with pytest.raises(Trap):
        guest.load("hoard.js", "const a = []; for (;;) a.push(Promise.reject(1))")


def test_faults_of_a_step_carry_the_records_id(guest: JsGuest) -> None:
    guest.load("on.js", "H.onRecord(() => { throw 'x' })")

    (problem,) = guest.step(record(ToGuest.EVENT, 77))

    assert problem.id == 77
