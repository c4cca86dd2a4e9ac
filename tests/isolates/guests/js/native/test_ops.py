"""Ops: asked once, answered once, by nobody else."""

import json

import pytest

from belem.sdk.abi import ToGuest, ToHost, Type
from tests.support.js_guest import JsGuest, record

ASK = (
    "globalThis.ask = (args, extra) => H.op(args, extra).then("
    "  ([value, rest]) => H.send(50, 0, ['resolved', value, rest === undefined ? 'none' : typeof"
    " rest,"
    "    rest instanceof Uint8Array ? [...rest] : rest ?? null]),"
    "  (error) => H.send(50, 0, ['rejected', error.name, error.message]))"
)


@pytest.fixture
def asking(guest: JsGuest) -> JsGuest:
    assert guest.load("ask.js", ASK) == []
    return guest


def test_an_op_sends_its_arguments_and_knows_its_id(asking: JsGuest) -> None:
    op, last = asking.load("op.js", "ask(['kv', 'get', [1]], 9); H.send(51, H.lastOp())")

    assert (op.kind, op.type) == (ToHost.OP, Type.JSON_AND_STREAM)
    assert op.payload == b'\x10\0\0\0["kv","get",[1]]\x09\0\0\0'
    assert op.id == last.id != 0


@pytest.mark.parametrize(
    ("type", "payload", "expected"),
    [
        (Type.JSON, b'{"a":1}', ["resolved", {"a": 1}, "none", None]),
        (Type.JSON, b"null", ["resolved", None, "none", None]),
        (Type.JSON_AND_BYTES, b"\x01\0\0\x001ab", ["resolved", 1, "object", [97, 98]]),
        (Type.JSON_AND_STREAM, b"\x01\0\0\x001\x07\0\0\0", ["resolved", 1, "number", 7]),
    ],
)
def test_an_answer_resolves_with_its_value_and_what_came_along(
    asking: JsGuest, type: Type, payload: bytes, expected: object
) -> None:
    (op,) = asking.load("op.js", "ask([])")

    (answer,) = asking.step(record(ToGuest.RESOLVE, op.id, type, payload))

    assert answer.json() == expected


def test_a_rejection_becomes_what_on_reject_makes_of_it(asking: JsGuest) -> None:
    asking.load("reject.js", "H.onReject((p) => Object.assign(new RangeError(p.message), p))")
    (op,) = asking.load("op.js", "ask([])")
    payload = json.dumps({"name": "KVError", "message": "too long"}).encode()

    (answer,) = asking.step(record(ToGuest.REJECT, op.id, Type.JSON, payload))

    assert answer.json() == ["rejected", "KVError", "too long"]


def test_a_throw_in_on_reject_is_the_rejection(asking: JsGuest) -> None:
    asking.load("reject.js", "H.onReject(() => { throw new TypeError('mine') })")
    (op,) = asking.load("op.js", "ask([])")

    (answer,) = asking.step(record(ToGuest.REJECT, op.id, Type.JSON, b"{}"))

    assert answer.json() == ["rejected", "TypeError", "mine"]


def test_an_answer_that_cannot_be_read_rejects(asking: JsGuest) -> None:
    (op,) = asking.load("op.js", "ask([])")

    (answer,) = asking.step(record(ToGuest.RESOLVE, op.id, Type.JSON, b"{"))

    assert answer.json() == ["rejected", "SyntaxError", json.loads(answer.payload)[2]]


def test_stale_and_forged_answers_are_ignored(asking: JsGuest) -> None:
    first, second = asking.load("op.js", "ask([1]); ask([2])")
    forged = [0, 1, 2, 0xFFFFFFFF, first.id + (1 << 20), first.id ^ 0xFFF, 0xFFFFF | (1 << 20)]
    forged = [id for id in forged if id not in (first.id, second.id)]

    assert asking.step(*(record(ToGuest.RESOLVE, id, Type.JSON, b"0") for id in forged)) == []
    assert len(asking.step(record(ToGuest.RESOLVE, first.id, Type.JSON, b"1"))) == 1
    assert asking.step(record(ToGuest.RESOLVE, first.id, Type.JSON, b"1")) == []
    assert asking.step(record(ToGuest.REJECT, first.id, Type.JSON, b"1")) == []
    assert len(asking.step(record(ToGuest.RESOLVE, second.id, Type.JSON, b"2"))) == 1


def test_a_slot_used_again_has_another_id_and_never_0(asking: JsGuest) -> None:
    seen: set[int] = set()

    for _ in range(5000):  # more than the 4,095 generations of a slot
        (op,) = asking.load("op.js", "H.op([])")
        seen.add(op.id)
        asking.step(record(ToGuest.RESOLVE, op.id, Type.JSON, b"0"))

    assert 0 not in seen
    assert len(seen) == 4095


def test_pending_ops_are_bounded(guest: JsGuest) -> None:
    guest.load(
        "flood.js",
        "let n = 0, thrown; try { for (;;) { H.op(0); n++ } } catch (e) { thrown = [e.name,"
        " e.message] }",
    )

    assert guest.evaluate("return [n, ...thrown]") == [
        1000,
        "RangeError",
        "Too many operations are pending; the limit is 1000.",
    ]


def test_an_op_whose_arguments_cannot_be_written_gives_its_slot_back(asking: JsGuest) -> None:
    for _ in range(100):
        assert asking.throws("H.op({toJSON() { throw new Error('mine') }})") == ("Error", "mine")

    (op,) = asking.load("op.js", "ask([])")
    assert op.id & 0xFFFFF == 0


def test_an_op_made_while_another_ones_arguments_are_written_is_its_own(asking: JsGuest) -> None:
    inner, outer = asking.load("nested.js", "ask([{toJSON() { ask(['inner']); return 'outer' }}])")

    assert (inner.payload, outer.payload) == (b'["inner"]', b'["outer"]')
    assert inner.id != outer.id
    (answer,) = asking.step(record(ToGuest.RESOLVE, outer.id, Type.JSON, b'"o"'))
    assert answer.json() == ["resolved", "o", "none", None]


def test_nothing_leaks_from_ops(asking: JsGuest) -> None:
    def round_trips(count: int) -> None:
        for i in range(count):
            (op,) = asking.load("op.js", "ask(['a'.repeat(500)])")
            kind = ToGuest.REJECT if i % 2 else ToGuest.RESOLVE
            asking.step(record(kind, op.id, Type.JSON_AND_BYTES, b"\x02\0\0\0{}abc"))

    round_trips(50)
    asking.collect()
    before = asking.heap_bytes()
    round_trips(300)
    asking.collect()

    assert asking.heap_bytes() - before < 2_000
