"""What the host sends, rightly and wrongly."""

import json
import random
import struct

import pytest

from belem.sdk.abi import RECORD, ToGuest, ToHost, Type
from tests.support.js_guest import JsGuest, fault, record

ECHO = (
    "H.onRecord((kind, id, value, extra) => {"
    " const show = (v) => v instanceof Uint8Array ? ['bytes', ...v] : v === undefined ?"
    " 'undefined' : v;"
    " H.send(50, id, [kind, show(value), show(extra)]) })"
)


@pytest.fixture
def echo(guest: JsGuest) -> JsGuest:
    """A guest that answers each record with what it saw."""
    assert guest.load("echo.js", ECHO) == []
    return guest


def _pair(first: bytes, rest: bytes) -> bytes:
    return struct.pack("<I", len(first)) + first + rest


@pytest.mark.parametrize(
    ("type", "payload", "value", "extra"),
    [
        (Type.NONE, b"", "undefined", "undefined"),
        (Type.TEXT, "fetch\nGET /é😀".encode(), "fetch\nGET /é😀", "undefined"),
        (Type.TEXT, b"", "", "undefined"),
        (Type.TEXT, b"a\xff\xe2\x82b", "a\ufffd\ufffdb", "undefined"),
        (Type.BYTES, b"\x01\x02\x03", ["bytes", 1, 2, 3], "undefined"),
        (Type.BYTES, b"", ["bytes"], "undefined"),
        (Type.JSON, b'{"a":[1,"\xc3\xa9"]}', {"a": [1, "é"]}, "undefined"),
        (Type.JSON_AND_BYTES, _pair(b"[1]", b"\x09\x08"), [1], ["bytes", 9, 8]),
        (Type.JSON_AND_BYTES, _pair(b"12", b"34"), 12, ["bytes", 0x33, 0x34]),
        (Type.TEXT_AND_BYTES, _pair(b"ab", b""), "ab", ["bytes"]),
        (Type.JSON_AND_STREAM, _pair(b"[1]", b"\x07\0\0\0"), [1], 7),
        (Type.TEXT_AND_STREAM, _pair(b"ab", b"\xff\xff\xff\xff"), "ab", 0xFFFFFFFF),
    ],
)
def test_a_payload_arrives_as_its_type_says(
    echo: JsGuest, type: Type, payload: bytes, value: object, extra: object
) -> None:
    (answer,) = echo.step(record(ToGuest.EVENT, 3_000_000_000, type, payload))

    assert answer.id == 3_000_000_000
    assert answer.json() == [ToGuest.EVENT, value, extra]


def test_the_records_of_a_batch_arrive_in_order(echo: JsGuest) -> None:
    kinds = [ToGuest.EVENT, ToGuest.CHUNK, ToGuest.END, ToGuest.FAIL, ToGuest.CANCEL]
    kinds += [ToGuest.ACK, ToGuest.STOP]

    answers = echo.step(*(record(kind, i, Type.TEXT, b"abc"[:i]) for i, kind in enumerate(kinds)))

    assert [answer.id for answer in answers] == list(range(7))
    assert [answer.json() for answer in answers] == [
        [kind, "abc"[:i], "undefined"] for i, kind in enumerate(kinds)
    ]


def test_each_record_is_a_task_of_its_own(guest: JsGuest) -> None:
    guest.load(
        "tasks.js",
        "H.onRecord((k, id) => { H.send(50, id, 'task');"
        " Promise.resolve().then(() => 0).then(() => H.send(50, id, 'microtask')) })",
    )

    answers = guest.step(record(ToGuest.EVENT, 1), record(ToGuest.EVENT, 2))

    assert [(a.id, a.payload) for a in answers] == [
        (1, b"task"),
        (1, b"microtask"),
        (2, b"task"),
        (2, b"microtask"),
    ]


def test_a_throw_is_a_fault_of_that_id_and_the_batch_goes_on(guest: JsGuest) -> None:
    guest.load(
        "throw.js",
        "H.onRecord((k, id) => { if (id === 1) throw new TypeError('no'); H.send(50, id) })",
    )

    first, second = guest.step(record(ToGuest.EVENT, 1), record(ToGuest.EVENT, 2))

    assert (first.kind, first.id) == (ToHost.FAULT, 1)
    problem = first.json()
    assert isinstance(problem, dict)
    assert (problem["name"], problem["message"]) == ("TypeError", "no")
    assert "throw.js:1" in str(problem["stack"])
    assert (second.kind, second.id) == (50, 2)


def test_without_a_receiver_a_record_is_a_fault(guest: JsGuest) -> None:
    assert fault(guest.step(record(ToGuest.EVENT, 1)))["name"] == "TypeError"


