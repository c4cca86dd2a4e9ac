"""Parse JSON with comments and trailing commas, strictly otherwise.

Comments and trailing commas become spaces, and what is left goes to the standard parser: so
positions in its errors are positions in the file.
"""

import json
import re
from typing import NoReturn

from belem.sdk import Json

__all__ = ["JsoncError", "parse_jsonc"]

_PIECE = re.compile(
    r"""
    (?P<string> "(?:[^"\\\n]|\\[^\n])*+"? )
  | (?P<comment> //[^\n\r]*+ | /\*(?:[^*]|\*(?!/))*+(?P<end>\*/)?+ )
  | (?P<comma> , )
  | (?P<close> [\]}] )
  | (?P<space> [\s\ufeff]++ )
  | (?P<other> [^"/,\]}\s\ufeff]++ | / )
    """,
    re.VERBOSE,
)
_NOT_BLANK = re.compile(r"[^\n\r]")


class JsoncError(ValueError):
    """The text is not JSON with comments; line and column count from 1."""

    def __init__(self, reason: str, line: int, column: int) -> None:
        super().__init__(f"{reason} (line {line}, column {column})")
        self.reason = reason
        self.line = line
        self.column = column


def parse_jsonc(text: str) -> Json:
    """Return the value of a text. A key written twice is an error, as it hides the first."""
    plain = _plain(text)

    def unique(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
        value = dict(pairs)
        if len(value) < len(pairs):
            keys = [key for key, _ in pairs]
            twice = next(key for key in keys if keys.count(key) > 1)
            raise _Duplicate(twice)
        return value

    try:
        # The cast that a return would need: what the parser makes is Json by construction.
        value: Json = json.loads(plain, object_pairs_hook=unique, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise JsoncError(error.msg, error.lineno, error.colno) from None
    except _Duplicate as error:
        line, column = _second_place(plain, error.key)
        raise JsoncError(f'The key "{error.key}" is there twice', line, column) from None
    except _Constant as error:
        line, column = _at(plain, max(plain.find(str(error)), 0))
        raise JsoncError(f"{error} is no JSON value", line, column) from None
    except RecursionError:
        raise JsoncError("The brackets are nested too deeply", 1, 1) from None
    return value


class _Duplicate(Exception):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


class _Constant(Exception):
    pass


def _refuse_constant(name: str) -> NoReturn:
    raise _Constant(name)


def _plain(text: str) -> str:
    """Blank the comments and the commas before a closing bracket."""
    pieces: list[str] = []
    comma: int | None = None  # where, in pieces, is the comma that only blanks have followed
    value_before = False
    for match in _PIECE.finditer(text):
        kind, piece = match.lastgroup, match.group()
        if match["comment"] is not None:
            if piece.startswith("/*") and match["end"] is None:
                raise JsoncError("The comment is not closed", *_at(text, match.start()))
            pieces.append(_NOT_BLANK.sub(" ", piece))
            continue
        if kind == "space":
            pieces.append(piece.replace("\ufeff", " ") if match.start() == 0 else piece)
            continue
        if kind == "close" and comma is not None:
            pieces[comma] = " "
        # `[,]` is no trailing comma: there is nothing that it trails.
        comma = len(pieces) if kind == "comma" and value_before else None
        value_before = kind in ("string", "close") or (kind == "other" and piece[-1] not in "[{:")
        pieces.append(piece)
    return "".join(pieces)


def _second_place(plain: str, key: str) -> tuple[int, int]:
    """Return the place of a key's second mention; its object's may be another, but not far."""
    quoted = json.dumps(key, ensure_ascii=False)
    first = plain.find(quoted)
    second = plain.find(quoted, first + 1)
    return _at(plain, max(second, first, 0))


def _at(text: str, offset: int) -> tuple[int, int]:
    return text.count("\n", 0, offset) + 1, offset - (text.rfind("\n", 0, offset) + 1) + 1
