"""Read the runnable parts of a documentation page.

A fence whose info string names a file (` ```ts src/worker.ts `) writes that file. A fence
`console` is a session: lines that begin with `$ ` are commands, the lines under one are what it
prints, where `...` stands for any text.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

__all__ = ["Command", "File", "Step", "read_steps"]

_FENCE = re.compile(r"^```(?P<info>\S[^\n]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE_NAME = re.compile(r"^(?:[\w.-]+/)*[\w-]*\.[\w.-]+$")


@dataclass(frozen=True, slots=True)
class File:
    """A file that the page tells its reader to write."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Command:
    """A command that the page tells its reader to type, and what it prints."""

    line: str
    output: str

    def prints(self, actual: str) -> bool:
        """Tell whether `actual` is the promised output, which may hold `...` for any text."""
        pattern = ".*".join(re.escape(part.strip()) for part in self.output.split("..."))
        return re.fullmatch(pattern, actual.strip(), re.DOTALL) is not None


Step: TypeAlias = File | Command


def read_steps(page: Path) -> list[Step]:
    """Return what the page tells its reader to do, in order."""
    return list(_steps(page.read_text()))


def _steps(text: str) -> Iterator[Step]:
    for fence in _FENCE.finditer(text):
        language, _, name = fence["info"].partition(" ")
        if _FILE_NAME.match(name):
            yield File(name, fence["text"])
        elif language == "console":
            yield from _commands(fence["text"])


def _commands(session: str) -> Iterator[Command]:
    for part in re.split(r"^\$ ", session, flags=re.MULTILINE)[1:]:
        line, _, output = part.partition("\n")
        while line.endswith("\\"):
            more, _, output = output.partition("\n")
            line = line[:-1] + more.strip()
        yield Command(line, output)