@pytest.mark.parametrize("kind", [0, 11, 12, 0xFFFFFFFF])
def test_an_unknown_kind_is_a_fault_and_the_batch_goes_on(echo: JsGuest, kind: int) -> None:
    first, second = echo.step(record(kind, 1), record(ToGuest.EVENT, 2))

    assert fault([first])["message"] == f"a record has kind {kind}"
    assert second.id == 2


@pytest.mark.parametrize(
    ("type", "payload"),
    [
        (8, b""),
        (0xFFFFFFFF, b"abcd"),
        (Type.JSON, b""),
        (Type.JSON, b"{"),
        (Type.JSON, b'{"a":1}x'),
        (Type.JSON, b"\xff"),
        (Type.JSON_AND_BYTES, b""),
        (Type.JSON_AND_BYTES, b"\0\0"),
        (Type.JSON_AND_BYTES, b"\x05\0\0\0[1]"),
        (Type.JSON_AND_BYTES, b"\xff\xff\xff\xff[1]"),
        (Type.TEXT_AND_BYTES, b"\xfd\xff\xff\xffabcd"),
        (Type.JSON_AND_STREAM, _pair(b"[1]", b"\x01\0\0")),
        (Type.TEXT_AND_STREAM, _pair(b"ab", b"\x01\0\0\0\0")),
    ],
)
def test_a_malformed_payload_is_a_fault_and_the_batch_goes_on(
    echo: JsGuest, type: int, payload: bytes
) -> None:
    first, second = echo.step(record(ToGuest.EVENT, 1, type, payload), record(ToGuest.EVENT, 2))

    assert first.id == 1
    assert fault([first])["name"] in ("TypeError", "SyntaxError")
    assert (second.kind, second.id) == (50, 2)


@pytest.mark.parametrize("length", [1, 9, 0x7FFFFFFF, 0xFFFFFFF0, 0xFFFFFFFF])
def test_a_record_longer_than_its_batch_ends_it(echo: JsGuest, length: int) -> None:
    good = record(ToGuest.EVENT, 1)
    bad = RECORD.pack(ToGuest.EVENT, 2, Type.TEXT, length)

    answer, problem = echo.step(good, bad)

    assert answer.id == 1
    assert "ends inside a record" in str(fault([problem])["message"])


def test_a_batch_cut_anywhere_is_survived(echo: JsGuest) -> None:
    batch = record(ToGuest.EVENT, 1, Type.JSON, b'{"a":"b"}') + record(
        ToGuest.CHUNK, 2, Type.BYTES, b"\x01\x02\x03"
    )

    for length in range(len(batch)):
        echo.step(batch[:length])

    assert len(echo.step(batch)) == 2


def test_a_batch_longer_than_the_inbox_is_not_read(echo: JsGuest) -> None:
    assert echo.step_raw(record(ToGuest.EVENT, 1), 0x7FFFFFFF) == []
    assert len(echo.step(record(ToGuest.EVENT, 1))) == 1


def test_random_batches_never_break_the_guest(echo: JsGuest) -> None:
    dice = random.Random(7)

    for _ in range(300):
        parts: list[bytes] = []
        for _ in range(dice.randrange(4)):
            payload = dice.randbytes(dice.randrange(40))
            if dice.random() < 0.5:
                payload = _pair(b'{"a":1}', payload)
            length = len(payload) if dice.random() < 0.8 else dice.getrandbits(32)
            head = RECORD.pack(dice.randrange(12), dice.getrandbits(32), dice.randrange(10), length)
            parts.append(head + payload + bytes(-len(payload) % 4))
        echo.step(*parts)

    (answer,) = echo.step(record(ToGuest.EVENT, 1, Type.TEXT, b"alive"))
    assert answer.json() == [1, "alive", "undefined"]


def test_a_large_inbox_is_given_back(echo: JsGuest) -> None:
    body = bytes(range(256)) * 16384

    (large,) = echo.step(record(ToGuest.CHUNK, 1, Type.TEXT, b"x" * len(body)))
    (small,) = echo.step(record(ToGuest.EVENT, 2, Type.TEXT, b"y"))

    assert json.loads(large.payload)[1] == "x" * len(body)
    assert small.json() == [1, "y", "undefined"]


def test_the_clock_stands_still_during_a_step(guest: JsGuest) -> None:
    assert guest.evaluate("return [Date.now(), performance.now()]") == [0, 0]
    guest.load(
        "clock.js",
        "H.onRecord(() => { const a = [Date.now(), performance.now()];"
        " for (let i = 0; i < 1e5; i++); H.send(50, 0, [a, [Date.now(), performance.now()]]) })",
    )

    (answer,) = guest.step(record(ToGuest.EVENT, 1), now_us=1_700_000_000_123_456)

    assert answer.json() == [[1_700_000_000_123, 1_700_000_000_123.456]] * 2
