"""What the guest sends."""

import struct

import pytest

from belem.sdk.abi import Type
from tests.support.js_guest import JsGuest, Record


def _sent(guest: JsGuest, *calls: str) -> list[Record]:
    return guest.load("send.js", ";".join(f"H.send({call})" for call in calls))


@pytest.mark.parametrize(
    ("value", "type", "payload"),
    [
        ("undefined", Type.NONE, b""),
        ("'h\\u00e9\\ud83d\\ude00'", Type.TEXT, "hé😀".encode()),
        ("''", Type.TEXT, b""),
        ("'a' + 'b'.repeat(9000) + 'c'", Type.TEXT, b"a" + b"b" * 9000 + b"c"),
        ("'x\\ud800y'", Type.TEXT, b"x\xef\xbf\xbdy"),
        ("new Uint8Array([1, 2, 3])", Type.BYTES, b"\x01\x02\x03"),
        ("new Uint8Array([1, 2, 3, 4]).buffer", Type.BYTES, b"\x01\x02\x03\x04"),
        ("new Uint8Array([1, 2, 3, 4, 5]).subarray(1, 3)", Type.BYTES, b"\x02\x03"),
        ("new Uint16Array([0x201, 0x403])", Type.BYTES, b"\x01\x02\x03\x04"),
        ("new DataView(new Uint8Array([1, 2, 3, 4]).buffer, 2)", Type.BYTES, b"\x03\x04"),
        ("new Uint8Array()", Type.BYTES, b""),
        ("null", Type.JSON, b"null"),
        ("1.5", Type.JSON, b"1.5"),
        ("({a: ['\\ud800']})", Type.JSON, b'{"a":["\\ud800"]}'),
    ],
)
def test_a_payloads_type_follows_the_value(
    guest: JsGuest, value: str, type: Type, payload: bytes
) -> None:
    assert _sent(guest, f"9, 4000000000, {value}") == [Record(9, 4_000_000_000, type, payload)]


@pytest.mark.parametrize(
    ("value", "extra", "type", "payload"),
    [
        ("'ab'", "new Uint8Array([7, 8])", Type.TEXT_AND_BYTES, b"\x02\0\0\0ab\x07\x08"),
        ("'ab'", "new Uint8Array()", Type.TEXT_AND_BYTES, b"\x02\0\0\0ab"),
        ("'ab'", "5", Type.TEXT_AND_STREAM, b"\x02\0\0\0ab\x05\0\0\0"),
        ("[1]", "new ArrayBuffer(1)", Type.JSON_AND_BYTES, b"\x03\0\0\0[1]\0"),
        ("[1]", "4294967295", Type.JSON_AND_STREAM, b"\x03\0\0\0[1]\xff\xff\xff\xff"),
    ],
)
def test_text_and_json_carry_bytes_or_a_stream(
    guest: JsGuest, value: str, extra: str, type: Type, payload: bytes
) -> None:
    assert _sent(guest, f"3, 1, {value}, {extra}") == [Record(3, 1, type, payload)]


def test_records_keep_their_order(guest: JsGuest) -> None:
    sent = _sent(guest, "1, 1, 'abc'", "2, 2", "3, 3, [0]")

    assert [(r.kind, r.id, r.payload) for r in sent] == [
        (1, 1, b"abc"),
        (2, 2, b""),
        (3, 3, b"[0]"),
    ]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ("1, 1, () => 1", ("TypeError", "the value cannot be written as JSON")),
        ("1, 1, Symbol()", ("TypeError", "the value cannot be written as JSON")),
        ("1, 1, 1n", ("TypeError", "BigInt are forbidden in JSON.stringify")),
        ("1, 1, undefined, 5", ("TypeError", "only text and JSON can carry bytes or a stream")),
        (
            "1, 1, new Uint8Array(), 5",
            ("TypeError", "only text and JSON can carry bytes or a stream"),
        ),
        ("1, 1, 'x', {}", ("TypeError", "expected an ArrayBuffer or a view of one")),
        ("1, 1, {toJSON() { throw new RangeError('mine') }}", ("RangeError", "mine")),
        ("{valueOf() { throw new RangeError('mine') }}", ("RangeError", "mine")),
    ],
)
def test_what_cannot_be_sent_throws_and_leaves_no_record(
    guest: JsGuest, arguments: str, error: tuple[str, str]
) -> None:
    assert guest.throws(f"H.send({arguments})") == error  # which sees that nothing else was sent


@pytest.mark.parametrize(
    "attack",
    [
        "b.transfer()",
        "b.resize(0)",
        "b.resize(2)",
    ],
)
def test_a_buffer_that_goes_away_while_its_json_is_made_is_sent_as_it_is_then(
    guest: JsGuest, attack: str
) -> None:
    body = (
        "const b = new ArrayBuffer(8, {maxByteLength: 64}), u = new Uint8Array(b, 0, 8);"
        f"H.send(3, 1, {{toJSON() {{ {attack}; return 1 }}}}, u)"
    )

    (sent,) = guest.load("attack.js", f"{{{body}}}")

    assert sent == Record(3, 1, Type.JSON_AND_BYTES, struct.pack("<I", 1) + b"1")


def test_a_view_follows_its_resizable_buffer(guest: JsGuest) -> None:
    sent = guest.load(
        "resize.js",
        "{ const b = new ArrayBuffer(2, {maxByteLength: 8}), u = new Uint8Array(b, 1);"
        "  u[0] = 7; H.send(1, 1, u); b.resize(4); H.send(1, 2, u); b.resize(0); H.send(1, 3, u) }",
    )

    assert [r.payload for r in sent] == [b"\x07", b"\x07\0\0", b""]


def test_the_outbox_grows_for_a_large_body_and_shrinks_again(guest: JsGuest) -> None:
    (large,) = guest.load("large.js", "H.send(4, 1, new Uint8Array(5_000_000).fill(9))")
    (small,) = guest.load("small.js", "H.send(4, 1, 'x')")

    assert large.payload == b"\x09" * 5_000_000
    assert small.payload == b"x"


def test_a_record_that_memory_cannot_hold_throws(guest: JsGuest) -> None:
    body = (
        "const big = new Uint8Array(24 << 20);"
        "try { for (let i = 0; i < 9; i++) H.send(4, 1, big) } catch (e) { var r = [e.name,"
        " e.message] }"
        "globalThis.r = r"
    )

    guest.load("bomb.js", f"{{{body}}}")

    assert guest.evaluate("return r") == ["InternalError", "out of memory"]


def test_nothing_leaks_from_what_was_sent(guest: JsGuest) -> None:
    script = (
        "for (let i = 0; i < 200; i++) { H.send(1, i, {a: 'é' + i}, new Uint8Array(100)); "
        "H.send(1, i, 'a'.repeat(600) + i); try { H.send(1, 1, () => 1) } catch {} }"
    )
    guest.load("warm.js", script)
    guest.collect()
    before = guest.heap_bytes()

    for _ in range(5):
        guest.load("warm.js", script)
    guest.collect()

    assert guest.heap_bytes() - before < 2_000
