"""Split JavaScript and TypeScript into tokens, well enough to find imports, types and positions.

This reads text that a real parser has accepted or will judge, so it never fails: what it cannot
read (an unterminated string, JSX text) becomes a token that ends with its line, and reading goes
on. It takes linear time on any text.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

__all__ = ["Kind", "Lines", "Token", "tokenize"]


class Kind(Enum):
    """What a token is. Punctuation is one character each, but for `=>`, `...`, `++` and `--`."""

    NAME = "name"
    NUMBER = "number"
    STRING = "string"
    TEMPLATE = "template"
    REGEX = "regex"
    PUNCTUATION = "punctuation"


class Token(NamedTuple):
    """One token; `text` is as written. A template is one token, or one per chunk between `${…}`."""

    kind: Kind
    text: str
    start: int
    end: int


# Each alternative consumes its token whole and never gives back what it took (possessive
# quantifiers), and an unterminated string or regex takes the rest of its line: no text makes this
# scan twice.
_TOKEN = re.compile(
    r"""
    (?P<skip>   [\s\ufeff]++ | //[^\n\r\u2028\u2029]*+ | /\*(?:[^*]|\*(?!/))*+(?:\*/)?+
              | \A\#![^\n]*+ )
  | (?P<name>   \#?+(?:[^\W\d]|\$|\\u[\da-fA-F{}]++)(?:[\w$\u200c\u200d]|\\u[\da-fA-F{}]++)*+ )
  | (?P<number> (?: 0[xXoObB][\da-fA-F_]++
                  | (?:\d[\d_]*+(?:\.[\d_]*+)?+ | \.\d[\d_]*+)(?:[eE][+-]?+[\d_]++)?+ ) n?+ )
  | (?P<string> "(?:[^"\\\n\r]|\\(?:\r\n|[\s\S]))*+"?+ | '(?:[^'\\\n\r]|\\(?:\r\n|[\s\S]))*+'?+ )
  | (?P<punctuation> => | \.\.\. | \+\+ | -- | [\s\S] )
    """,
    re.VERBOSE,
)
_REGEX = re.compile(
    r"/(?:[^/\\\[\n\r]|\\[^\n\r]|\[(?:[^\]\\\n\r]|\\[^\n\r])*+\]?+)++(?:/[A-Za-z]*+)?+"
)
_TEMPLATE = re.compile(r"(?:[^`\\$]|\\[\s\S]|\$(?!\{))*+(?P<close>`|\$\{)?+")
_LINE_END = re.compile(r"\r\n|[\n\r\u2028\u2029]")
_KINDS = {kind.value: kind for kind in Kind}
# After these names a slash starts a regex: they are followed by an expression.
_BEFORE_EXPRESSION = frozenset(
    {"return", "typeof", "instanceof", "in", "of", "new", "delete", "void", "throw", "case", "do"}
    | {"else", "await", "yield", "default", "extends"}
)
_CONDITION = frozenset({"if", "while", "for", "with"})


def tokenize(text: str) -> Iterator[Token]:
    """Yield the tokens of a source text, without white space and comments."""
    nesting: list[_Bracket] = []
    previous: Token | None = None
    value = False  # whether what came before is a value, so that a slash divides it
    position, size = 0, len(text)
    while position < size:
        match = _TOKEN.match(text, position)
        if (
            match is None or match.lastgroup is None
        ):  # pragma: no cover - the last alternative takes all
            return
        start, position = position, match.end()
        if match.lastgroup == "skip":
            continue
        kind, piece = _KINDS[match.lastgroup], match.group()
        if piece == "`" or (piece == "}" and nesting and nesting[-1].template):
            if piece == "}":
                nesting.pop()
            chunk = _TEMPLATE.match(text, start + 1)
            position = chunk.end() if chunk else start + 1
            opens = chunk is not None and chunk["close"] == "${"
            if opens:
                nesting.append(_Bracket(template=True, value_after=False))
            token = Token(Kind.TEMPLATE, text[start:position], start, position)
            value = not opens
        elif piece == "/" and not value:
            regex = _REGEX.match(text, start)
            position = regex.end() if regex else start + 1
            token, value = Token(Kind.REGEX, text[start:position], start, position), True
        else:
            token = Token(kind, piece, start, position)
            value = _is_value(token, previous, value, nesting)
        yield token
        previous = token


class _Bracket(NamedTuple):
    template: bool
    value_after: bool


def _is_value(token: Token, previous: Token | None, before: bool, nesting: list[_Bracket]) -> bool:
    """Say whether a slash after this token divides; keeps the stack of brackets."""
    text = token.text
    if token.kind is Kind.NAME:
        after_dot = previous is not None and previous.text == "."
        return after_dot or text not in _BEFORE_EXPRESSION
    if token.kind is not Kind.PUNCTUATION:
        return True
    if text == "(":
        condition = previous is not None and previous.text in _CONDITION
        nesting.append(_Bracket(template=False, value_after=not condition))
    elif text == "[":
        nesting.append(_Bracket(template=False, value_after=True))
    elif text == "{":
        # A brace where a value is wanted opens an object; elsewhere it opens a block.
        wanted = (
            previous is not None and not before and previous.text not in ("=>", ";", "{", "}", ")")
        )
        keyword = previous is not None and previous.text in ("do", "else")
        nesting.append(_Bracket(template=False, value_after=wanted and not keyword))
    elif text in (")", "]", "}"):
        return nesting.pop().value_after if nesting else text != "}"
    return text in ("++", "--") and before


class Lines:
    """Where lines start in a text: turns offsets into lines and columns (from 1) and back."""

    def __init__(self, text: str) -> None:
        self._starts = [0, *(match.end() for match in _LINE_END.finditer(text))]
        self._size = len(text)

    def at(self, offset: int) -> tuple[int, int]:
        """Return the line and column of an offset."""
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

    def offset(self, line: int, column: int) -> int:
        """Return the offset of a line and column, drawn into the text if they are outside it."""
        start = self._starts[min(max(line, 1), len(self._starts)) - 1]
        return min(start + max(column, 1) - 1, self._size)
