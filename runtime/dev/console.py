"""What the developer reads in the terminal: start-up lines, requests, console output, mistakes."""

import re
import time
from collections.abc import Iterable

from rich.console import Console
from rich.text import Text

from belem.runtime.dev.problem import Problem

__all__ = ["DevConsole"]

_LEVEL_STYLES = {"error": "red", "warn": "yellow", "debug": "dim", "trace": "dim"}
# Colours and weights, which loggers write and which move nothing.
_STYLE_SEQUENCE = re.compile(r"(\x1b\[[0-9;]{0,32}m)")
_CONTROL = {code: f"\\x{code:02x}" for code in (*range(9), *range(11, 32), 127)}


class DevConsole:
    """Prints to stdout, with colours on a terminal. A worker may colour, not move the cursor."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(highlight=False, soft_wrap=True)

    def banner(self, version: str) -> None:
        """Say who is speaking."""
        self._console.print(Text.assemble(("Belem", "bold"), f" {version}\n"))

    def table(self, rows: Iterable[tuple[str, str]]) -> None:
        """Print names and what they stand for, aligned."""
        pairs = list(rows)
        width = max((len(name) for name, _ in pairs), default=0)
        for name, meaning in pairs:
            self._console.print(Text.assemble("  ", (name.ljust(width), "cyan"), "  ", meaning))

    def ready(self, url: str) -> None:
        """Say where the worker answers."""
        self._console.print(
            Text.assemble("\nReady on ", (url, "bold underline"), "  (Ctrl-C stops it)\n")
        )

    def request(self, method: str, path: str, status: int | None, duration_ms: float) -> None:
        """Print one request line."""
        shown = "closed" if status is None else str(status)
        self._line(
            Text.assemble(
                f"{_printable(method)} {_printable(path)} ",
                (shown, _status_style(status)),
                (f" ({duration_ms:.0f} ms)", "dim"),
            )
        )

    def log(self, level: str, text: str) -> None:
        """Print a line of the worker's console."""
        self._console.print(_styled(text, _LEVEL_STYLES.get(level, "")))

    def note(self, text: str) -> None:
        """Print something that happened."""
        self._line(Text(text))

    def warn(self, text: str) -> None:
        """Print something that should be mended."""
        self._line(Text.assemble(("warning: ", "yellow"), text))

    def problem(self, problem: Problem) -> None:
        """Print why the newest save does not run."""
        parts = [Text.assemble((f"{problem.title}: ", "bold red"), _printable(problem.message))]
        parts += [Text(_printable(text)) for text in (problem.place, problem.detail) if text]
        self._line(Text("\n").join(parts))

    def _line(self, text: Text) -> None:
        clock = time.strftime("%H:%M:%S")
        self._console.print(Text.assemble((f"[{clock}] ", "dim"), text))


def _styled(text: str, style: str) -> Text:
    """Return the text in the style, its own colours kept and what is not a colour made visible."""
    parts = _STYLE_SEQUENCE.split(text)  # every second part is a sequence
    parts[::2] = map(_printable, parts[::2])
    if len(parts) == 1:
        return Text(parts[0], style=style)
    # Taken into `Text`: where there is no terminal, no sequence is printed either.
    return Text(style=style).append_text(Text.from_ansi("".join(parts)))


def _printable(text: str) -> str:
    """Return the text with its control characters visible, but for tab and newline."""
    return text.translate(_CONTROL)


def _status_style(status: int | None) -> str:
    if status is None or status >= 500:
        return "red"
    return "yellow" if status >= 400 else "green"
