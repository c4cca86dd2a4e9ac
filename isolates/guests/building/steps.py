"""What a person sees of a build: a line for each step, with a spinner where there is a terminal."""

import contextlib
import sys
import time
from collections.abc import Generator
from contextlib import AbstractContextManager
from typing import Protocol

__all__ = ["PlainSteps", "Steps", "steps_for_terminal"]


class Steps(Protocol):
    """Somewhere to show progress."""

    def step(self, text: str) -> AbstractContextManager[None]:
        """Show that something is going on, until the block ends."""
        ...

    def note(self, text: str) -> None:
        """Show a line."""
        ...


class PlainSteps:
    """Lines on standard error: for a log."""

    @contextlib.contextmanager
    def step(self, text: str) -> Generator[None]:
        start = time.monotonic()
        self.note(f"{text} …")
        yield
        self.note(f"{text}: {time.monotonic() - start:.1f} s")

    def note(self, text: str) -> None:
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()


class _TerminalSteps:
    def __init__(self) -> None:
        # Imported here: a build with nothing to do shows nothing, and should take no time.
        from rich.console import Console

        self._console = Console(stderr=True, highlight=False)

    @contextlib.contextmanager
    def step(self, text: str) -> Generator[None]:
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        columns = (
            SpinnerColumn(finished_text="[green]✓"),
            TextColumn("{task.description}"),
            TimeElapsedColumn(),
        )
        with Progress(*columns, console=self._console) as progress:
            task = progress.add_task(text, total=1)
            yield
            progress.update(task, completed=1)

    def note(self, text: str) -> None:
        self._console.print(text)


def steps_for_terminal() -> Steps:
    """Return what suits standard error."""
    return _TerminalSteps() if sys.stderr.isatty() else PlainSteps()
