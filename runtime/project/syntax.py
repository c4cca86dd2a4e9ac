"""Find where a source stops being a program, with a parser that says only that it does.

The parser reads from left to right. Put a character that no program may have after the first n
tokens: if the parser gets as far as complaining about it, those tokens are the start of some
program; if it complains about something else, the fault is among them. So a binary search over n
finds the token at fault in about thirty short runs, and only when there is a fault to find.
"""

from bisect import bisect_left
from collections.abc import Callable
from typing import TypeAlias

from belem.runtime.project.errors import SourceError
from belem.runtime.project.positions import code_frame
from belem.runtime.project.tokens import Kind, Lines, Token, tokenize

__all__ = ["syntax_error"]

Parse: TypeAlias = Callable[[str], tuple[str, ...]]
"""Returns the parser's reasons for refusing a text; none if it takes it."""

_STOP = "\0"
_REACHED = ("Invalid Character `\0`", "found `Unknown`")
_OPENING = {"(": ")", "[": "]", "{": "}"}


def syntax_error(file: str, source: str, reasons: tuple[str, ...], parse: Parse) -> SourceError:
    """Return the error for a source that the parser refused for these reasons."""
    reason = reasons[0].rstrip(".")
    tokens = list(tokenize(source))
    if not tokens or reason.startswith("The "):
        return SourceError(reason, file=file, line=0, column=0, frame="")
    index = _fault(source, tokens, reasons[0], parse)
    if index < len(tokens):
        offset = tokens[index].start
    else:
        offset = tokens[-1].end
        reason = _unclosed(source, tokens) or f"{reason}: the file ends too early"
    line, column = Lines(source).at(offset)
    frame = code_frame(source, line, column)
    return SourceError(reason, file=file, line=line, column=column, frame=frame)


def _fault(source: str, tokens: list[Token], reason: str, parse: Parse) -> int:
    # After `=>` and inside a template the parser looks ahead and would not reach the stop.
    ends = [
        index
        for index, token in enumerate(tokens)
        if token.text != "=>" and not (token.kind is Kind.TEMPLATE and not _closes(token))
    ]

    def is_faulty(index: int) -> bool:
        text = source[: tokens[index].end]
        # On a line of its own the stop does not spoil a statement that ends without a semicolon;
        # beside the last token it does not spoil one that may not be broken there (`throw`).
        return all(not _reaches(parse(text + gap + _STOP), reason) for gap in (" ", "\n"))

    def is_surely_faulty(index: int) -> bool:
        return is_faulty(index) and (index + 1 >= len(tokens) or is_faulty(index + 1))

    found = bisect_left(ends, True, key=is_surely_faulty)
    return ends[found] if found < len(ends) else len(tokens)


def _closes(token: Token) -> bool:
    return token.text.endswith(("`", "${"))


def _reaches(reasons: tuple[str, ...], reason: str) -> bool:
    return reason not in reasons and any(mark in text for text in reasons for mark in _REACHED)


def _unclosed(source: str, tokens: list[Token]) -> str | None:
    """Return what to say of the innermost bracket that is still open at the end."""
    opened: list[Token] = []
    for token in tokens:
        if token.text in _OPENING:
            opened.append(token)
        elif opened and token.text == _OPENING[opened[-1].text]:
            opened.pop()
    if not opened:
        return None
    line, column = Lines(source).at(opened[-1].start)
    return f"The file ends before the `{opened[-1].text}` of line {line}, column {column} is closed"
