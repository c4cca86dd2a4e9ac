"""Read source maps (ECMA-426) as bundlers write them."""

import json
import posixpath
from bisect import bisect_right
from functools import cached_property
from pathlib import PurePath
from string import ascii_lowercase, ascii_uppercase, digits
from typing import NamedTuple, cast

from belem.runtime.project.positions import Position

__all__ = ["EncodedMap", "decode_mappings"]

_DIGITS = {
    digit: value for value, digit in enumerate(ascii_uppercase + ascii_lowercase + digits + "+/")
}
_CONTINUES, _BITS = 32, 31


class _Segment(NamedTuple):
    column: int
    source: int
    line: int
    source_column: int


class EncodedMap:
    """A source map in its file format. It is decoded when it is first asked something.

    `directory` is where the map's sources are relative to; they are named from `project`, the
    project's root. Both are absolute.
    """

    def __init__(self, text: str, directory: PurePath, project: PurePath) -> None:
        self._text = text
        self._directory = directory.as_posix()
        self._project = project.as_posix()

    def original(self, line: int, column: int) -> Position | None:
        """Return the place that the segment at this place names; None in code that nobody wrote."""
        sources, lines = self._decoded
        if not 1 <= line <= len(lines):
            return None
        segments = lines[line - 1]
        index = bisect_right(segments, column - 1, key=lambda segment: segment.column) - 1
        if not segments or segments[max(index, 0)].source < 0:
            return None
        segment = segments[max(index, 0)]
        if segment.source >= len(sources):
            return None
        return Position(sources[segment.source], segment.line + 1, segment.source_column + 1)

    @cached_property
    def _decoded(self) -> tuple[list[str], list[list[_Segment]]]:
        try:
            content = cast("dict[str, object]", json.loads(self._text))  # checked field by field
            names, mappings = content["sources"], content["mappings"]
            if not isinstance(names, list) or not isinstance(mappings, str):
                return [], []
            root = str(content.get("sourceRoot") or "")
            sources = [self._name(root, str(name)) for name in cast("list[object]", names)]
            return sources, decode_mappings(mappings)
        except (ValueError, KeyError, TypeError, AttributeError):
            # A map only makes stacks easier to read; a broken one must not break what prints them.
            return [], []

    def _name(self, root: str, name: str) -> str:
        return posixpath.relpath(posixpath.join(self._directory, root, name), self._project)


def decode_mappings(mappings: str) -> list[list[_Segment]]:
    """Return the segments of each line of output, by column; raise ValueError if broken."""
    lines: list[list[_Segment]] = []
    source = line = column = 0
    for group in mappings.split(";"):
        generated = 0
        segments: list[_Segment] = []
        for text in group.split(",") if group else ():
            numbers = _numbers(text)
            generated += numbers[0]
            if len(numbers) >= 4:
                source, line = source + numbers[1], line + numbers[2]
                column += numbers[3]
                segments.append(_Segment(generated, source, line, column))
            else:
                segments.append(_Segment(generated, -1, 0, 0))
        lines.append(sorted(segments))
    return lines


def _numbers(text: str) -> list[int]:
    numbers: list[int] = []
    value = shift = 0
    for character in text:
        digit = _DIGITS.get(character)
        if digit is None:
            raise ValueError(f"{character!r} is no base64 digit")
        value |= (digit & _BITS) << shift
        if digit & _CONTINUES:
            shift += 5
            if shift > 60:
                raise ValueError("A number in the map is too long")
            continue
        numbers.append(-(value >> 1) if value & 1 else value >> 1)
        value = shift = 0
    if not numbers or shift:
        raise ValueError("A segment of the map is cut off")
    return numbers
