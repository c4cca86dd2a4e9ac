import pytest
from hypothesis import given
from hypothesis import strategies as st

from belem.runtime.project.tokens import Kind, Lines, tokenize

PIECES = st.sampled_from(
    [
        "/*",
        "*/",
        "//",
        "\n",
        '"',
        "'",
        "`",
        "${",
        "}",
        "{",
        "/",
        "[",
        "]",
        "\\",
        "a",
        "=",
        "(",
        ")",
        "return ",
        "0x1f",
        "1e",
        ".",
        "é",
        "\u2028",
        "=>",
        "++",
        " ",
        "#!",
        "import",
        "😀",
        "\0",
    ]
)


def texts(source: str) -> list[str]:
    return [token.text for token in tokenize(source)]


def kinds(source: str) -> list[Kind]:
    return [token.kind for token in tokenize(source)]


def test_comments_and_white_space_are_left_out() -> None:
    assert texts("a // b\n /* c\n */ d\ufeff") == ["a", "d"]


def test_a_shebang_is_left_out() -> None:
    assert texts("#!/usr/bin/env node\na") == ["a"]


def test_strings_hide_what_is_in_them() -> None:
    assert texts("""x = "a // \\" b" + 'c /*'""") == ["x", "=", '"a // \\" b"', "+", "'c /*'"]


def test_a_string_goes_on_after_a_backslash_at_the_end_of_a_line() -> None:
    assert texts('"a\\\nb" c') == ['"a\\\nb"', "c"]


def test_templates_nest() -> None:
    assert texts("`a${ {b: `${c}`} }d` e") == [
        "`a${", "{", "b", ":", "`${", "c", "}`", "}", "}d`", "e"
    ]  # fmt: skip


def test_an_escaped_substitution_is_text() -> None:
    assert texts(r"`\${a}` b") == [r"`\${a}`", "b"]


def test_an_escaped_backslash_before_a_substitution_is_not_its_escape() -> None:
    assert texts(r"`\\${a}` b") == [r"`\\${", "a", "}`", "b"]


@pytest.mark.parametrize(
    "source",
    [
        "x = /'/",
        "return /'/",
        "f(/'/)",
        "a ? /'/ : b",
        "[/'/]",
        "if (x) /'/",
        "x => /'/",
        "{ } /'/",
        "x = /[/']/g",
        r"x = /\/'/",
        "typeof /'/",
        "a && /'/",
    ],
)
def test_a_regex_is_read_where_an_expression_starts(source: str) -> None:
    assert Kind.REGEX in kinds(source)
    assert Kind.STRING not in kinds(source)


@pytest.mark.parametrize(
    "source",
    [
        "a / b / c",
        "f(x) / 2 / 1",
        "a[0] / 2 / 1",
        "1 / 2 / 3",
        "x++ / 2 / 1",
        "a.in / b / c",
        "({}) / 2 / 1",
        "`a` / 2 / 1",
        "x = {} / 2 / 1",
    ],
)
def test_a_slash_after_a_value_divides(source: str) -> None:
    assert Kind.REGEX not in kinds(source)


def test_names_may_be_private_escaped_or_not_ascii() -> None:
    assert texts(r"#a $b _c é \u0061b") == ["#a", "$b", "_c", "é", r"\u0061b"]
    assert set(kinds(r"#a $b _c é \u0061b")) == {Kind.NAME}


def test_numbers_are_whole() -> None:
    assert texts("0xFFn 1_000 1.5e-3 .5 1..a") == ["0xFFn", "1_000", "1.5e-3", ".5", "1.", ".", "a"]


def test_an_unterminated_string_ends_with_its_line() -> None:
    assert texts("a = 'don't\nb") == ["a", "=", "'don'", "t", "b"]
    assert texts("<p>it's</p>\nb")[-1] == "b"


@given(st.lists(PIECES).map("".join) | st.text())
def test_any_text_is_read_to_its_end(source: str) -> None:
    tokens = list(tokenize(source))

    position = 0
    for token in tokens:
        assert source[token.start : token.end] == token.text != ""
        assert token.start >= position
        between = source[position : token.start]
        assert not between.strip().strip("\ufeff") or between.strip().startswith(
            ("/", "\ufeff", "#")
        )
        position = token.end


@pytest.mark.parametrize("piece", ["/[", '\\"', "`${", "/*", "'\"", "<!--", "((", "\\u"])
def test_hostile_text_is_read_in_one_pass(piece: str) -> None:
    # At a quadratic cost this would take many minutes.
    assert sum(1 for _ in tokenize("=" + piece * 20_000)) <= 80_001


def test_lines_turn_offsets_into_places_and_back() -> None:
    lines = Lines("ab\r\ncd\u2028e")

    assert [lines.at(offset) for offset in (0, 1, 4, 5, 7)] == [
        (1, 1), (1, 2), (2, 1), (2, 2), (3, 1)
    ]  # fmt: skip
    assert lines.offset(2, 2) == 5
    assert lines.offset(9, 9) == 8
    assert lines.offset(0, 0) == 0


@given(st.text(), st.integers(0, 100))
def test_a_place_leads_back_to_its_offset(source: str, offset: int) -> None:
    lines = Lines(source)
    offset = min(offset, len(source))

    assert lines.offset(*lines.at(offset)) == offset
