"""Places in source files, and the source maps that lead back to them."""

from dataclasses import dataclass
from typing import Protocol

__all__ = ["Position", "SourceMap", "code_frame"]

_AROUND = 2
_WIDTH = 160


@dataclass(frozen=True, slots=True)
class Position:
    """A place in a source file, named as the user knows it; line and column count from 1."""

    file: str
    line: int
    column: int


class SourceMap(Protocol):
    """Leads from a place in a module, as the guest runs it, back to the user's source."""

    def original(self, line: int, column: int) -> Position | None:
        """Return where the code at this line and column (from 1) was written, if that is known."""
        ...


def code_frame(text: str, line: int, column: int) -> str:
    """Show the lines around a place, its own marked `>`, with a caret below it."""
    lines = text.replace("\r\n", "\n").split("\n")
    line = min(max(line, 1), len(lines))
    first, last = max(1, line - _AROUND), min(len(lines), line + _AROUND)
    margin = len(str(last))
    # A minified line is shown around its column only.
    skip = max(0, column - _WIDTH // 2) if len(lines[line - 1]) > _WIDTH else 0
    frame: list[str] = []
    for number in range(first, last + 1):
        shown = lines[number - 1].replace("\t", " ")[skip : skip + _WIDTH].rstrip()
        mark = ">" if number == line else " "
        frame.append(f"{mark} {number:>{margin}} | {shown}".rstrip())
        if number == line:
            frame.append(f"  {'':>{margin}} | {' ' * (column - 1 - skip)}^")
    return "\n".join(frame)
