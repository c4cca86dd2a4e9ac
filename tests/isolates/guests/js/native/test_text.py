"""Text and bytes."""

import json
import random

import pytest

from tests.support.js_guest import JsGuest


def _bytes(data: bytes) -> str:
    return f"new Uint8Array({json.dumps(list(data))})"


@pytest.mark.parametrize(
    "text", ["", "plain ascii, longer than a word", "é", "aé", "日本語", "😀", "a😀é日" * 100]
)
def test_utf8_goes_both_ways(guest: JsGuest, text: str) -> None:
    encoded = text.encode()

    assert guest.evaluate(f"return [...H.utf8Encode({json.dumps(text)})]") == list(encoded)
    assert guest.evaluate(f"return H.utf8Decode({_bytes(encoded)})") == text


@pytest.mark.parametrize(
    ("literal", "expected"),
    [
        ("'\\ud800'", "\ufffd"),
        ("'a\\udc00b'", "a\ufffdb"),
        ("'\\ud83d\\ud83d\\ude00'", "\ufffd😀"),
        ("'\\ude00\\ud83d'", "\ufffd\ufffd"),
    ],
)
def test_a_lone_surrogate_is_encoded_as_a_replacement(
    guest: JsGuest, literal: str, expected: str
) -> None:
    assert guest.evaluate(f"return [...H.utf8Encode({literal})]") == list(expected.encode())


def test_encoding_takes_what_a_string_would_be_made_of(guest: JsGuest) -> None:
    assert guest.evaluate("return [...H.utf8Encode({toString: () => 'ab'})]") == [97, 98]
    assert guest.throws("H.utf8Encode(Symbol())")[0] == "TypeError"


@pytest.mark.parametrize(
    ("room", "literal", "answer", "written"),
    [
        (0, "'abc'", [0, 0], []),
        (2, "'abc'", [2, 2], [97, 98]),
        (3, "'aé'", [2, 3], [97, 0xC3, 0xA9]),
        (2, "'aé'", [1, 1], [97, 0]),
        (3, "'😀'", [0, 0], [0, 0, 0]),
        (4, "'😀'", [2, 4], [0xF0, 0x9F, 0x98, 0x80]),
        (3, "'\\ud800'", [1, 3], [0xEF, 0xBF, 0xBD]),
    ],
)
def test_encode_into_never_splits_a_character(
    guest: JsGuest, room: int, literal: str, answer: list[int], written: list[int]
) -> None:
    body = f"const u = new Uint8Array({room}); return [H.utf8EncodeInto({literal}, u), [...u]]"

    assert guest.evaluate(body) == [answer, written]


def test_encode_into_a_buffer_detached_on_the_way_writes_nothing(guest: JsGuest) -> None:
    body = (
        "const u = new Uint8Array(8);"
        "return H.utf8EncodeInto({toString() { u.buffer.transfer(); return 'abc' }}, u)"
    )

    assert guest.evaluate(body) == [0, 0]


# The Encoding Standard's rule, as Python follows it too: one U+FFFD for each maximal subpart.
@pytest.mark.parametrize(
    "data",
    [
        b"\x80",
        b"\xc0\x80",
        b"\xc2",
        b"\xc2A",
        b"\xe0\x80\x80",
        b"\xe0\xa0",
        b"\xe2\x82A",
        b"\xed\xa0\x80",
        b"\xef\xbf\xbd",
        b"\xf0\x80\x80\x80",
        b"\xf0\x9f\x98",
        b"\xf0\x9f\x98A",
        b"\xf4\x90\x80\x80",
        b"\xf5\x80\x80\x80",
        b"\xff\xfe",
        b"ascii \xff and \xc3\xa9",
    ],
)
def test_malformed_bytes_become_replacements_or_throw(guest: JsGuest, data: bytes) -> None:
    assert guest.evaluate(f"return H.utf8Decode({_bytes(data)})") == data.decode(errors="replace")
    if data != b"\xef\xbf\xbd":
        assert guest.throws(f"H.utf8Decode({_bytes(data)}, true)") == (
            "TypeError",
            "The encoded data was not valid for encoding utf-8",
        )


def test_random_bytes_decode_as_python_decodes_them(guest: JsGuest) -> None:
    dice = random.Random(3)
    alphabet = b"aZ\x80\xbf\xc2\xc3\xe0\xe2\xed\xef\xf0\xf4\xff\x9f\xa0\x90"
    samples = [bytes(dice.choices(alphabet, k=dice.randrange(24))) for _ in range(400)]

    literal = json.dumps([list(sample) for sample in samples])
    body = f"return {literal}.map((bytes) => H.utf8Decode(new Uint8Array(bytes)))"

    assert guest.evaluate(body) == [s.decode(errors="replace") for s in samples]


def test_a_byte_order_mark_is_dropped_unless_kept(guest: JsGuest) -> None:
    data = _bytes(b"\xef\xbb\xbfa")

    assert guest.evaluate(f"return H.utf8Decode({data})") == "a"
    assert guest.evaluate(f"return H.utf8Decode({data}, false, true)") == "\ufeffa"


def test_decoding_follows_views(guest: JsGuest) -> None:
    body = (
        "const b = new TextEncoder$(); return [H.utf8Decode(b.buffer), H.utf8Decode(b.subarray(1,"
        " 3)),"
        " H.utf8Decode(new DataView(b.buffer, 2)), H.utf8Decode(new Uint16Array(b.buffer))]"
    ).replace("new TextEncoder$()", _bytes(b"abcd"))

    assert guest.evaluate(body) == ["abcd", "bc", "cd", "abcd"]


@pytest.mark.parametrize("value", ["undefined", "null", "'abc'", "[1, 2]", "{}", "5"])
@pytest.mark.parametrize("function", ["utf8Decode", "utf8Incomplete", "latin1Decode"])
def test_what_has_no_bytes_is_refused(guest: JsGuest, function: str, value: str) -> None:
    assert guest.throws(f"H.{function}({value})")[0] == "TypeError"


def test_a_detached_buffer_decodes_as_nothing(guest: JsGuest) -> None:
    body = (
        "const u = new Uint8Array(4); u.buffer.transfer();"
        "return [H.utf8Decode(u), H.latin1Decode(u)]"
    )

    assert guest.evaluate(body) == ["", ""]


@pytest.mark.parametrize(
    ("data", "waiting"),
    [
        (b"", 0),
        (b"abc", 0),
        (b"\xc3", 1),
        (b"a\xe2\x82", 2),
        (b"\xf0\x9f\x98", 3),
        (b"\xf0\x9f\x98\x80", 0),
        (b"\xe2\x82\xac", 0),
        (b"\xe0\x80", 0),
        (b"\xed\xa0", 0),
        (b"\xf4\x90", 0),
        (b"\x80\x80\x80\x80", 0),
        (b"\xff", 0),
        (b"\xf5", 0),
        (b"\xc0", 0),
    ],
)
def test_a_stream_knows_what_to_keep_for_the_next_chunk(
    guest: JsGuest, data: bytes, waiting: int
) -> None:
    assert guest.evaluate(f"return H.utf8Incomplete({_bytes(data)})") == waiting


def test_latin1_is_one_unit_a_byte(guest: JsGuest) -> None:
    body = "return H.latin1Decode(Uint8Array.from({length: 256}, (_, i) => i))"

    assert guest.evaluate(body) == "".join(map(chr, range(256)))
