import json
from contextlib import suppress
from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from belem.runtime.project.positions import Position
from belem.runtime.project.sourcemap import EncodedMap, decode_mappings

DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


def encode(number: int) -> str:
    value = (-number << 1) | 1 if number < 0 else number << 1
    text = ""
    while True:
        digit, value = value & 31, value >> 5
        text += DIGITS[digit | (32 if value else 0)]
        if not value:
            return text


def source_map(mappings: str, **fields: object) -> EncodedMap:
    text = json.dumps({"version": 3, "sources": ["../src/a.ts"], "mappings": mappings, **fields})
    return EncodedMap(text, PurePosixPath("/project/out"), PurePosixPath("/project"))


@given(
    st.lists(
        st.lists(
            st.tuples(*[st.integers(0, 1 << 30)] * 4), max_size=5, unique_by=lambda item: item[0]
        ),
        max_size=5,
    )
)
def test_mappings_decode_to_what_was_encoded(
    lines: list[list[tuple[int, int, int, int]]],
) -> None:
    groups: list[str] = []
    last = (0, 0, 0)
    for line in lines:
        column = 0
        segments: list[str] = []
        for segment in sorted(line):
            numbers = (
                segment[0] - column,
                *(a - b for a, b in zip(segment[1:], last, strict=True)),
            )
            column, last = segment[0], segment[1:]
            segments.append("".join(encode(number) for number in numbers))
        groups.append(",".join(segments))

    decoded = decode_mappings(";".join(groups))

    assert [[tuple(segment) for segment in line] for line in decoded] == [
        sorted(line) for line in lines or [[]]
    ]


@given(st.text(DIGITS + ",;é "))
def test_broken_mappings_raise_nothing_but_value_errors(mappings: str) -> None:
    with suppress(ValueError):
        decode_mappings(mappings)


@pytest.mark.parametrize("mappings", ["é", "g", "AAA,,", "g" * 20 + "A"])
def test_broken_mappings_are_refused(mappings: str) -> None:
    with pytest.raises(ValueError, match=r"digit|cut off|too long"):
        decode_mappings(mappings)


def test_a_place_leads_to_the_segment_before_it() -> None:
    # Line 1 of the output, columns 0 and 10, come from lines 1 and 3 of the source.
    encoded = source_map("AAAA,UAEE")

    assert encoded.original(1, 1) == Position("src/a.ts", 1, 1)
    assert encoded.original(1, 10) == Position("src/a.ts", 1, 1)
    assert encoded.original(1, 11) == Position("src/a.ts", 3, 3)
    assert encoded.original(1, 500) == Position("src/a.ts", 3, 3)


def test_code_that_nobody_wrote_has_no_place() -> None:
    encoded = source_map("A,UAAA;;")

    assert encoded.original(1, 5) is None
    assert encoded.original(2, 1) is None
    assert encoded.original(9, 1) is None
    assert encoded.original(0, 1) is None


def test_sources_are_named_from_the_project() -> None:
    nested = EncodedMap(
        json.dumps({"sources": ["./b/../a.ts"], "sourceRoot": "../src", "mappings": "AAAA"}),
        PurePosixPath("/project/out"),
        PurePosixPath("/project"),
    )

    assert nested.original(1, 1) == Position("src/a.ts", 1, 1)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"sources": 1, "mappings": ""}', "null", "{"])
def test_a_broken_map_leads_nowhere(text: str) -> None:
    assert (
        EncodedMap(text, PurePosixPath("/project/out"), PurePosixPath("/project")).original(1, 1)
        is None
    )


def test_a_source_that_the_map_lacks_leads_nowhere() -> None:
    assert source_map("ACAA").original(1, 1) is None
