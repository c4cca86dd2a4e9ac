import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from belem.bindings.aiokv import InvalidCursor
from belem.bindings.aiokv.cursor import decode_cursor, encode_cursor


@given(st.text(min_size=1, max_size=128, alphabet=st.characters(exclude_categories=["Cs"])))
def test_a_cursor_round_trips_every_key(key: str) -> None:
    assert decode_cursor(encode_cursor(key.encode())) == key.encode()


@given(st.text(max_size=40))
def test_no_text_makes_decoding_fail_otherwise_than_refusing(text: str) -> None:
    with pytest.raises(InvalidCursor):
        decode_cursor(text)


@given(st.binary(max_size=40), st.integers(0, 39))
def test_a_changed_character_is_noticed(key: bytes, position: int) -> None:
    cursor = encode_cursor(b"key" + base64.b16encode(key))
    position %= len(cursor) - 1  # the last one may carry padding bits that mean nothing
    other = "A" if cursor[position] != "A" else "B"

    with pytest.raises(InvalidCursor):
        decode_cursor(cursor[:position] + other + cursor[position + 1 :])


def test_a_later_version_is_refused() -> None:
    cursor = base64.urlsafe_b64encode(b"\x02\0\0\0\0key").decode()

    with pytest.raises(InvalidCursor, match="version"):
        decode_cursor(cursor)


def test_a_cursor_to_no_key_is_refused() -> None:
    with pytest.raises(InvalidCursor, match="damaged"):
        decode_cursor(base64.urlsafe_b64encode(b"\x01\0\0\0\0").decode().rstrip("="))


def test_a_cursor_whose_key_is_not_unicode_is_refused() -> None:
    with pytest.raises(InvalidCursor, match="damaged"):
        decode_cursor(encode_cursor(b"\xff"))
