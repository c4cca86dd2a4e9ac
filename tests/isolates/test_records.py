"""Records as bytes: what is packed can be parsed, and nothing malformed gets through."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from belem.isolates.records import (
    ProtocolBreach,
    join,
    json_bytes,
    pack,
    parse,
    read_json,
    read_object,
    split,
)
from belem.sdk.abi import ToHost, Type


@given(st.lists(st.tuples(st.integers(0, 2**32 - 1), st.binary(max_size=50)), max_size=8))
def test_what_is_packed_is_parsed(chunks: list[tuple[int, bytes]]) -> None:
    outbox = b"".join(pack(ToHost.CHUNK, id, Type.BYTES, data) for id, data in chunks)

    records = parse(outbox)

    assert records == [(ToHost.CHUNK, id, Type.BYTES, data) for id, data in chunks]
    assert len(outbox) % 4 == 0


@given(st.binary(max_size=200))
def test_any_bytes_are_records_or_a_breach(outbox: bytes) -> None:
    try:
        records = parse(outbox)
    except ProtocolBreach:
        return
    assert all(kind in list(ToHost) for kind, _, _, _ in records)


@given(st.binary(max_size=40), st.binary(max_size=40))
def test_joined_parts_come_apart_again(first: bytes, second: bytes) -> None:
    assert split(join(first, second)) == (first, second)


@pytest.mark.parametrize("payload", [b"", b"\1", b"\2\0\0\0x", b"\xff\xff\xff\xff"])
def test_parts_that_do_not_fit_are_a_breach(payload: bytes) -> None:
    with pytest.raises(ProtocolBreach):
        split(payload)


def test_json_is_compact_and_survives_lone_surrogates() -> None:
    assert json_bytes({"é": [1, None]}) == '{"é":[1,null]}'.encode()
    assert json_bytes("\ud800") == b'"\\ud800"'


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_json_has_no_infinities(value: float) -> None:
    with pytest.raises(ValueError, match="Out of range"):
        json_bytes(value)


@pytest.mark.parametrize("payload", [b"", b"NaN", b"[-Infinity]", b"[" * 100_000, b"1 2", b"\xff"])
def test_what_is_not_json_is_a_breach(payload: bytes) -> None:
    with pytest.raises(ProtocolBreach):
        read_json(payload, 1 << 20)


def test_json_over_the_limit_is_not_parsed() -> None:
    with pytest.raises(ProtocolBreach, match="limit is 10"):
        read_json(b'"0123456789"', 10)


def test_an_object_is_wanted_where_an_object_is_due() -> None:
    with pytest.raises(ProtocolBreach, match="not an object"):
        read_object(b"[]", 100)
