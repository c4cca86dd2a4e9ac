"""Why the newest save does not run, in the parts that terminal and page show."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from belem.isolates import LoadError
from belem.runtime.project import ProjectError, SourceError
from belem.sdk import BelemError

__all__ = ["Problem", "describe_problem"]


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake: what kind, what about, where, and the lines around it."""

    title: str
    message: str
    place: str = ""
    detail: str = ""  # a code frame, or a stack mapped to the sources
    watched: frozenset[Path] = frozenset()


def describe_problem(error: BelemError, map_stack: Callable[[str], str]) -> Problem:
    """Sort an error of a build: syntax, project, or the worker's own top level."""
    if isinstance(error, SourceError):
        place = f"{error.file}:{error.line}:{error.column}" if error.line else error.file
        return Problem("Syntax error", error.reason, place, error.frame, error.watched)
    if isinstance(error, ProjectError):
        return Problem("The project cannot be built", error.message, watched=error.watched)
    if isinstance(error, LoadError):
        stack = map_stack(error.stack).strip()
        return Problem("The worker failed while it started", error.message, detail=stack)
    return Problem("The worker cannot run", error.message)
