"""What can be wrong with a project: each error names the file, what is in it, and what may be."""

from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar

from belem.sdk.errors import UserError

__all__ = [
    "BundleTooLarge",
    "BundlerError",
    "ConfigError",
    "ModuleNotFound",
    "ProjectError",
    "ProjectNotFound",
    "SourceError",
    "StarterError",
    "UnsupportedModule",
]


class ProjectError(UserError):
    """Base of what a user can mend in a project.

    `watched` holds the files that a dev server watches for the mend: those read until the error,
    and those looked for and not there.
    """

    code: ClassVar[str] = "project/invalid"
    status: ClassVar[int] = 422

    watched: frozenset[Path] = frozenset()

    def watching(self, files: Iterable[Path]) -> None:
        """Add files whose change may mend the error."""
        self.watched = self.watched | frozenset(files)


class ProjectNotFound(ProjectError):
    """There is no project, handler or config at the path."""

    code: ClassVar[str] = "project/not-found"
    status: ClassVar[int] = 404


class ConfigError(ProjectError):
    """A config or variables file says something that it may not say."""

    code: ClassVar[str] = "project/config"


class ModuleNotFound(ProjectError):
    """An import names a module that is not there, or that is outside the project."""

    code: ClassVar[str] = "project/module-not-found"


class UnsupportedModule(ProjectError):
    """An import names a kind of module that this runtime does not have."""

    code: ClassVar[str] = "project/unsupported-module"


class BundlerError(ProjectError):
    """The bundler is missing, ran too long, or broke."""

    code: ClassVar[str] = "project/bundler"


class BundleTooLarge(ProjectError):
    """The worker's code is over the limit."""

    code: ClassVar[str] = "project/too-large"
    status: ClassVar[int] = 413


class StarterError(ProjectError):
    """A starter cannot be written where it was asked for."""

    code: ClassVar[str] = "project/starter"


class SourceError(ProjectError):
    """A source file does not parse. `line` and `column` count from 1; 0 means not known.

    `frame` shows the lines around the place, with a caret; it is empty when the place is not known.
    """

    code: ClassVar[str] = "project/syntax"

    def __init__(self, reason: str, *, file: str, line: int, column: int, frame: str) -> None:
        place = f"{file}:{line}:{column}" if line else file
        super().__init__(f"{place}: {reason}" + (f"\n{frame}" if frame else ""))
        self.reason = reason
        self.file = file
        self.line = line
        self.column = column
        self.frame = frame
