import json
import re
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from belem.runtime.project.jsonc import JsoncError, parse_jsonc

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)
COMMENTS = st.sampled_from(
    ["", " ", "// x }\n", "/* ,] */", "/* a\n * b */", "/***/", '// "\n', "\n"]
)


def test_comments_and_trailing_commas_are_left_out() -> None:
    text = """
    // a config
    {
      "a": 1, /* one */
      "url": "https://example.com/*x*/", // not "a" comment: "//"
      "list": [1, 2, /* last */ ], // trailing
    }
    """

    assert parse_jsonc(text) == {"a": 1, "url": "https://example.com/*x*/", "list": [1, 2]}


def test_a_byte_order_mark_is_left_out() -> None:
    assert parse_jsonc("\ufeff{}") == {}


@given(VALUES)
def test_plain_json_is_read_as_json(value: object) -> None:
    assert parse_jsonc(json.dumps(value)) == value


@given(VALUES, st.data())
def test_comments_between_tokens_change_nothing(value: object, data: st.DataObject) -> None:
    pieces = re.split(r'("(?:[^"\\]|\\.)*"|[\[\]{},:])', json.dumps(value))

    text = "".join(piece + data.draw(COMMENTS) for piece in pieces)

    assert parse_jsonc(text) == value


@given(st.text() | st.text('{}[],"/*\\:1a\n '))
def test_any_text_is_a_value_or_an_error(text: str) -> None:
    # Nothing but its own error escapes.
    with suppress(JsoncError):
        parse_jsonc(text)


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ('{\n  "a": 1 // one\n  "b": 2\n}', 3, 3),
        ('{ /* a\n b */ "a": nope }', 2, 12),
        ("{} x", 1, 4),
        ("[1,,2]", 1, 4),
        ("[,]", 1, 2),
        ("{,}", 1, 2),
        ('{"a":,}', 1, 6),
        ('{"a"', 1, 5),
        ("/* {}", 1, 1),
        ("{}\n/* }", 2, 1),
        ("", 1, 1),
        ('{"a": NaN}', 1, 7),
        ('{"a": 1,\n "a": 2}', 2, 2),
        ('{"a\n": 1}', 1, 4),
        ("{'a': 1}", 1, 2),
        ("[1 / 2]", 1, 4),
    ],
)
def test_an_error_names_its_place(text: str, line: int, column: int) -> None:
    with pytest.raises(JsoncError) as caught:
        parse_jsonc(text)

    assert (caught.value.line, caught.value.column) == (line, column)


def test_a_key_in_two_objects_is_no_duplicate() -> None:
    assert parse_jsonc('[{"a": 1}, {"a": 2}]') == [{"a": 1}, {"a": 2}]


@pytest.mark.parametrize("piece", ["[", '{"a":', "/*", "[,", '"\\"'])
def test_hostile_text_is_refused_in_one_pass(piece: str) -> None:
    with pytest.raises(JsoncError):
        parse_jsonc(piece * 50_000)
