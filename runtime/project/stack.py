"""Rewrite the stacks of a guest so that they name the user's files, lines and columns."""

import re

from belem.runtime.project.bundle import Bundle
from belem.runtime.project.positions import Position

__all__ = ["locate", "map_stack"]

# `    at fetch (src/worker.ts:12:5)`, `    at src/worker.ts:12:5`; names may have spaces and
# parentheses.
_FRAME = re.compile(
    r"^(?P<before>\s*at (?:.*? \()?)(?P<file>\S.*?)"
    r":(?P<line>\d{1,9}):(?P<column>\d{1,9})(?P<after>\)?)$"
)


def map_stack(bundle: Bundle, stack: str) -> str:
    """Return the stack with each frame of the bundle's modules where its code was written."""
    return "\n".join(_map_line(bundle, line) for line in stack.split("\n"))


def locate(bundle: Bundle, file: str, line: int, column: int) -> Position | None:
    """Return where the code at a place of a module was written; None for other modules.

    The engine counts columns in UTF-8 bytes, from 1.
    """
    source = bundle.modules.get(file)
    if source is None:
        return None
    characters = _characters(source, line, column)
    source_map = bundle.source_maps.get(file)
    if source_map is None:
        return Position(file, line, characters)
    return source_map.original(line, characters)


def _map_line(bundle: Bundle, text: str) -> str:
    frame = _FRAME.match(text)
    if frame is None:
        return text
    place = locate(bundle, frame["file"], int(frame["line"]), int(frame["column"]))
    if place is None:
        return text
    return f"{frame['before']}{place.file}:{place.line}:{place.column}{frame['after']}"


def _characters(source: str, line: int, column: int) -> int:
    """Turn a column in bytes into one in characters."""
    if source.isascii():
        return column
    lines = source.split("\n")
    text = lines[line - 1] if 1 <= line <= len(lines) else ""
    return len(text.encode()[: column - 1].decode(errors="ignore")) + 1
